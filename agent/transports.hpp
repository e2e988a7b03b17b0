// Transport decorator: bounds each request by --request-timeout, logs it (method, target, status, milliseconds; never
// headers or bodies), and tells how it ended. Borrows what it is given.
#pragma once

#include <functional>

#include "agent/logging.hpp"
#include "http/transport.hpp"

namespace haulout::agent {

// How a request ended.
struct RequestEnd {
  std::string method{};
  std::string target{};
  int status = 0;  // 0: no answer
  Errc failure{};  // when there was none
};

class WatchedTransport final : public http::Transport {
 public:
  WatchedTransport(http::Transport& inner, Clock& clock, Log& log, std::function<void(const RequestEnd&)> tell,
                   std::optional<Duration> request_timeout)
      : inner_(inner), clock_(clock), log_(log), tell_(std::move(tell)), request_timeout_(request_timeout) {}

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override;
  // Bound and end are those of the head of the answer: a watch is meant to last.
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override;

 private:
  TimePoint bounded(TimePoint deadline) const;
  void note(const std::string& method, const std::string& target, TimePoint began, int status,
            std::optional<Error> error);

  http::Transport& inner_;
  Clock& clock_;
  Log& log_;
  std::function<void(const RequestEnd&)> tell_;
  std::optional<Duration> request_timeout_;
};

}  // namespace haulout::agent
