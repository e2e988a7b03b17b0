// The alert gate: a node does not begin an update while Prometheus reports an alert.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/gates/gate_keeper.hpp"
#include "http/transport.hpp"
#include "retry/clock.hpp"
#include "retry/rng.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// Options of the alert gate. The functions below build the query for Prometheus, decode the response and decide whether
// the gate is open. They are pure: the request and the response are values.
struct AlertOptions {
  std::string query{};                  // PromQL; $node is replaced by the node's name
  bool fail_open = false;               // the gate is open if Prometheus does not answer
  Duration max_age = Duration::zero();  // ignore alerts that have been active for longer; 0 means no limit
  std::string username{};               // for basic authentication; empty if none is used
  std::string password_file{};
};

// One series of an instant vector.
struct Sample {
  std::map<std::string, std::string> labels;  // includes __name__
  double time = 0;   // when the query was evaluated, in seconds since 1970, by Prometheus' clock
  double value = 0;  // 0 for a histogram
};

struct QueryAnswer {
  std::vector<Sample> samples;
  std::vector<std::string> warnings;
};

// Decodes the response of /api/v1/query. Fails with Errc::status and the HTTP status if Prometheus refused the query or
// failed; with Errc::invalid if the result is not an instant vector; with Errc::decode if no Prometheus sends such a
// response.
Result<QueryAnswer> decode_query_answer(int http_status, std::string_view body);

// Replaces each $node in the query by the node's name, unless $node is only the beginning of a longer name.
std::string query_for_node(std::string_view query, std::string_view node);

// Removes alerts that have been active for longer than `max_age`. `active` is the response to the query
// ALERTS_FOR_STATE: the value of each series is the time since which the alert has been active. Keeps every series that
// is missing in `active`, because its age is unknown (it may not be an alert).
std::vector<Sample> without_old(std::vector<Sample> alerts, const std::vector<Sample>& active, Duration max_age);

// Builds the row of the gate. The gate is closed in three cases: the query returns a series (BlockedByAlert);
// Prometheus rejects the query with 400, or its result is not an instant vector (PrometheusQueryRefused); any other
// failure, if `fail_open` is false (PrometheusUnavailable). `fail_open` does not apply to the second case, because a
// mistake in the query must not open the gate.
Gate alerts_gate(const Result<std::vector<Sample>>& alerts, const AlertOptions& options);

// Asks Prometheus, or a server with the same query API, whether an alert closes the gate of a node. Reads the password
// file for each request. Borrows transport, clock and rng. The transport provides address, TLS and bearer token (see
// options_of_config.hpp).
class PrometheusAlerts {
 public:
  PrometheusAlerts(http::Transport& transport, Clock& clock, Rng& rng, AlertOptions options)
      : transport_(transport), clock_(clock), rng_(rng), options_(std::move(options)) {}

  // Returns the row "prometheus", see alerts_gate(). If `anew` is false, a row that is at most ten seconds old is
  // returned again. Prometheus sends no notification when an alert ends, so `look_again` of a closed gate is 48 to 72
  // seconds ahead. Cancellable.
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
