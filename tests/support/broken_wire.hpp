// A transport to the simulated server that breaks the client on purpose: it changes requests before they are sent, and
// answers and lines of streams when they arrive. Borrows the transport that it wraps.
#pragma once

#include <functional>
#include <memory>

#include "http/transport.hpp"
#include "sim/call.hpp"
#include "sim/objects.hpp"

namespace haulout::testing {

// Changes each complete line of a stream.
class BrokenLines final : public http::BodyStream {
 public:
  using Change = std::function<void(std::string& line)>;
  BrokenLines(std::unique_ptr<http::BodyStream> sound, Change change)
      : sound_(std::move(sound)), change_(std::move(change)) {}

  const http::ResponseHead& head() const override { return sound_->head(); }
  Task<std::string> read_some(TimePoint deadline) override {
    for (;;) {
      auto piece = co_await sound_->read_some(deadline);
      // The end comes with what is left of a line that is not complete.
      if (!piece || piece->empty()) {
        if (piece) piece = std::exchange(rest_, {});
        co_return piece;
      }
      rest_ += *piece;
      std::string lines;
      for (std::size_t end; (end = rest_.find('\n')) != std::string::npos; rest_.erase(0, end + 1)) {
        std::string line = rest_.substr(0, end);
        change_(line);
        lines += line + "\n";
      }
      if (!lines.empty()) co_return lines;
    }
  }
  bool hold_back() override { return sound_->hold_back(); }
  void read_on() override { sound_->read_on(); }

 private:
  std::unique_ptr<http::BodyStream> sound_;
  Change change_;
  std::string rest_;
};

class BrokenWire final : public http::Transport {
 public:
  using Request = std::function<void(const sim::Call&, http::Request&)>;
  using Answer = std::function<void(const sim::Call&, Result<http::Response>&)>;
  static void no_request(const sim::Call&, http::Request&) {}
  static void no_answer(const sim::Call&, Result<http::Response>&) {}

  using Line = std::function<void(const sim::Call&, std::string&)>;

  BrokenWire(http::Transport& sound, Request request, Answer answer, Line line = {})
      : sound_(sound), request_(std::move(request)), answer_(std::move(answer)), line_(std::move(line)) {}

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override {
    const sim::Call call = sim::parse_call(request);
    request_(call, request);
    auto answer = co_await sound_.round_trip(std::move(request), deadline);
    answer_(call, answer);
    co_return answer;
  }
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override {
    const sim::Call call = sim::parse_call(request);
    auto stream = co_await sound_.open(std::move(request), deadline);
    if (!stream || !line_) co_return std::move(stream);
    co_return std::make_unique<BrokenLines>(*std::move(stream), [this, call](std::string& line) { line_(call, line); });
  }

 private:
  http::Transport& sound_;
  Request request_;
  Answer answer_;
  Line line_;
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
