#include "k8s/codec_requests.hpp"

#include <nlohmann/json.hpp>

namespace haulout::k8s {
namespace {

using Json = nlohmann::ordered_json;

Json delete_options(const DeleteOptions& options) {
  Json out = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
  if (options.grace_seconds) out["gracePeriodSeconds"] = *options.grace_seconds;
  out["preconditions"] = {{"uid", options.uid}};
  return out;
}

// Names come from the server or the command line; bytes that are no UTF-8 must not throw.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void set_if_any(Json& json, const char* key, const std::string& value) {
  if (!value.empty()) json[key] = value;
}

}  // namespace

std::string encode_eviction(std::string_view ns, std::string_view pod, const DeleteOptions& options) {
  const Json out = {{"apiVersion", "policy/v1"},
                    {"kind", "Eviction"},
                    {"metadata", {{"name", pod}, {"namespace", ns}}},
                    {"deleteOptions", delete_options(options)}};
  return dump(out);
}

std::string encode_delete_options(const DeleteOptions& options) {
  return dump(delete_options(options));
}

std::string encode_access_review(const ResourceAttributes& attributes) {
  Json asked = {{"verb", attributes.verb}};
  set_if_any(asked, "group", attributes.group);
  set_if_any(asked, "resource", attributes.resource);
  set_if_any(asked, "subresource", attributes.subresource);
  set_if_any(asked, "namespace", attributes.ns);
  set_if_any(asked, "name", attributes.name);
  const Json out = {{"apiVersion", "authorization.k8s.io/v1"},
                    {"kind", "SelfSubjectAccessReview"},
                    {"spec", {{"resourceAttributes", std::move(asked)}}}};
  return dump(out);
}

}  // namespace haulout::k8s
