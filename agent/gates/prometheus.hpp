// Asks Prometheus, or a server with the same query API, whether an alert closes the gate of a node. Borrows transport,
// clock and rng. The transport provides address, TLS and bearer token (see gates_of_config.hpp). Each request reads the
// password file anew.
#pragma once

#include "agent/gates/alerts.hpp"
#include "http/transport.hpp"
#include "retry/clock.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

class PrometheusAlerts {
 public:
  PrometheusAlerts(http::Transport& transport, Clock& clock, Rng& rng, AlertOptions options)
      : transport_(transport), clock_(clock), rng_(rng), options_(std::move(options)) {}

  // Returns the row prometheus, see alerts_gate(). If `anew` is false, an answer of the last ten seconds is used again.
  // Prometheus does not report when an alert ends, so `look_again` of a closed gate is 48 to 72 seconds ahead.
  // Cancellable.
  boost::asio::awaitable<Gate> judge(std::string node, bool anew, TimePoint deadline);

 private:
  Task<std::vector<Sample>> alerts(std::string node, TimePoint deadline);
  Task<QueryAnswer> query(std::string promql, TimePoint deadline);

  http::Transport& transport_;
  Clock& clock_;
  Rng& rng_;
  AlertOptions options_;
  std::optional<Gate> last_;
  TimePoint last_at_{};
};

}  // namespace haulout::agent
