// PATCH: merge, strategic merge and JSON patches, with their validation.
#include <fmt/format.h>

#include "sim/api_server.hpp"
#include "sim/merge.hpp"
#include "sim/strict_json.hpp"
#include "sim/validation.hpp"

namespace haulout::sim {
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

// Normalises a new state as the registry does before it stores it: removes empty metadata fields and a false
// spec.unschedulable.
void normalise(Json& object) {
  Json& metadata = object["metadata"];
  for (const char* map : {"labels", "annotations", "finalizers", "managedFields"})
    if (metadata.contains(map) && metadata[map].empty()) metadata.erase(map);
  if (object.contains("spec") && object["spec"].is_object() && at(object, "/spec/unschedulable") == false)
    object["spec"].erase("unschedulable");
}

// A write of the main resource keeps the old status; a write of the status subresource keeps the old spec.
void keep_other_half(const Call& call, const Json& before, Json& after) {
  const bool has_status = call.info->resource == "pods" || call.info->resource == "nodes" ||
                          call.info->resource == "poddisruptionbudgets" || call.info->group == "apps";
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

http::Response ApiServer::patch(const Call& call) {
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
  for (const char* field : {"uid", "name", "namespace"})
    if (at(after, "/metadata").value(field, Json()) != at(*before, "/metadata").value(field, Json()))
      return invalid(info, call.name,
                     fmt::format("metadata.{}: Invalid value: {}: field is immutable", field,
                                 at(after, "/metadata").value(field, Json()).dump()))
          .response();
  // The server compares the resourceVersions even if the patch changes nothing.
  if (text(after, "/metadata/resourceVersion") != text(*before, "/metadata/resourceVersion"))
    return modified_conflict(info, call.name).response();
  if (auto problem = refused(info, after, *before)) return problem->response();
  if (annotation_bytes(after) > 262'144)
    return invalid(info, call.name, "metadata.annotations: Too long: may not be more than 262144 bytes").response();

  keep_other_half(call, *before, after);
  normalise(after);
  if (info.resource == "nodes" && flag(after, "/spec/unschedulable") != flag(*before, "/spec/unschedulable"))
    book_unschedulable(after, call.manager(), world_.wall_now());
  const Object stored = call.option("dryRun").empty() ? world_.store.update(call.key(), std::move(after))
                                                      : std::make_shared<const Json>(std::move(after));
  http::Response response = json_response(200, stored->dump());
  if (validation != "Ignore") add_warnings(response, problems);
  return response;
}

}  // namespace haulout::sim
