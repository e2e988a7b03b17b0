// A transport whose watches repeat or reorder events, like a faulty server or proxy would. Borrows the inner transport
// and the clock.
#pragma once

#include <map>

#include "http/transport.hpp"

namespace haulout::scenario {

class ReplayingTransport final : public http::Transport {
 public:
  enum class How {
    twice,           // repeats each event, and sometimes all events of the stream so far
    swapped,         // delivers each event after the next one, if that comes at once
    from_the_start,  // starts a watch with all events of earlier watches of the same resource
  };
  ReplayingTransport(http::Transport& inner, Clock& clock, How how) : inner_(inner), clock_(clock), how_(how) {}

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override {
    co_return co_await inner_.round_trip(std::move(request), deadline);
  }
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override {
    const std::string path = request.target.substr(0, request.target.find('?'));
    CO_TRY(auto stream, co_await inner_.open(std::move(request), deadline));
    co_return std::unique_ptr<http::BodyStream>(std::make_unique<Replay>(*this, std::move(stream), so_far_[path]));
  }

  // Number of pieces that were repeated or reordered.
  std::size_t struck() const { return struck_; }

 private:
  class Replay final : public http::BodyStream {
   public:
    Replay(ReplayingTransport& owner, std::unique_ptr<http::BodyStream> inner, std::string& so_far)
        : owner_(owner), inner_(std::move(inner)), so_far_(so_far) {
      if (owner_.how_ == How::from_the_start) kept_ = so_far_;
    }
    const http::ResponseHead& head() const override { return inner_->head(); }
    Task<std::string> read_some(TimePoint deadline) override {
      if (!kept_.empty()) {
        owner_.struck_ += owner_.how_ == How::from_the_start;
        co_return std::exchange(kept_, {});
      }
      CO_TRY(std::string piece, co_await inner_->read_some(deadline));
      if (piece.empty() || piece.back() != '\n') co_return piece;
      so_far_ += piece;
      if (owner_.how_ == How::swapped) co_return co_await after_the_next(std::move(piece), deadline);
      if (owner_.how_ == How::from_the_start) co_return piece;
      co_return ++owner_.struck_ % 5 == 0 ? piece + so_far_ : piece + piece;
    }
    bool hold_back() override { return kept_.empty() && inner_->hold_back(); }
    void read_on() override { inner_->read_on(); }

   private:
    Task<std::string> after_the_next(std::string piece, TimePoint deadline) {
      auto next = co_await inner_->read_some(std::min(deadline, owner_.clock_.now() + std::chrono::milliseconds(20)));
      if (!next || next->empty() || next->back() != '\n') co_return piece;
      ++owner_.struck_;
      kept_ = std::move(piece);
      co_return *std::move(next);
    }

    ReplayingTransport& owner_;
    std::unique_ptr<http::BodyStream> inner_;
    std::string& so_far_;
    std::string kept_;
  };

  http::Transport& inner_;
  Clock& clock_;
  How how_;
  std::map<std::string, std::string> so_far_;  // by path; all streams of a resource share one string
  std::size_t struck_ = 0;
};

}  // namespace haulout::scenario
