#include "agent/gates/prometheus.hpp"

#include "base/text.hpp"
#include "http/base64.hpp"
#include "k8s/credential_file.hpp"
#include "k8s/requests.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

constexpr Duration answer_holds = std::chrono::seconds(10);
// Prometheus writes this series beside ALERTS, once for each active alert; the value is the time since which the alert
// has been active (rules/alerting.go).
constexpr const char* active_since = "ALERTS_FOR_STATE";

// Removes the line end that files with passwords usually have.
std::string without_line_end(std::string text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  return text;
}

}  // namespace

asio::awaitable<Gate> PrometheusAlerts::judge(std::string node, bool anew, TimePoint deadline) {
  if (!anew && last_ && clock_.now() - last_at_ < answer_holds) co_return *last_;
  Gate gate = alerts_gate(co_await alerts(std::move(node), deadline), options_);
  if (gate.closed())
    gate.look_again = clock_.wall_now() + std::chrono::duration_cast<WallTime::duration>(
                                              rng_.between(std::chrono::seconds(48), std::chrono::seconds(72)));
  last_ = gate;
  last_at_ = clock_.now();
  co_return gate;
}

Task<std::vector<Sample>> PrometheusAlerts::alerts(std::string node, TimePoint deadline) {
  CO_TRY(QueryAnswer answer, co_await query(query_for_node(options_.query, node), deadline));
  if (answer.samples.empty() && !answer.warnings.empty())
    co_return Error(Errc::unavailable,
                    "Prometheus answered with nothing but a warning: " + printable(answer.warnings[0]));
  if (answer.samples.empty() || options_.max_age <= Duration::zero()) co_return std::move(answer.samples);
  // If the ages cannot be queried, all alerts count.
  auto active = co_await query(active_since, deadline);
  if (!active) co_return std::move(answer.samples);
  co_return without_old(std::move(answer.samples), active->samples, options_.max_age);
}

Task<QueryAnswer> PrometheusAlerts::query(std::string promql, TimePoint deadline) {
  http::Request request;
  request.target = "/api/v1/query?query=" + k8s::percent_encode(promql);
  request.headers.set("Accept", "application/json");
  if (!options_.username.empty()) {
    auto password = k8s::read_credential_file("prometheus-password-file", options_.password_file);
    if (!password) co_return std::move(password).error();
    request.headers.set("Authorization",
                        http::basic_credentials(options_.username, without_line_end(*std::move(password))));
  }
  auto response = co_await transport_.round_trip(std::move(request), deadline);
  if (!response) co_return std::move(response).error();
  co_return decode_query_answer(response->status, response->body);
}

}  // namespace haulout::agent
