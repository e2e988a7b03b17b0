#include "sim/call.hpp"

#include <fmt/format.h>
#include <map>
#include <set>

#include "base/text.hpp"

namespace haulout::sim {

namespace {

std::string percent_decode(std::string_view text, bool plus_is_space) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size();
    if (const auto byte = escape ? parse_number<unsigned>(text.substr(i + 1, 2), 16) : std::nullopt) {
      result += static_cast<char>(*byte);
      i += 2;
    } else {
      result += text[i] == '+' && plus_is_space ? ' ' : text[i];
    }
  }
  return result;
}

std::vector<std::string> segments(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    path.remove_prefix(1);
    const auto end = std::min(path.find('/'), path.size());
    if (end > 0) parts.push_back(percent_decode(path.substr(0, end), false));
    path.remove_prefix(end);
  }
  return parts;
}

void parse_query(std::string_view query, std::map<std::string, std::string>& into) {
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    const auto equals = std::min(pair.find('='), pair.size());
    into.emplace(percent_decode(pair.substr(0, equals), true),
                 percent_decode(pair.substr(std::min(equals + 1, pair.size())), true));
    query.remove_prefix(std::min(end + 1, query.size()));
  }
}

// Parses the path: /api/v1/… or /apis/GROUP/VERSION/…, then [namespaces/NS/]RESOURCE[/NAME[/SUBRESOURCE]].
void parse_resource(const std::vector<std::string>& parts, Call& call) {
  std::string group;
  std::size_t next = 2;
  if (parts.size() > 3 && parts[0] == "apis") {
    group = parts[1];
    next = 3;
  } else if (parts.size() < 3 || parts[0] != "api" || parts[1] != "v1") {
    return;
  }
  if (parts[next] == "namespaces" && parts.size() > next + 2 && find_resource(group, parts[next + 2])) {
    call.ns = parts[next + 1];
    next += 2;
  }
  call.info = find_resource(group, parts[next]);
  if (parts.size() > next + 1) call.name = parts[next + 1];
  if (parts.size() > next + 2) call.subresource = parts[next + 2];
}

std::string verb_of(const Call& call) {
  const std::string& method = call.request.method;
  if (method == "POST") return "create";
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE") return call.name.empty() ? "deletecollection" : "delete";
  if (call.truthy("watch")) return "watch";
  return call.name.empty() ? "list" : "get";
}

// Maps the name of a field to the schema of its value or, if the field is a list, of its entries. An empty map allows
// any fields below.
struct Schema {
  std::map<std::string, Schema> fields;
};

// Returns a schema with these fields, which may have any content.
Schema fields(std::initializer_list<const char*> names) {
  Schema schema;
  for (const char* name : names) schema.fields.emplace(name, Schema{});
  return schema;
}

const Schema& metadata_schema() {
  static const Schema schema{
      {{"name", {}},
       {"generateName", {}},
       {"namespace", {}},
       {"selfLink", {}},
       {"uid", {}},
       {"resourceVersion", {}},
       {"generation", {}},
       {"creationTimestamp", {}},
       {"deletionTimestamp", {}},
       {"deletionGracePeriodSeconds", {}},
       {"labels", {}},
       {"annotations", {}},
       {"ownerReferences", fields({"apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"})},
       {"finalizers", {}},
       {"managedFields", {}}}};
  return schema;
}

const Schema& delete_options_schema() {
  static const Schema schema{{{"apiVersion", {}},
                              {"kind", {}},
                              {"gracePeriodSeconds", {}},
                              {"preconditions", {{{"uid", {}}, {"resourceVersion", {}}}}},
                              {"orphanDependents", {}},
                              {"propagationPolicy", {}},
                              {"dryRun", {}},
                              {"ignoreStoreReadErrorWithClusterBreakingPotential", {}}}};
  return schema;
}

const Schema& eviction_schema() {
  static const Schema schema{
      {{"apiVersion", {}}, {"kind", {}}, {"metadata", metadata_schema()}, {"deleteOptions", delete_options_schema()}}};
  return schema;
}

Schema node_status_schema() {
  Schema status =
      fields({"capacity", "allocatable", "phase", "addresses", "daemonEndpoints", "nodeInfo", "images", "volumesInUse",
              "volumesAttached", "config", "runtimeHandlers", "features", "declaredFeatures"});
  status.fields["conditions"] =
      fields({"type", "status", "lastHeartbeatTime", "lastTransitionTime", "reason", "message"});
  return status;
}

const Schema& node_schema() {
  static const Schema schema{{{"apiVersion", {}},
                              {"kind", {}},
                              {"metadata", metadata_schema()},
                              {"spec",
                               {{{"podCIDR", {}},
                                 {"podCIDRs", {}},
                                 {"providerID", {}},
                                 {"unschedulable", {}},
                                 {"taints", fields({"key", "value", "effect", "timeAdded"})},
                                 {"configSource", {}},
                                 {"externalID", {}}}}},
                              {"status", node_status_schema()}}};
  return schema;
}

const Schema& lease_schema() {
  static const Schema schema{{{"apiVersion", {}},
                              {"kind", {}},
                              {"metadata", metadata_schema()},
                              {"spec", fields({"holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime",
                                               "leaseTransitions", "strategy", "preferredHolder"})}}};
  return schema;
}

const Schema& event_schema() {
  static const Schema reference =
      fields({"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"});
  static const Schema schema{{{"apiVersion", {}},
                              {"kind", {}},
                              {"metadata", metadata_schema()},
                              {"eventTime", {}},
                              {"series", fields({"count", "lastObservedTime"})},
                              {"reportingController", {}},
                              {"reportingInstance", {}},
                              {"action", {}},
                              {"reason", {}},
                              {"regarding", reference},
                              {"related", reference},
                              {"note", {}},
                              {"type", {}},
                              {"deprecatedSource", {}},
                              {"deprecatedFirstTimestamp", {}},
                              {"deprecatedLastTimestamp", {}},
                              {"deprecatedCount", {}}}};
  return schema;
}

const Schema& config_map_schema() {
  static const Schema schema{{{"apiVersion", {}},
                              {"kind", {}},
                              {"metadata", metadata_schema()},
                              {"data", {}},
                              {"binaryData", {}},
                              {"immutable", {}}}};
  return schema;
}

void collect(const Json& value, const Schema& schema, const std::string& path, std::vector<std::string>& into) {
  if (schema.fields.empty()) return;
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i) collect(value[i], schema, fmt::format("{}[{}]", path, i), into);
  if (!value.is_object()) return;
  for (const auto& [key, below] : value.items()) {
    if (key.starts_with('$')) continue;  // directive of a strategic merge patch
    const std::string here = path.empty() ? key : fmt::format("{}.{}", path, key);
    const auto known = schema.fields.find(key);
    if (known == schema.fields.end())
      into.push_back(fmt::format("unknown field \"{}\"", here));
    else
      collect(below, known->second, here, into);
  }
}

std::vector<std::string> unknown(const Json& body, const Schema& schema) {
  std::vector<std::string> result;
  collect(body, schema, "", result);
  return result;
}

}  // namespace

std::string Call::bearer_token() const {
  constexpr std::string_view scheme = "Bearer ";
  const std::string authorization = header("Authorization");
  return authorization.starts_with(scheme) ? authorization.substr(scheme.size()) : std::string();
}

std::string Call::manager() const {
  std::string named = option("fieldManager");
  if (!named.empty()) return named;
  const std::string agent = header("User-Agent");
  return agent.substr(0, agent.find('/'));
}

Call parse_call(http::Request request) {
  Call call;
  call.request = std::move(request);
  const std::string_view target = call.request.target;
  const auto question = std::min(target.find('?'), target.size());
  call.path = target.substr(0, question);
  parse_query(target.substr(std::min(question + 1, target.size())), call.query);
  parse_resource(segments(call.path), call);
  call.verb = verb_of(call);
  return call;
}

bool Call::is_dry_run() const {
  if (verb != "delete" || request.body.empty()) return !option("dryRun").empty();
  return !at(Json::parse(request.body, nullptr, false), "/dryRun").empty();
}

std::string AuditEntry::text() const {
  std::string result = verb + " " + resource;
  if (!subresource.empty()) result += "/" + subresource;
  if (!name.empty()) result += " " + (ns.empty() ? name : ns + "/" + name);
  return result + fmt::format(" {}", status);
}

AuditEntry entry_of(const Call& call, std::string user, TimePoint now) {
  AuditEntry entry;
  entry.user = std::move(user);
  entry.time = entry.answered = now;
  entry.verb = call.verb;
  entry.resource = call.info ? std::string(call.info->resource) : call.path;
  entry.subresource = call.subresource;
  entry.ns = call.ns;
  entry.name = call.name;
  const auto question = call.request.target.find('?');
  if (question != std::string::npos) entry.query = call.request.target.substr(question + 1);
  entry.user_agent = call.header("User-Agent");
  entry.dry_run = call.is_dry_run();
  if (call.request.body.empty() || (call.verb != "delete" && call.subresource != "eviction")) return entry;
  const Json body = Json::parse(call.request.body, nullptr, false);
  const Json& options = call.subresource == "eviction" ? at(body, "/deleteOptions") : body;
  entry.uid = text(options, "/preconditions/uid");
  if (at(options, "/gracePeriodSeconds").is_number()) entry.grace_seconds = number(options, "/gracePeriodSeconds");
  if (call.subresource == "eviction" && !at(options, "/dryRun").empty()) entry.dry_run = true;
  return entry;
}

namespace {

// Appends a message for each key that an object of the text has twice. The text must be JSON.
void note_duplicates(std::string_view text, std::vector<std::string>& duplicates) {
  struct Level {
    std::set<std::string> keys;
    std::string last;
  };
  std::vector<Level> levels;
  const auto watch_keys = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) levels.emplace_back();
    if (event == Json::parse_event_t::object_end && !levels.empty()) levels.pop_back();
    if (event == Json::parse_event_t::key && !levels.empty()) {
      levels.back().last = parsed.get<std::string>();
      if (!levels.back().keys.insert(levels.back().last).second) {
        std::string path;
        for (const Level& level : levels) path += (path.empty() ? "" : ".") + level.last;
        duplicates.push_back(fmt::format("duplicate field \"{}\"", path));
      }
    }
    return true;
  };
  static_cast<void>(Json::parse(text, watch_keys, false));
}

std::size_t members_in(const Json& value) {
  std::size_t members = value.is_object() ? value.size() : 0;
  if (value.is_structured())
    for (const Json& below : value) members += members_in(below);
  return members;
}

// Returns the number of keys in a text that is JSON: of the strings before a colon.
std::size_t keys_in(std::string_view text) {
  std::size_t keys = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ':') ++keys;
    if (text[i] != '"') continue;
    for (++i; i < text.size() && text[i] != '"'; ++i)
      if (text[i] == '\\') ++i;
  }
  return keys;
}

}  // namespace

std::optional<Json> parse_json(std::string_view text, std::vector<std::string>* duplicates) {
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) return std::nullopt;
  // Nearly no request has a key twice, so the keys are compared only if the object has fewer of them than the text.
  if (members_in(value) != keys_in(text)) note_duplicates(text, *duplicates);
  return value;
}

std::vector<std::string> unknown_eviction_fields(const Json& body) {
  return unknown(body, eviction_schema());
}
std::vector<std::string> unknown_delete_options_fields(const Json& body) {
  return unknown(body, delete_options_schema());
}
std::vector<std::string> unknown_fields(const ResourceInfo& info, const Json& body) {
  if (!body.is_object()) return {};
  if (info.kind == "Node") return unknown(body, node_schema());
  if (info.kind == "Lease") return unknown(body, lease_schema());
  if (info.kind == "Event") return unknown(body, event_schema());
  if (info.kind == "ConfigMap") return unknown(body, config_map_schema());
  return {};
}

}  // namespace haulout::sim
