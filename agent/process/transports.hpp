// Transport decorator: bounds each request by --request-timeout, logs it (method, target, status, milliseconds; never
// headers or bodies), and tells how it ended and what the server warns of. Borrows what it is given.
#pragma once

#include <functional>

#include "agent/process/logging.hpp"
#include "http/transport.hpp"

namespace haulout::agent {

// How a request ended.
struct RequestEnd {
  std::string method{};
  std::string target{};
  int status = 0;  // 0: no answer
  Errc failure{};  // when there was none
  std::vector<std::string> warnings{};
};

class WatchedTransport final : public http::Transport {
 public:
  // `server`, unless empty: the URL without path, and requests are logged in the form in which kubectl logs them.
  WatchedTransport(http::Transport& inner, Clock& clock, Log& log, std::function<void(const RequestEnd&)> tell,
                   std::optional<Duration> request_timeout, std::string server = {})
      : inner_(inner),
        clock_(clock),
        log_(log),
        tell_(std::move(tell)),
        request_timeout_(request_timeout),
        server_(std::move(server)) {}

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override;
  // Bound and end are those of the head of the answer: a watch is meant to last.
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
