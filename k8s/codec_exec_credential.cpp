#include "k8s/codec_exec_credential.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "k8s/base64.hpp"

namespace haulout::k8s {
namespace {

using Json = nlohmann::json;

Error bad_answer(const std::string& cause) {
  return Error(Errc::unavailable, "its output " + cause);
}

// RFC 3339, fractions of a second dropped: "2026-01-02T03:04:05Z" or with an offset.
std::optional<WallTime> parse_time(const std::string& text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, read = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2d%*1[Tt]%2d:%2d:%2d%n", &year, &month, &day, &hour, &minute, &second,
                  &read) != 6 ||
      read == 0)
    return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (!date.ok() || hour > 23 || minute > 59 || second > 60 || hour < 0 || minute < 0 || second < 0)
    return std::nullopt;
  std::size_t at = static_cast<std::size_t>(read);
  if (at < text.size() && text[at] == '.') at = std::min(text.find_first_not_of("0123456789", at + 1), text.size());
  const std::string zone = text.substr(at);
  std::chrono::minutes offset{0};
  if (zone != "Z" && zone != "z") {
    int hours = 0, minutes = 0;
    if (zone.size() != 6 || (zone[0] != '+' && zone[0] != '-') ||
        std::sscanf(zone.c_str() + 1, "%2d:%2d", &hours, &minutes) != 2)
      return std::nullopt;
    offset = std::chrono::hours(hours) + std::chrono::minutes(minutes);
    if (zone[0] == '-') offset = -offset;
  }
  return WallTime(std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
                  std::chrono::seconds(second) - offset);
}

// False when it is there and no string.
bool read_string(const Json& object, const char* key, std::string& value) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return true;
  if (!found->is_string()) return false;
  value = found->get<std::string>();
  return true;
}

bool is_token(const std::string& token) {
  return std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace

std::string encode_exec_info(const ExecPlugin& plugin, bool interactive, const std::string& ca_pem) {
  Json spec = {{"interactive", interactive}};
  if (plugin.provide_cluster_info) {
    Json cluster = Json::parse(plugin.cluster_info_json, nullptr, false);
    if (!cluster.is_object()) cluster = Json::object();
    if (!ca_pem.empty()) cluster["certificate-authority-data"] = base64_encode(ca_pem);
    spec["cluster"] = std::move(cluster);
  }
  return Json{{"kind", "ExecCredential"}, {"apiVersion", plugin.api_version}, {"spec", std::move(spec)}}.dump();
}

Result<ExecCredential> decode_exec_credential(std::string_view output, const std::string& api_version) {
  const Json json = Json::parse(output, nullptr, false);
  if (!json.is_object()) return bad_answer("is no JSON object; expected an ExecCredential on stdout");
  std::string kind;
  std::string version;
  if (!read_string(json, "kind", kind) || kind != "ExecCredential")
    return bad_answer("is no ExecCredential (see its `kind`)");
  if (!read_string(json, "apiVersion", version) || version != api_version)
    return bad_answer(
        fmt::format("has another apiVersion than the {} of the kubeconfig; set both to the same", api_version));
  const auto status = json.find("status");
  if (status == json.end() || !status->is_object())
    return bad_answer("has no status, which would hold the credentials");

  ExecCredential credential;
  std::string expiration;
  if (!read_string(*status, "token", credential.token) ||
      !read_string(*status, "clientCertificateData", credential.client_cert_pem) ||
      !read_string(*status, "clientKeyData", credential.client_key_pem) ||
      !read_string(*status, "expirationTimestamp", expiration))
    return bad_answer("has a status field that is no string");
  if (credential.token.empty() && credential.client_cert_pem.empty() && credential.client_key_pem.empty())
    return bad_answer("has neither a token nor a certificate with its key");
  if (credential.client_cert_pem.empty() != credential.client_key_pem.empty())
    return bad_answer("has a certificate or a key, but not both");
  if (!is_token(credential.token)) return bad_answer("has a token with blanks or control characters");
  if (!expiration.empty()) {
    credential.expiration = parse_time(expiration);
    if (!credential.expiration) return bad_answer("has an expirationTimestamp that is no RFC 3339 time");
  }
  return credential;
}

}  // namespace haulout::k8s
