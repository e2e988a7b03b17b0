// Decodes Prometheus' response to a query: the JSON part of alerts.hpp.
#include <fmt/format.h>
#include <cmath>

#include <nlohmann/json.hpp>

#include "agent/gates/alerts.hpp"
#include "base/text.hpp"

namespace haulout::agent {
namespace {

using Json = nlohmann::json;

constexpr std::size_t shown_columns = 200;  // longest error message of Prometheus that is shown, in columns

std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Error refusal(int http_status, const Json& json) {
  std::string said;
  if (json.is_object()) said = clipped(printable(text_at(json, "error")), shown_columns);
  Error error(Errc::status,
              fmt::format("Prometheus answered HTTP {}{}{}", http_status, said.empty() ? "" : ": ", said));
  error.peer.emplace();
  error.peer->code = http_status;
  error.peer->reason = json.is_object() ? text_at(json, "errorType") : std::string();
  error.peer->message = said;
  return error;
}

Error strange(std::string_view what) {
  return Error(Errc::decode, fmt::format("this is not an answer of Prometheus: {}; check prometheus-url", what));
}

// Reads a time and a value like [1732190400.123, "1"]. The value may be NaN or infinite; any other text becomes NaN.
bool read_point(const Json& point, Sample& sample) {
  if (!point.is_array() || point.size() != 2 || !point[0].is_number() || !point[1].is_string()) return false;
  sample.time = point[0].get<double>();
  sample.value = parse_number<double>(point[1].get<std::string>()).value_or(std::nan(""));
  return true;
}

bool read_sample(const Json& json, Sample& sample) {
  if (!json.is_object() || !json.contains("metric") || !json["metric"].is_object()) return false;
  for (const auto& [label, value] : json["metric"].items()) {
    if (!value.is_string()) return false;
    sample.labels[label] = value.get<std::string>();
  }
  if (json.contains("value")) return read_point(json["value"], sample);
  const auto histogram = json.find("histogram");
  if (histogram == json.end() || !histogram->is_array() || histogram->empty() || !histogram->front().is_number())
    return false;
  sample.time = histogram->front().get<double>();
  return true;
}

}  // namespace

Result<QueryAnswer> decode_query_answer(int http_status, std::string_view body) {
  const Json json = Json::parse(body, nullptr, false);
  if (http_status != 200) return refusal(http_status, json);
  if (!json.is_object() || text_at(json, "status") != "success" || !json.contains("data") || !json["data"].is_object())
    return strange(clipped(printable(body.substr(0, shown_columns)), shown_columns));
  const Json& data = json["data"];
  const std::string type = text_at(data, "resultType");
  if (type == "scalar" || type == "string" || type == "matrix")
    return Error(Errc::invalid, fmt::format("the query returns a {}, but it must return an instant vector",
                                            type == "matrix" ? "range" : type));
  if (type != "vector" || !data.contains("result") || !data["result"].is_array()) return strange("it has no vector");
  QueryAnswer answer;
  for (const Json& each : data["result"])
    if (!read_sample(each, answer.samples.emplace_back())) return strange("it has a series in an unknown format");
  if (json.contains("warnings") && json["warnings"].is_array())
    for (const Json& each : json["warnings"])
      if (each.is_string()) answer.warnings.push_back(each.get<std::string>());
  return answer;
}

}  // namespace haulout::agent
