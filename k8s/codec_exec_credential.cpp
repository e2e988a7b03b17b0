#include "k8s/codec_exec_credential.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "http/base64.hpp"
#include "k8s/codec.hpp"
#include "k8s/yaml_codec.hpp"

namespace haulout::k8s {
namespace {

using Json = nlohmann::json;

Error bad_answer(const std::string& cause) {
  return Error(Errc::unavailable, "its output " + cause);
}

// Returns false if the field is present and not a string. Leaves `value` unchanged if the field is absent or null.
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
    if (!ca_pem.empty()) cluster["certificate-authority-data"] = http::base64_encode(ca_pem);
    spec["cluster"] = std::move(cluster);
  }
  return Json{{"kind", "ExecCredential"}, {"apiVersion", plugin.api_version}, {"spec", std::move(spec)}}.dump();
}

Result<ExecCredential> decode_exec_credential(std::string_view output, const std::string& api_version) {
  Json json = Json::parse(output, nullptr, false);
  if (!json.is_object())
    if (const auto converted = yaml_to_json(output)) json = Json::parse(*converted, nullptr, false);
  if (!json.is_object()) return bad_answer("is neither a JSON nor a YAML object; expected an ExecCredential on stdout");
  std::string kind;
  std::string version;
  if (!read_string(json, "kind", kind) || kind != "ExecCredential")
    return bad_answer("is not an ExecCredential: `kind` is missing or different");
  if (!read_string(json, "apiVersion", version) || version != api_version)
    return bad_answer(
        fmt::format("has an apiVersion other than {} of the kubeconfig; set both to the same", api_version));
  const auto status = json.find("status");
  if (status == json.end() || !status->is_object())
    return bad_answer("has no status, which would hold the credentials");

  ExecCredential credential;
  std::string expiration;
  if (!read_string(*status, "token", credential.token) ||
      !read_string(*status, "clientCertificateData", credential.client_cert_pem) ||
      !read_string(*status, "clientKeyData", credential.client_key_pem) ||
      !read_string(*status, "expirationTimestamp", expiration))
    return bad_answer("has a status field that is not a string");
  if (credential.token.empty() && credential.client_cert_pem.empty() && credential.client_key_pem.empty())
    return bad_answer("has neither a token nor a certificate with its key");
  if (credential.client_cert_pem.empty() != credential.client_key_pem.empty())
    return bad_answer("has a certificate or a key, but not both");
  if (!is_token(credential.token)) return bad_answer("has a token with blanks or control characters");
  if (!expiration.empty()) {
    auto time = parse_time(expiration);
    if (!time) return bad_answer("has an expirationTimestamp that is not an RFC 3339 time");
    credential.expiration = *time;
  }
  return credential;
}

}  // namespace haulout::k8s
