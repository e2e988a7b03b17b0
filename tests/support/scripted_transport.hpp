// A Transport that plays a script in virtual time: it returns prepared answers in order, whatever the request is, and
// records every request. A request for which no answer is left fails the test and gets Errc::protocol.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http/transport.hpp"
#include "retry/clock.hpp"
#include "retry/notifier.hpp"

namespace haulout::testing {

inline http::Response json_response(int status, std::string body) {
  http::Response response;
  response.status = status;
  response.headers.set("Content-Type", "application/json");
  response.body = std::move(body);
  return response;
}

class ScriptedTransport final : public http::Transport {
 public:
  // One action of a stream. It happens when the time `after` has passed since the reader asked for it.
  struct Step {
    Duration after{};
    enum class Kind { bytes, end, reset, silence } kind = Kind::bytes;
    std::string bytes;
  };
  struct Stream {
    http::ResponseHead head;
    std::vector<Step> steps;
  };
  struct Recorded {
    http::Request request;
    TimePoint at;
    TimePoint deadline;
    bool stream = false;
  };

  explicit ScriptedTransport(Clock& clock) : clock_(clock) {}

  // Adds the answer to the next round trip, given after `delay`.
  void answer(http::Response response, Duration delay = {}) { answers_.push_back({std::move(response), {}, delay}); }
  void fail(Error error, Duration delay = {}) { answers_.push_back({{}, std::move(error), delay}); }
  // Adds the stream that the next open() returns.
  void stream(std::vector<Step> steps, Duration delay = {}) {
    Stream stream;
    stream.head.status = 200;
    stream.head.headers.set("Content-Type", "application/json");
    stream.steps = std::move(steps);
    streams_.push_back({std::move(stream), {}, delay});
  }
  void refuse_stream(int status, std::string body, Duration delay = {}) {
    Stream stream;
    stream.head.status = status;
    stream.head.headers.set("Content-Type", "application/json");
    stream.steps = {{{}, Step::Kind::bytes, std::move(body)}, {{}, Step::Kind::end, {}}};
    streams_.push_back({std::move(stream), {}, delay});
  }
  void fail_stream(Error error, Duration delay = {}) { streams_.push_back({{}, std::move(error), delay}); }

  const std::vector<Recorded>& requests() const { return requests_; }
  std::vector<Recorded> lists() const { return filtered(false); }
  std::vector<Recorded> watches() const { return filtered(true); }
  bool exhausted() const { return answers_.empty() && streams_.empty(); }
  std::size_t open_streams() const { return *open_streams_; }

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override {
    requests_.push_back({std::move(request), clock_.now(), deadline, false});
    if (answers_.empty()) {
      ADD_FAILURE() << "no answer left for " << requests_.back().request.target;
      co_return Error(Errc::protocol, "the script has no answer left");
    }
    auto entry = std::move(answers_.front());
    answers_.pop_front();
    const bool in_time = co_await pass(entry.delay, deadline);
    if (!in_time) co_return Error(Errc::timeout, "no answer in time");
    if (entry.error) co_return std::move(*entry.error);
    co_return std::move(entry.value);
  }

  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override {
    requests_.push_back({std::move(request), clock_.now(), deadline, true});
    if (streams_.empty()) {
      ADD_FAILURE() << "no stream left for " << requests_.back().request.target;
      co_return Error(Errc::protocol, "the script has no stream left");
    }
    auto entry = std::move(streams_.front());
    streams_.pop_front();
    const bool in_time = co_await pass(entry.delay, deadline);
    if (!in_time) co_return Error(Errc::timeout, "no answer in time");
    if (entry.error) co_return std::move(*entry.error);
    co_return std::make_unique<Body>(*this, std::move(entry.value));
  }

 private:
  template <class T>
  struct Entry {
    T value;
    std::optional<Error> error;
    Duration delay{};
  };

  class Body final : public http::BodyStream {
   public:
    Body(ScriptedTransport& owner, Stream stream)
        : clock_(owner.clock_), open_(owner.open_streams_), stream_(std::move(stream)) {
      ++*open_;
    }
    ~Body() override { --*open_; }
    const http::ResponseHead& head() const override { return stream_.head; }
    Task<std::string> read_some(TimePoint deadline) override {
      const Step step = next_ < stream_.steps.size() ? stream_.steps[next_++] : Step{{}, Step::Kind::silence, {}};
      const Duration after = step.kind == Step::Kind::silence ? Duration::max() : step.after;
      if (saturating_add(clock_.now(), after) > deadline) {
        co_await clock_.sleep_until(deadline);
        co_return Error(Errc::timeout, "nothing came in time");
      }
      if (after > Duration::zero()) co_await clock_.sleep_until(clock_.now() + after);
      gate_.emplace(co_await boost::asio::this_coro::executor);
      while (held_ && step.kind == Step::Kind::bytes) (void)co_await gate_->wait_until(clock_, TimePoint::max());
      if (step.kind == Step::Kind::reset) co_return Error(Errc::reset, "connection reset");
      co_return step.kind == Step::Kind::end ? std::string() : step.bytes;
    }
    // Always holds back: no bytes can be waiting, because each step happens only after the reader has asked for it.
    bool hold_back() override { return held_ = true; }
    void read_on() override {
      held_ = false;
      if (gate_) gate_->notify();
    }

   private:
    Clock& clock_;
    std::shared_ptr<std::size_t> open_;
    Stream stream_;
    std::size_t next_ = 0;
    bool held_ = false;
    std::optional<Notifier> gate_;
  };

  boost::asio::awaitable<bool> pass(Duration delay, TimePoint deadline) {
    const auto when = saturating_add(clock_.now(), delay);
    if (delay > Duration::zero() || when > deadline) co_await clock_.sleep_until(std::min(when, deadline));
    co_return when <= deadline;
  }
  std::vector<Recorded> filtered(bool stream) const {
    std::vector<Recorded> out;
    for (const auto& recorded : requests_) {
      if (recorded.stream == stream) out.push_back(recorded);
    }
    return out;
  }

  Clock& clock_;
  std::deque<Entry<http::Response>> answers_;
  std::deque<Entry<Stream>> streams_;
  std::vector<Recorded> requests_;
  std::shared_ptr<std::size_t> open_streams_ = std::make_shared<std::size_t>(0);
};

}  // namespace haulout::testing
