// What Prometheus says, as a gate. Pure: what is sent and what came back are values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/gates/gate_keeper.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

struct AlertOptions {
  std::string query{};                  // PromQL; $node stands for the node's name
  bool fail_open = false;               // while Prometheus does not answer, nodes go
  Duration max_age = Duration::zero();  // older alerts hold nobody back; 0: they do for ever
  std::string username{};               // basic authentication, empty: none
  std::string password_file{};
};

// One series of an instant vector.
struct Sample {
  std::map<std::string, std::string> labels;  // __name__ included
  double time = 0;                            // of the evaluation, in seconds since 1970, by Prometheus' clock
  double value = 0;                           // 0 for a histogram
};

struct QueryAnswer {
  std::vector<Sample> samples;
  std::vector<std::string> warnings;
};

// /api/v1/query's answer. Errc::status with the HTTP status when Prometheus refused or failed; Errc::invalid when the
// query gives no instant vector; Errc::decode for anything that is no answer of Prometheus.
Result<QueryAnswer> decode_query_answer(int http_status, std::string_view body);

// $node, unless a longer name goes on behind it, becomes the node's name.
std::string query_for_node(std::string_view query, std::string_view node);

// Leaves out alerts that have been active for longer than that. `active` is the answer to ALERTS_FOR_STATE, whose
// values are the times since when. The age of a series that is no alert, or has none there, is not known: it stays.
std::vector<Sample> without_old(std::vector<Sample> alerts, const std::vector<Sample>& active, Duration max_age);

// Closed by every series (BlockedByAlert), by a Prometheus that does not answer unless it fails open
// (PrometheusUnavailable), and by one that refuses the query (PrometheusQueryRefused), whatever the fail mode: a slip
// in the query must not open the gate.
Gate alerts_gate(const Result<std::vector<Sample>>& alerts, const AlertOptions& options);

}  // namespace haulout::agent
