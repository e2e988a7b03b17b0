// A server, or something before it, that sends the lines of a watch again: each piece of a stream comes twice, and now
// and then all pieces so far.
#pragma once

#include "http/transport.hpp"

namespace haulout::scenario {

class ReplayingTransport final : public http::Transport {
 public:
  explicit ReplayingTransport(http::Transport& inner) : inner_(inner) {}

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override {
    co_return co_await inner_.round_trip(std::move(request), deadline);
  }
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override {
    CO_TRY(auto stream, co_await inner_.open(std::move(request), deadline));
    co_return std::unique_ptr<http::BodyStream>(std::make_unique<Replay>(std::move(stream)));
  }

 private:
  class Replay final : public http::BodyStream {
   public:
    explicit Replay(std::unique_ptr<http::BodyStream> inner) : inner_(std::move(inner)) {}
    const http::ResponseHead& head() const override { return inner_->head(); }
    Task<std::string> read_some(TimePoint deadline) override {
      CO_TRY(std::string piece, co_await inner_->read_some(deadline));
      if (piece.empty() || piece.back() != '\n') co_return piece;
      so_far_ += piece;
      co_return ++pieces_ % 5 == 0 ? piece + so_far_ : piece + piece;
    }
    bool hold_back() override { return inner_->hold_back(); }
    void read_on() override { inner_->read_on(); }

   private:
    std::unique_ptr<http::BodyStream> inner_;
    std::string so_far_;
    int pieces_ = 0;
  };

  http::Transport& inner_;
};

}  // namespace haulout::scenario
