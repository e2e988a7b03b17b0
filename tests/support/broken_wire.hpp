// A transport to the simulated server that breaks the client on purpose: it changes requests before they are sent and
// answers when they arrive. Streams pass unchanged. Borrows the transport that it wraps.
#pragma once

#include <functional>
#include <memory>

#include "http/transport.hpp"
#include "sim/call.hpp"
#include "sim/objects.hpp"

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

// Changes for requests: an eviction without the pod's UID, and a deletion in place of an eviction.
inline void name_no_instance(const sim::Call& call, http::Request& request) {
  if (!is_eviction(call)) return;
  sim::Json body = sim::Json::parse(request.body);
  body["deleteOptions"].erase("preconditions");
  request.body = body.dump();
}

inline void delete_instead(const sim::Call& call, http::Request& request) {
  if (!is_eviction(call)) return;
  request.method = "DELETE";
  request.target = request.target.substr(0, request.target.find("/eviction"));
  request.body.clear();
}

}  // namespace haulout::testing
