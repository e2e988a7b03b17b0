#include "sim/single_objects.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "k8s/codec.hpp"
#include "sim/call.hpp"
#include "sim/pod_lifecycle.hpp"

namespace haulout::sim {

void merge_patch(Json& target, const Json& patch) {
  target.merge_patch(patch);
}

namespace {

// Returns the fields by which a strategic merge patch identifies an entry of the list in `field`. Returns an empty list
// if a patch replaces the whole list in `field`.
std::vector<std::string> merge_keys(const std::string& field) {
  if (field == "conditions") return {"type"};
  if (field == "taints") return {"key", "effect"};
  if (field == "ownerReferences") return {"uid"};
  return {};
}

void merge_list(Json& target, const Json& patch, const std::vector<std::string>& keys) {
  if (!target.is_array()) target = Json::array();
  for (const Json& entry : patch) {
    const auto same = [&](const Json& present) {
      return std::all_of(keys.begin(), keys.end(),
                         [&](const std::string& key) { return present.value(key, "") == entry.value(key, ""); });
    };
    const auto found = std::find_if(target.begin(), target.end(), same);
    if (entry.value("$patch", "") == "delete") {
      if (found != target.end()) target.erase(found);
    } else if (found != target.end()) {
      strategic_merge_patch(*found, entry);
    } else {
      target.push_back(entry);
    }
  }
}

}  // namespace

void strategic_merge_patch(Json& target, const Json& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = Json::object();
  for (const auto& [key, value] : patch.items()) {
    const auto keys = merge_keys(key);
    if (key.starts_with('$')) continue;
    if (value.is_null())
      target.erase(key);
    else if (value.is_array() && !keys.empty())
      merge_list(target[key], value, keys);
    else
      strategic_merge_patch(target[key], value);
  }
}

void book_unschedulable(Json& node, const std::string& manager, WallTime now) {
  Json& entries = node["metadata"]["managedFields"];
  if (!entries.is_array()) entries = Json::array();
  for (Json& entry : entries) {
    Json& fields = entry["fieldsV1"]["f:spec"];
    if (fields.is_object()) fields.erase("f:unschedulable");
    if (fields.empty()) entry["fieldsV1"].erase("f:spec");
  }
  for (auto entry = entries.begin(); entry != entries.end();)
    entry = (*entry)["fieldsV1"].empty() ? entries.erase(entry) : entry + 1;
  if (flag(node, "/spec/unschedulable"))
    entries.push_back({{"manager", manager},
                       {"operation", "Update"},
                       {"apiVersion", "v1"},
                       {"time", k8s::format_time(now)},
                       {"fieldsType", "FieldsV1"},
                       {"fieldsV1", {{"f:spec", {{"f:unschedulable", Json::object()}}}}}});
  if (entries.empty()) node["metadata"].erase("managedFields");
}

namespace {

using Problems = std::vector<std::string>;

constexpr std::size_t longest_label = 63;
constexpr std::size_t longest_note = 1024;
constexpr std::size_t longest_word = 128;

bool digit(char c) {
  return c >= '0' && c <= '9';
}
bool alphanumeric(char c) {
  return digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Returns the decoder's error message unless the time has exactly six decimals: 2026-11-21T01:00:00.000000Z.
std::optional<std::string> micro_time_problem(const std::string& text) {
  constexpr std::size_t seconds_end = 19, fraction = 7;
  const std::string_view rest = std::string_view(text).substr(std::min(text.size(), seconds_end));
  const bool six = rest.size() > fraction && rest.front() == '.' && !digit(rest[fraction]) &&
                   std::all_of(rest.begin() + 1, rest.begin() + fraction, digit);
  if (six) return std::nullopt;
  return fmt::format(R"(parsing time "{}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "{}" as ".000000")", text,
                     rest);
}

std::string field(const Json& object, const char* name) {
  return text(object, ("/" + std::string(name)).c_str());
}

void check_labels(const Json& object, Problems& problems) {
  const Json& labels = at(object, "/metadata/labels");
  if (!labels.is_object()) return;
  for (const auto& [key, value] : labels.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : std::string();
    const bool inner = std::all_of(text.begin(), text.end(),
                                   [](char c) { return alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
    if (text.size() > longest_label)
      problems.push_back(fmt::format("metadata.labels: Invalid value: \"{}\": must be no more than 63 bytes", text));
    else if (!inner || (!text.empty() && (!alphanumeric(text.front()) || !alphanumeric(text.back()))))
      problems.push_back(fmt::format(
          "metadata.labels: Invalid value: \"{}\": a valid label must be an empty string or consist of alphanumeric "
          "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
          "'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
          text));
  }
}

void check_owners(const Json& object, Problems& problems) {
  std::size_t index = 0;
  for (const Json& owner : at(object, "/metadata/ownerReferences")) {
    for (const char* name : {"apiVersion", "kind", "name", "uid"})
      if (field(owner, name).empty())
        problems.push_back(
            fmt::format("metadata.ownerReferences[{}].{}: Invalid value: \"\": must not be empty", index, name));
    ++index;
  }
}

void check_lease(const Json& lease, Problems& problems) {
  const auto seconds = number(lease, "/spec/leaseDurationSeconds", 1);
  if (seconds <= 0)
    problems.push_back(fmt::format("spec.leaseDurationSeconds: Invalid value: {}: must be greater than 0", seconds));
}

void check_series(const Json& event, Problems& problems) {
  if (!at(event, "/series").is_object()) return;
  if (number(event, "/series/count") < 2) problems.push_back("series.count: Invalid value: \"\": should be at least 2");
  if (text(event, "/series/lastObservedTime").empty()) problems.push_back("series.lastObservedTime: Required value");
}

void check_new_event(const Json& event, Problems& problems) {
  if (text(event, "/eventTime").empty()) problems.push_back("eventTime: Required value");
  for (const char* name : {"reportingController", "reportingInstance", "action", "reason"})
    if (field(event, name).empty()) problems.push_back(fmt::format("{}: Required value", name));
  for (const char* name : {"reportingInstance", "action", "reason"})
    if (field(event, name).size() > longest_word)
      problems.push_back(fmt::format("{}: Invalid value: \"\": can have at most {} characters", name, longest_word));
  if (field(event, "note").size() > longest_note)
    problems.push_back(fmt::format("message: Invalid value: \"\": can have at most {} characters", longest_note));
  const std::string type = field(event, "type");
  if (type != "Normal" && type != "Warning")
    problems.push_back(fmt::format("type: Invalid value: \"\": has invalid value: {}", type));
  if (event.contains("deprecatedCount")) problems.push_back("count: Invalid value: \"\": needs to be unset");
}

// Reports each immutable field of an Event that an update changes; the series may change. The registry's messages use
// the field names of core/v1.
void check_same_event(const Json& event, const Json& before, Problems& problems) {
  for (const auto& [own, name] :
       {std::pair{"note", "message"}, std::pair{"reason", "reason"}, std::pair{"action", "action"},
        std::pair{"type", "type"}, std::pair{"eventTime", "eventTime"}, std::pair{"regarding", "involvedObject"},
        std::pair{"reportingController", "reportingController"}, std::pair{"reportingInstance", "reportingInstance"}}) {
    const Json now = event.value(own, Json()), then = before.value(own, Json());
    if (now != then) problems.push_back(fmt::format("{}: Invalid value: {}: field is immutable", name, now.dump()));
  }
}

// Returns the error message of the real server's decoder if a value is a MicroTime without exactly six decimals;
// nullopt otherwise.
std::optional<std::string> undecodable(const ResourceInfo& info, const Json& object) {
  std::vector<std::string> times;
  if (info.resource == "leases") times = {"/spec/acquireTime", "/spec/renewTime"};
  if (info.resource == "events") times = {"/eventTime", "/series/lastObservedTime"};
  for (const std::string& pointer : times) {
    const std::string time = text(object, pointer.c_str());
    if (time.empty()) continue;
    if (auto problem = micro_time_problem(time)) return problem;
  }
  return std::nullopt;
}

// Returns a refusal with 422 if the object is invalid. Checks what an agent writes (Leases, Events, labels) as the API
// server does. `before` is the stored object, or null if the object is new.
std::optional<StatusBody> refused(const ResourceInfo& info, const Json& object, const Json& before) {
  Problems problems;
  check_labels(object, problems);
  check_owners(object, problems);
  if (info.resource == "leases") check_lease(object, problems);
  if (info.resource == "events") {
    if (before.is_null())
      check_new_event(object, problems);
    else
      check_same_event(object, before, problems);
    check_series(object, problems);
  }
  if (problems.empty()) return std::nullopt;
  const std::string all = problems.size() == 1 ? problems.front() : fmt::format("[{}]", fmt::join(problems, ", "));
  return invalid(info, name_of(object), all);
}

}  // namespace

http::Response SingleObjects::get(const Call& call) const {
  const Object object = world_.store.get(call.key());
  return object ? json_response(200, texts_.of(object)) : not_found(*call.info, call.name).response();
}

// Returns the scale subresource in autoscaling/v1, in which spec.replicas is absent if it is 0.
http::Response SingleObjects::get_scale(const Call& call) const {
  const Object object = world_.store.get(call.key());
  if (!object) return not_found(*call.info, call.name).response();
  Json metadata = Json::object();
  for (const char* field : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"})
    if (const Json& value = (*object)["metadata"]; value.contains(field)) metadata[field] = value[field];
  std::string selector;
  for (const auto& [key, value] : at(*object, "/spec/selector/matchLabels").items())
    selector += (selector.empty() ? "" : ",") + key + "=" + value.get<std::string>();
  Json spec = Json::object();
  if (const auto replicas = number(*object, "/spec/replicas", 1); replicas != 0) spec["replicas"] = replicas;
  Json status = {{"replicas", number(*object, "/status/replicas")}};
  if (!selector.empty()) status["selector"] = selector;
  const Json scale = {
      {"kind", "Scale"}, {"apiVersion", "autoscaling/v1"}, {"metadata", metadata}, {"spec", spec}, {"status", status}};
  return json_response(200, scale.dump());
}

std::optional<StatusBody> SingleObjects::namespace_problem(const Call& call) const {
  if (!call.info->namespaced) return std::nullopt;
  const Object ns = world_.store.get({"namespaces", "", call.ns});
  if (!ns) return not_found(*find_resource("namespaces"), call.ns);
  if (terminating(*ns)) return namespace_terminating(*call.info, call.name, call.ns);
  return std::nullopt;
}

namespace {

// Returns the object in the body. If the body cannot be decoded, returns nullopt and sets `refusal`. Appends unknown
// and duplicate fields to `problems`.
std::optional<Json> decode_body(const Call& call, std::vector<std::string>& problems, StatusBody& refusal) {
  auto parsed = parse_json(call.request.body, &problems);
  if (!parsed || !parsed->is_object()) {
    refusal = bad_request("the object provided is unrecognized: json parse error: unexpected end of JSON input");
    return std::nullopt;
  }
  for (std::string& problem : unknown_fields(*call.info, *parsed)) problems.push_back(std::move(problem));
  std::optional<std::string> reason = undecodable(*call.info, *parsed);
  if (!reason && !problems.empty() && call.option("fieldValidation") == "Strict")
    reason = fmt::format("strict decoding error: {}", fmt::join(problems, ", "));
  if (!reason) return parsed;
  refusal = bad_request(fmt::format("{0} in version \"{1}\" cannot be handled as a {0}: {2}", call.info->kind,
                                    call.info->version, *reason));
  return std::nullopt;
}

}  // namespace

http::Response SingleObjects::create(const Call& call) {
  std::vector<std::string> problems;
  StatusBody refusal;
  auto decoded = decode_body(call, problems, refusal);
  if (!decoded) return refusal.response();
  Json object = *std::move(decoded);
  Call named = call;
  named.name = name_of(object);
  if (named.name.empty()) {
    const std::string prefix = text(object, "/metadata/generateName");
    if (prefix.empty())
      return invalid(*call.info, "", "metadata.name: Required value: name or generateName is required").response();
    named.name = prefix + world_.store.new_uid().substr(0, 5);
    object["metadata"]["name"] = named.name;
  }
  if (auto problem = namespace_problem(named)) return problem->response();
  if (const std::string ns = ns_of(object); call.info->namespaced && !ns.empty() && ns != call.ns)
    return bad_request("the namespace of the provided object does not match the namespace sent on the request")
        .response();
  if (auto problem = refused(*call.info, object, Json())) return problem->response();
  if (call.info->namespaced) object["metadata"]["namespace"] = call.ns;
  if (call.info->resource == "pods") object["status"] = {{"phase", "Pending"}};
  object["metadata"].erase("uid");
  if (!call.option("dryRun").empty())
    return world_.store.get(named.key()) ? already_exists(*call.info, named.name).response()
                                         : json_response(201, object.dump());
  const Object stored = world_.store.create(call.info->resource, std::move(object));
  if (!stored) return already_exists(*call.info, named.name).response();
  http::Response response = json_response(201, texts_.of(stored));
  if (call.option("fieldValidation") != "Ignore") add_warnings(response, problems);
  return response;
}

http::Response SingleObjects::update(const Call& call) {
  const Json body = Json::parse(call.request.body, nullptr, false);
  if (!body.is_object()) return bad_request("the object provided is unrecognized").response();
  const Object before = world_.store.get(call.key());
  if (!before) {
    // As on the real server, PUT creates a missing Lease, even with a stale resourceVersion.
    return call.info->resource == "leases" ? create(call) : not_found(*call.info, call.name).response();
  }
  const std::string version = text(body, "/metadata/resourceVersion");
  if (version.empty() && call.info->resource == "leases")
    return invalid(*call.info, call.name, "metadata.resourceVersion: Invalid value: 0: must be specified for an update")
        .response();
  if (!version.empty() && version != text(*before, "/metadata/resourceVersion"))
    return modified_conflict(*call.info, call.name).response();
  Json after = body;
  after["kind"] = call.info->kind;
  after["apiVersion"] = call.info->api_version();
  if (auto problem = refused(*call.info, after, *before)) return problem->response();
  for (const char* field :
       {"uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"})
    if (before->at("metadata").contains(field)) after["metadata"][field] = before->at("metadata")[field];
  if (call.info->resource == "nodes" && flag(after, "/spec/unschedulable") != flag(*before, "/spec/unschedulable"))
    book_unschedulable(after, call.manager(), world_.wall_now());
  return json_response(200, texts_.of(world_.store.update(call.key(), std::move(after))));
}

http::Response SingleObjects::remove(const Call& call) {
  const Json body = call.request.body.empty() ? Json::object() : Json::parse(call.request.body, nullptr, false);
  if (!body.is_object()) return bad_request("the object provided is unrecognized").response();
  const auto unknown = unknown_delete_options_fields(body);
  if (call.option("fieldValidation") == "Strict" && !unknown.empty())
    return bad_request(fmt::format("DeleteOptions in version \"v1\" cannot be handled as a DeleteOptions: strict "
                                   "decoding error: {}",
                                   fmt::join(unknown, ", ")))
        .response();
  const Object object = world_.store.get(call.key());
  if (!object) return not_found(*call.info, call.name).response();
  const std::string uid = text(body, "/preconditions/uid"), version = text(body, "/preconditions/resourceVersion");
  if (!uid.empty() && uid != uid_of(*object))
    return precondition_conflict(*call.info, call.name, "UID", uid, uid_of(*object)).response();
  if (const std::string actual = text(*object, "/metadata/resourceVersion"); !version.empty() && version != actual)
    return precondition_conflict(*call.info, call.name, "ResourceVersion", version, actual).response();
  if (call.is_dry_run()) return json_response(200, texts_.of(object));

  std::optional<std::int64_t> grace;
  if (at(body, "/gracePeriodSeconds").is_number()) grace = number(body, "/gracePeriodSeconds");
  const Deletion deletion = delete_gracefully(world_, call.key(), grace);
  if (call.info->resource == "pods" || !deletion.gone) return json_response(200, texts_.of(deletion.object));
  nlohmann::ordered_json details = {{"name", call.name}};
  if (!call.info->group.empty()) details["group"] = call.info->group;
  details["kind"] = call.info->resource;
  details["uid"] = uid_of(*object);
  return json_response(
      200, fmt::format(R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Success","details":{}}})",
                       details.dump()));
}

namespace {

StatusBody rejected_patch() {
  StatusBody body;
  body.code = 422;
  body.message = "the server rejected our request due to an error in our request";
  body.reason = "Invalid";
  body.empty_details = true;
  return body;
}

std::optional<StatusBody> apply(const std::string& type, const Json& patch, Json& object) {
  if (type == "application/json-patch+json") {
    if (!patch.is_array())
      return bad_request(
          "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp");
    try {
      object = object.patch(patch);
    } catch (const Json::exception&) {
      return rejected_patch();
    }
    return std::nullopt;
  }
  if (!patch.is_object()) return bad_request("error decoding patch: the patch is no JSON object");
  if (type == "application/merge-patch+json")
    merge_patch(object, patch);
  else if (type == "application/strategic-merge-patch+json")
    strategic_merge_patch(object, patch);
  else
    return unsupported_media_type();
  return std::nullopt;
}

// Normalises a new state as the registry does before it stores it: removes empty metadata fields, and
// spec.unschedulable if it is false.
void normalise(Json& object) {
  Json& metadata = object["metadata"];
  for (const char* map : {"labels", "annotations", "finalizers", "managedFields"})
    if (metadata.contains(map) && metadata[map].empty()) metadata.erase(map);
  if (object.contains("spec") && object["spec"].is_object() && at(object, "/spec/unschedulable") == false)
    object["spec"].erase("unschedulable");
}

// Keeps the old status in a write of the main resource, and the old spec in a write of the status subresource.
void keep_other_half(const Call& call, const Json& before, Json& after) {
  const bool has_status = call.info->resource == "pods" || call.info->resource == "nodes" ||
                          call.info->resource == "poddisruptionbudgets" || call.info->group == "apps" ||
                          call.info->group == eviction_request_group;
  if (!has_status) return;
  const char* half = call.subresource == "status" ? "spec" : "status";
  if (before.contains(half))
    after[half] = before[half];
  else
    after.erase(half);
}

std::size_t annotation_bytes(const Json& object) {
  std::size_t bytes = 0;
  const Json& annotations = at(object, "/metadata/annotations");
  if (annotations.is_object())
    for (const auto& [key, value] : annotations.items())
      bytes += key.size() + (value.is_string() ? value.get_ref<const std::string&>().size() : 0);
  return bytes;
}

}  // namespace

http::Response SingleObjects::patch(const Call& call) {
  const ResourceInfo& info = *call.info;
  std::vector<std::string> problems;
  const auto parsed = parse_json(call.request.body, &problems);
  if (!parsed) return bad_request("error decoding patch: invalid character in the patch").response();
  for (std::string& problem : unknown_fields(info, *parsed)) problems.push_back(std::move(problem));
  const Object before = world_.store.get(call.key());
  if (!before) return not_found(info, call.name).response();

  Json after = *before;
  const std::string type = call.header("Content-Type");
  if (auto problem = apply(type.substr(0, type.find(';')), *parsed, after)) return problem->response();
  const std::string validation = call.option("fieldValidation");
  std::optional<std::string> reason = undecodable(info, after);
  if (!reason && validation == "Strict" && !problems.empty())
    reason = fmt::format("strict decoding error: {}", fmt::join(problems, ", "));
  if (reason)
    return invalid(info, call.name, fmt::format("patch: Invalid value: \"{}\": {}", after.dump(), *reason)).response();
  // The real server compares the resourceVersions first, also if the patch changes nothing.
  if (text(after, "/metadata/resourceVersion") != text(*before, "/metadata/resourceVersion"))
    return modified_conflict(info, call.name).response();
  for (const char* field : {"uid", "name", "namespace"})
    if (at(after, "/metadata").value(field, Json()) != at(*before, "/metadata").value(field, Json()))
      return invalid(info, call.name,
                     fmt::format("metadata.{}: Invalid value: {}: field is immutable", field,
                                 at(after, "/metadata").value(field, Json()).dump()))
          .response();
  if (auto problem = refused(info, after, *before)) return problem->response();
  if (annotation_bytes(after) > 262'144)
    return invalid(info, call.name, "metadata.annotations: Too long: may not be more than 262144 bytes").response();

  keep_other_half(call, *before, after);
  normalise(after);
  if (info.resource == "nodes" && flag(after, "/spec/unschedulable") != flag(*before, "/spec/unschedulable"))
    book_unschedulable(after, call.manager(), world_.wall_now());
  const Object stored =
      call.option("dryRun").empty() ? world_.store.update(call.key(), std::move(after)) : object_from(std::move(after));
  http::Response response = json_response(200, texts_.of(stored));
  if (validation != "Ignore") add_warnings(response, problems);
  return response;
}

}  // namespace haulout::sim
