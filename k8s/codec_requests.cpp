#include "k8s/codec_requests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/utf8.hpp"
#include "k8s/codec.hpp"

namespace haulout::k8s {
namespace {

using Json = nlohmann::ordered_json;

// Limits of the fields of an Event, in bytes (validation of the API server).
constexpr std::size_t longest_note = 1024;
constexpr std::size_t longest_word = 128;

// Names come from the server or the command line. Bytes that are not UTF-8 must not throw; they are replaced.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Encodes a JSON string. Most strings in requests are names or UIDs, which need no escaping and no library.
std::string json_string(std::string_view text) {
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
  return plain ? fmt::format("\"{}\"", text) : dump(text);
}

// Cuts a text to at most `limit` bytes without cutting a character. The bytes are counted as they are sent.
std::string cut(const std::string& text, std::size_t limit) {
  auto sent = Json::parse(dump(text)).get<std::string>();
  if (sent.size() <= limit) return sent;
  while (limit > 0 && continues_character(sent[limit])) --limit;
  sent.resize(limit);
  return sent;
}

Json owner_reference(const OwnerReference& owner) {
  Json out = {{"apiVersion", owner.api_version}, {"kind", owner.kind}, {"name", owner.name}, {"uid", owner.uid}};
  if (owner.controller) out["controller"] = true;
  return out;
}

void set_if_any(Json& json, const char* key, const std::string& value) {
  if (!value.empty()) json[key] = value;
}

}  // namespace

std::string encode_eviction(std::string_view ns, std::string_view pod, const DeleteOptions& options) {
  return fmt::format(
      R"({{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":{},"namespace":{}}},"deleteOptions":{}}})",
      json_string(pod), json_string(ns), encode_delete_options(options, DryRun::none));
}

std::string encode_delete_options(const DeleteOptions& options, DryRun dry_run) {
  const std::string_view dry = dry_run == DryRun::server ? R"("dryRun":["All"],)" : "";
  const auto grace = options.grace_seconds ? fmt::format(R"("gracePeriodSeconds":{},)", *options.grace_seconds) : "";
  const auto version = options.resource_version.empty()
                           ? std::string()
                           : fmt::format(R"(,"resourceVersion":{})", json_string(options.resource_version));
  return fmt::format(R"({{"apiVersion":"v1","kind":"DeleteOptions",{}{}"preconditions":{{"uid":{}{}}}}})", dry, grace,
                     json_string(options.uid), version);
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

std::string encode_self_review() {
  return dump({{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "SelfSubjectReview"}});
}

std::string encode_lease(const Lease& lease) {
  Json metadata = {{"name", lease.name}, {"namespace", lease.ns}};
  if (!lease.labels.empty()) metadata["labels"] = lease.labels;
  if (lease.owner) metadata["ownerReferences"] = Json::array({owner_reference(*lease.owner)});
  Json spec = Json::object();
  set_if_any(spec, "holderIdentity", lease.holder);
  if (lease.acquire_time) spec["acquireTime"] = format_micro_time(*lease.acquire_time);
  if (lease.renew_time) spec["renewTime"] = format_micro_time(*lease.renew_time);
  return dump({{"apiVersion", "coordination.k8s.io/v1"},
               {"kind", "Lease"},
               {"metadata", std::move(metadata)},
               {"spec", std::move(spec)}});
}

std::string encode_config_map(const ConfigMap& config_map) {
  Json out = {{"apiVersion", "v1"},
              {"kind", "ConfigMap"},
              {"metadata", {{"name", config_map.name}, {"namespace", config_map.ns}}}};
  if (!config_map.data.empty()) out["data"] = config_map.data;
  return dump(out);
}

std::string encode_event(const NodeEvent& event) {
  Json out = {{"apiVersion", "events.k8s.io/v1"},
              {"kind", "Event"},
              {"metadata", {{"name", event.name}, {"namespace", event.ns}}},
              {"eventTime", format_micro_time(event.event_time)},
              {"reportingController", event.reporting_controller},
              {"reportingInstance", cut(event.reporting_instance, longest_word)},
              {"action", cut(event.action, longest_word)},
              {"reason", cut(event.reason, longest_word)},
              {"regarding", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", event.node}, {"uid", event.node_uid}}},
              {"type", event.type == NodeEvent::Type::warning ? "Warning" : "Normal"}};
  set_if_any(out, "note", cut(event.note, longest_note));
  return dump(out);
}

std::string encode_event_series(std::int32_t count, WallTime last_observed) {
  return dump({{"series", {{"count", count}, {"lastObservedTime", format_micro_time(last_observed)}}}});
}

}  // namespace haulout::k8s
