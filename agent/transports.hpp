// Transport decorator of the command line: bounds each request by --request-timeout, logs it (method, target, status,
// milliseconds; never headers or bodies), and notes in the ledger what was denied. Borrows everything.
#pragma once

#include "agent/logging.hpp"
#include "agent/requests_ledger.hpp"
#include "http/transport.hpp"

namespace haulout::agent {

class WatchedTransport final : public http::Transport {
 public:
  WatchedTransport(http::Transport& inner, Clock& clock, Log& log, RequestLedger& ledger,
                   std::optional<Duration> request_timeout)
      : inner_(inner), clock_(clock), log_(log), ledger_(ledger), request_timeout_(request_timeout) {}

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override;
  // The bound is for the head of the answer: a watch is meant to last.
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override;

 private:
  TimePoint bounded(TimePoint deadline) const;
  void note(const std::string& method, const std::string& target, TimePoint began, int status,
            std::optional<Error> error);

  http::Transport& inner_;
  Clock& clock_;
  Log& log_;
  RequestLedger& ledger_;
  std::optional<Duration> request_timeout_;
};

}  // namespace haulout::agent
