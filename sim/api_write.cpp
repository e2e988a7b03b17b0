// GET, POST, PUT and DELETE of single objects.
#include <fmt/format.h>

#include "sim/api_server.hpp"
#include "sim/merge.hpp"
#include "sim/pod_lifecycle.hpp"
#include "sim/strict_json.hpp"
#include "sim/validation.hpp"

namespace haulout::sim {

http::Response ApiServer::get(const Call& call) {
  const Object object = world_.store.get(call.key());
  return object ? json_response(200, object->dump()) : not_found(*call.info, call.name).response();
}

// The scale subresource in autoscaling/v1, which omits spec.replicas if it is 0.
http::Response ApiServer::get_scale(const Call& call) {
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

std::optional<StatusBody> ApiServer::namespace_problem(const Call& call) {
  if (!call.info->namespaced) return std::nullopt;
  const Object ns = world_.store.get({"namespaces", "", call.ns});
  if (!ns) return not_found(*find_resource("namespaces"), call.ns);
  if (terminating(*ns)) return namespace_terminating(*call.info, call.name, call.ns);
  return std::nullopt;
}

namespace {

// Returns the object in the body. Returns nullopt and sets `refusal` if the body cannot be decoded. Appends unknown and
// duplicate fields to `problems`.
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

http::Response ApiServer::create(const Call& call) {
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
  http::Response response = json_response(201, stored->dump());
  if (call.option("fieldValidation") != "Ignore") add_warnings(response, problems);
  return response;
}

http::Response ApiServer::update(const Call& call) {
  const Json body = Json::parse(call.request.body, nullptr, false);
  if (!body.is_object()) return bad_request("the object provided is unrecognized").response();
  const Object before = world_.store.get(call.key());
  if (!before) {
    // PUT creates a missing Lease, even if its resourceVersion is stale.
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
  return json_response(200, world_.store.update(call.key(), std::move(after))->dump());
}

http::Response ApiServer::remove(const Call& call) {
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
  if (call.is_dry_run()) return json_response(200, object->dump());

  std::optional<std::int64_t> grace;
  if (at(body, "/gracePeriodSeconds").is_number()) grace = number(body, "/gracePeriodSeconds");
  const Deletion deletion = delete_gracefully(world_, call.key(), grace);
  if (call.info->resource == "pods" || !deletion.gone) return json_response(200, deletion.object->dump());
  nlohmann::ordered_json details = {{"name", call.name}};
  if (!call.info->group.empty()) details["group"] = call.info->group;
  details["kind"] = call.info->resource;
  details["uid"] = uid_of(*object);
  return json_response(
      200, fmt::format(R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Success","details":{}}})",
                       details.dump()));
}

}  // namespace haulout::sim
