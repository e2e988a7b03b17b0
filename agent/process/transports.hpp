// Transport decorator: limits each request to --request-timeout, and logs it (method, target, status, milliseconds;
// never headers or bodies). It also reports to `tell` how the request ended and which warnings the server sent. Borrows
// the inner transport, the clock and the log.
#pragma once

#include <functional>

#include "agent/process/logging.hpp"
#include "http/transport.hpp"

namespace haulout::agent {

// The result of a request.
struct RequestEnd {
  std::string method{};
  std::string target{};
  int status = 0;  // 0 if there was no answer
  Errc failure{};  // the error if there was no answer
  std::vector<std::string> warnings{};
};

class WatchedTransport final : public http::Transport {
 public:
  // `server` is the URL without path; if it is not empty, requests are logged in kubectl's format.
  WatchedTransport(http::Transport& inner, Clock& clock, Log& log, std::function<void(const RequestEnd&)> tell,
                   std::optional<Duration> request_timeout, std::string server = {})
      : inner_(inner),
        clock_(clock),
        log_(log),
        tell_(std::move(tell)),
        request_timeout_(request_timeout),
        server_(std::move(server)) {}

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override;
  // The time limit and the result apply only to the head of the answer, because a watch is meant to last.
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override;

 private:
  TimePoint bounded(TimePoint deadline) const;
  void note(RequestEnd end, TimePoint began, const std::optional<Error>& error);
  void log_as_kubectl(const RequestEnd& end, Duration took);

  http::Transport& inner_;
  Clock& clock_;
  Log& log_;
  std::function<void(const RequestEnd&)> tell_;
  std::optional<Duration> request_timeout_;
  std::string server_;
};

}  // namespace haulout::agent
