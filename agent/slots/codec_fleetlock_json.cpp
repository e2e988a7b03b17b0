#include "agent/slots/fleetlock_service.hpp"
#include "agent/slots/fleetlock_slots.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/plain_text.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace {

using Json = nlohmann::json;

constexpr int ok = 200;
constexpr std::string_view way_out = "check that fleetlock-url is the base URL of a FleetLock server";

std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? one_line(found->get<std::string>()) : std::string();
}

}  // namespace

std::string encode_fleetlock_request(std::string_view id, std::string_view group) {
  const Json body = {{"client_params", {{"id", id}, {"group", group}}}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<FleetLockParams> decode_fleetlock_request(std::string_view body) {
  const Json json = Json::parse(body, nullptr, false);
  const auto params = json.is_object() ? json.find("client_params") : json.end();
  if (params == json.end() || !params->is_object())
    return Error(Errc::decode, R"(the body must be JSON like {"client_params":{"id":"…","group":"…"}})");
  FleetLockParams result;
  for (const auto& [key, text] : {std::pair("id", &result.id), std::pair("group", &result.group)}) {
    const auto found = params->find(key);
    if (found == params->end() || !found->is_string())
      return Error(Errc::decode, fmt::format("client_params of the body has no text as its {}", key));
    *text = found->get<std::string>();
  }
  return result;
}

std::string encode_fleetlock_answer(std::string_view kind, std::string_view value) {
  const Json body = {{"kind", kind}, {"value", value}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<std::optional<FleetLockRefusal>> judge_fleetlock_answer(const http::Response& response, WallTime now) {
  // The login page of a proxy has status 200, too; failure_of() detects it.
  auto failure = k8s::failure_of(response, now);
  if (response.status == ok && !failure) return std::optional<FleetLockRefusal>();
  const Json json = Json::parse(response.body, nullptr, false);
  if (response.status >= 400 && json.is_object()) {
    FleetLockRefusal refusal{response.status, text_at(json, "kind"), text_at(json, "value")};
    if (!refusal.kind.empty() && !refusal.value.empty()) return std::optional(std::move(refusal));
  }
  if (!failure)
    failure =
        Error(Errc::decode, fmt::format("the server answered {}, which is neither 200 nor an error", response.status));
  Error error(failure->code(), fmt::format("{}; {}", failure->message(), way_out));
  error.peer = failure->peer;
  error.retry_after = failure->retry_after;
  return error;
}

}  // namespace haulout::agent
