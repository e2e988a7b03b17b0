#include "agent/gates/alerts.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "base/ascii.hpp"
#include "base/text.hpp"
#include "drain/reasons.hpp"
#include "http/base64.hpp"
#include "k8s/credential_file.hpp"
#include "k8s/requests.hpp"

namespace haulout::agent {

namespace {

using Labels = std::map<std::string, std::string>;
using Verdict = Gate::Verdict;

constexpr std::size_t shown_columns = 120;  // longest text of a series in a message

bool goes_on(char c) {
  return is_alphanumeric(c) || c == '_';
}

// Returns the labels that ALERTS and ALERTS_FOR_STATE share, which identify an alert: its two series differ only in the
// removed labels.
Labels identity(Labels labels) {
  labels.erase("__name__");
  labels.erase("alertstate");
  return labels;
}

// Returns "alert KubeAPIDown {severity="critical"}", or for other series the metric with its labels as in PromQL.
std::string named(const Sample& sample) {
  Labels rest = sample.labels;
  const auto take = [&](const char* label) {
    const auto found = rest.extract(label);
    return found ? found.mapped() : std::string();
  };
  const std::string metric = take("__name__");
  const std::string alert = take("alertname");
  std::string text = alert.empty() ? "series " + metric : "alert " + alert;
  if (!alert.empty() && take("alertstate") == "pending") text += " (pending)";
  std::string inner;
  for (const auto& [label, value] : rest) inner += fmt::format("{}{}=\"{}\"", inner.empty() ? "" : ", ", label, value);
  if (!inner.empty()) text += fmt::format("{}{{{}}}", alert.empty() ? "" : " ", inner);
  return clipped(printable(text), shown_columns);
}

bool refused(const Error& error) {
  return error.code() == Errc::invalid || error.is_status(400);
}

Gate unanswered(const Error& error, const AlertOptions& options) {
  Gate gate{.name = "prometheus", .verdict = Verdict::closed};
  if (refused(error)) {
    gate.reason = reason::prometheus_query_refused;
    gate.message =
        error.message() + "; correct prometheus-query, or prometheus-url if the error is not about the query";
  } else if (options.fail_open) {
    gate.verdict = Verdict::open;
    gate.message =
        "prometheus-fail-mode is open, so updates may begin although it is unknown whether an alert fires: " +
        error.message();
  } else {
    gate.reason = reason::prometheus_unavailable;
    gate.message = "it is unknown whether an alert fires: " + error.message();
  }
  return gate;
}

}  // namespace

std::string query_for_node(std::string_view query, std::string_view node) {
  constexpr std::string_view variable = "$node";
  std::string text;
  for (;;) {
    const std::size_t at = query.find(variable);
    text += query.substr(0, at);
    if (at == std::string_view::npos) return text;
    query.remove_prefix(at + variable.size());
    text += !query.empty() && goes_on(query.front()) ? variable : node;
  }
}

std::vector<Sample> without_old(std::vector<Sample> alerts, const std::vector<Sample>& active, Duration max_age) {
  std::map<Labels, double> since;
  for (const Sample& each : active) since[identity(each.labels)] = each.value;
  const double limit = std::chrono::duration<double>(max_age).count();
  std::erase_if(alerts, [&](const Sample& alert) {
    const auto found = since.find(identity(alert.labels));
    return found != since.end() && alert.time - found->second > limit;
  });
  return alerts;
}

Gate alerts_gate(const Result<std::vector<Sample>>& alerts, const AlertOptions& options) {
  if (!alerts) return unanswered(alerts.error(), options);
  Gate gate{.name = "prometheus", .message = "--prometheus-query returns no series"};
  if (alerts->empty()) return gate;
  gate.verdict = Verdict::closed;
  gate.reason = reason::blocked_by_alert;
  gate.message = named(alerts->front());
  gate.message +=
      alerts->size() == 1 ? " blocks the node" : fmt::format(" and {} more block the node", alerts->size() - 1);
  return gate;
}

namespace asio = boost::asio;

namespace {

// For this time an answer of Prometheus is used again before the node has a slot.
constexpr Duration answer_holds = std::chrono::seconds(10);
// Prometheus writes this series in addition to ALERTS, once for each active alert; the value is the time since which
// the alert has been active (rules/alerting.go).
constexpr const char* active_since = "ALERTS_FOR_STATE";

// Removes the line end with which most password files end.
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
