// Asks a Prometheus, or what speaks its query API, whether an alert holds the node back. Borrows transport, clock and
// rng; the transport brings address, TLS and bearer token (see gates_of_config.hpp). The password file is read anew for
// each request.
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

  // Row prometheus, see alerts_gate(). Not `anew`: an answer of the last ten seconds will do. Nothing tells of alerts
  // that end, so a closed one is to be asked again after about a minute. Cancellable.
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
