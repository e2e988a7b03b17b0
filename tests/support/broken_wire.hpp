// A way to the simulated server that changes requests as they go, and answers as they come. Streams pass unchanged.
// Borrows the sound way.
#pragma once

#include <functional>
#include <memory>

#include "http/transport.hpp"
#include "sim/call.hpp"

namespace haulout::testing {

class BrokenWire final : public http::Transport {
 public:
  using Request = std::function<void(const sim::Call&, http::Request&)>;
  using Answer = std::function<void(const sim::Call&, Result<http::Response>&)>;
  static void no_request(const sim::Call&, http::Request&) {}
  static void no_answer(const sim::Call&, Result<http::Response>&) {}

  BrokenWire(http::Transport& sound, Request request, Answer answer)
      : sound_(sound), request_(std::move(request)), answer_(std::move(answer)) {}

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override {
    const sim::Call call = sim::parse_call(request);
    request_(call, request);
    auto answer = co_await sound_.round_trip(std::move(request), deadline);
    answer_(call, answer);
    co_return answer;
  }
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override {
    co_return co_await sound_.open(std::move(request), deadline);
  }

 private:
  http::Transport& sound_;
  Request request_;
  Answer answer_;
};

inline bool is_eviction(const sim::Call& call) {
  return call.verb == "create" && call.subresource == "eviction";
}

}  // namespace haulout::testing
