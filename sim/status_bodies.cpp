#include "sim/status_bodies.hpp"

#include <fmt/format.h>

namespace haulout::sim {

std::string StatusBody::json() const {
  using Ordered = nlohmann::ordered_json;
  Ordered details = Ordered::object();
  if (!name.empty()) details["name"] = name;
  if (!group.empty()) details["group"] = group;
  if (!kind.empty()) details["kind"] = kind;
  for (const Cause& cause : causes) {
    Ordered entry = Ordered::object();
    if (!cause.reason.empty()) entry["reason"] = cause.reason;
    if (!cause.message.empty()) entry["message"] = cause.message;
    if (!cause.field.empty()) entry["field"] = cause.field;
    details["causes"].push_back(std::move(entry));
  }
  if (retry_after > 0) details["retryAfterSeconds"] = retry_after;

  Ordered body = {{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", Ordered::object()}, {"status", "Failure"}};
  if (!continue_token.empty()) body["metadata"]["continue"] = continue_token;
  if (!message.empty()) body["message"] = message;
  if (!reason.empty()) body["reason"] = reason;
  if (!details.empty() || empty_details) body["details"] = std::move(details);
  body["code"] = code;
  // Replace invalid bytes: the message may quote a path that is not valid UTF-8.
  return body.dump(-1, ' ', false, Ordered::error_handler_t::replace);
}

http::Response json_response(int status, std::string json) {
  http::Response response;
  response.status = status;
  response.headers.add("Cache-Control", "no-cache, private");
  response.headers.add("Content-Type", "application/json");
  response.body = std::move(json) + "\n";
  return response;
}

http::Response StatusBody::response() const {
  http::Response response = json_response(code, json());
  if (retry_after > 0) response.headers.add("Retry-After", std::to_string(retry_after));
  if (from_authorizer) response.headers.add("X-Content-Type-Options", "nosniff");
  return response;
}

http::Response success(int code) {
  return json_response(
      code, fmt::format(R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Success","code":{}}})", code));
}

http::Response plain_text(int status, std::string body) {
  http::Response response;
  response.status = status;
  response.headers.add("Content-Type", "text/plain; charset=utf-8");
  response.headers.add("X-Content-Type-Options", "nosniff");
  response.body = std::move(body);
  return response;
}

void add_warnings(http::Response& response, const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) {
    std::string quoted;
    for (const char c : problem) quoted += c == '"' ? std::string("\\\"") : std::string(1, c);
    response.headers.add("Warning", fmt::format("299 - \"{}\"", quoted));
  }
}

namespace {
StatusBody about(int code, std::string_view reason, const ResourceInfo& info, std::string_view name) {
  StatusBody body;
  body.code = code;
  body.reason = reason;
  body.name = name;
  body.group = info.group;
  body.kind = info.resource;
  return body;
}
// Returns the kind with its group, as in some messages of the server: "Lease.coordination.k8s.io", "Pod".
std::string qualified_kind(const ResourceInfo& info) {
  return info.group.empty() ? std::string(info.kind) : fmt::format("{}.{}", info.kind, info.group);
}
}  // namespace

StatusBody not_found(const ResourceInfo& info, std::string_view name) {
  StatusBody body = about(404, "NotFound", info, name);
  body.message = fmt::format("{} \"{}\" not found", info.qualified(), name);
  return body;
}

StatusBody already_exists(const ResourceInfo& info, std::string_view name) {
  StatusBody body = about(409, "AlreadyExists", info, name);
  body.message = fmt::format("{} \"{}\" already exists", info.qualified(), name);
  return body;
}

StatusBody modified_conflict(const ResourceInfo& info, std::string_view name) {
  StatusBody body = about(409, "Conflict", info, name);
  body.message = fmt::format(
      "Operation cannot be fulfilled on {} \"{}\": the object has been modified; please apply your changes to the "
      "latest version and try again",
      info.qualified(), name);
  return body;
}

StatusBody precondition_conflict(const ResourceInfo& info, std::string_view name, std::string_view what,
                                 std::string_view wanted, std::string_view actual) {
  StatusBody body = about(409, "Conflict", info, name);
  body.kind = info.kind;
  body.message = fmt::format(
      "Operation cannot be fulfilled on {} \"{}\": the {} in the precondition ({}) does not match the {} in record "
      "({}). The object might have been {}",
      qualified_kind(info), name, what, wanted, what, actual,
      what == "UID" ? "deleted and then recreated" : "modified");
  return body;
}

StatusBody bad_request(std::string message) {
  StatusBody body;
  body.code = 400;
  body.reason = "BadRequest";
  body.message = std::move(message);
  return body;
}

StatusBody invalid(const ResourceInfo& info, std::string_view name, std::string_view problem) {
  StatusBody body = about(422, "Invalid", info, name);
  body.kind = info.kind;
  // The registry names an Event by its kind in the core group, without a group.
  const bool core = info.kind == "Event";
  if (core) body.group.clear();
  body.message =
      fmt::format("{} \"{}\" is invalid: {}", core ? std::string(info.kind) : qualified_kind(info), name, problem);
  return body;
}

StatusBody namespace_terminating(const ResourceInfo& info, std::string_view name, std::string_view ns) {
  StatusBody body = about(403, "Forbidden", info, name);
  body.message =
      fmt::format("{} \"{}\" is forbidden: unable to create new content in namespace {} because it is being terminated",
                  info.qualified(), name, ns);
  body.causes.push_back(
      {"NamespaceTerminating", fmt::format("namespace {} is being terminated", ns), "metadata.namespace"});
  return body;
}

StatusBody method_not_allowed() {
  StatusBody body;
  body.code = 405;
  body.message = "the server does not allow this method on the requested resource";
  body.reason = "MethodNotAllowed";
  body.empty_details = true;
  return body;
}

StatusBody unsupported_media_type() {
  StatusBody body;
  body.code = 415;
  body.message =
      "the body of the request was in an unknown format - accepted media types include: application/json, "
      "application/yaml, application/vnd.kubernetes.protobuf";
  body.reason = "UnsupportedMediaType";
  body.empty_details = true;
  return body;
}

StatusBody forbidden_by_rbac(std::string_view user, std::string_view verb, const ResourceInfo& info,
                             std::string_view subresource, std::string_view ns, std::string_view name) {
  StatusBody body = about(403, "Forbidden", info, name);
  const std::string subject = name.empty() ? info.qualified() : fmt::format("{} \"{}\"", info.qualified(), name);
  const std::string resource =
      subresource.empty() ? std::string(info.resource) : fmt::format("{}/{}", info.resource, subresource);
  const std::string scope = ns.empty() ? "at the cluster scope" : fmt::format("in the namespace \"{}\"", ns);
  body.message = fmt::format("{} is forbidden: User \"{}\" cannot {} resource \"{}\" in API group \"{}\" {}", subject,
                             user, verb, resource, info.group, scope);
  body.from_authorizer = true;
  return body;
}

StatusBody expired_list() {
  StatusBody body;
  body.code = 410;
  body.message = "The resourceVersion for the provided list is too old.";
  body.reason = "Expired";
  return body;
}

StatusBody expired_continue(std::string token) {
  StatusBody body;
  body.code = 410;
  body.message =
      "The provided continue parameter is too old to display a consistent list result. You can start a new list "
      "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
      "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
      "modified, or deleted between the time the first chunk was returned and now may show up in the list.";
  body.reason = "Expired";
  body.continue_token = std::move(token);
  return body;
}

StatusBody too_large_revision(std::uint64_t wanted, std::uint64_t current) {
  StatusBody body;
  body.code = 504;
  body.message = fmt::format("Timeout: Too large resource version: {}, current: {}", wanted, current);
  body.reason = "Timeout";
  body.causes.push_back({"ResourceVersionTooLarge", "Too large resource version", ""});
  body.retry_after = 1;
  return body;
}

StatusBody unauthorized() {
  StatusBody body;
  body.code = 401;
  body.message = "Unauthorized";
  body.reason = "Unauthorized";
  return body;
}

StatusBody shutting_down() {
  StatusBody body;
  body.code = 503;
  body.message = "apiserver is shutting down";
  body.reason = "ServiceUnavailable";
  return body;
}

http::Response try_again_later() {
  http::Response response = plain_text(429, "The apiserver is shutting down, please try again later.\n");
  response.headers.add("Connection", "close");
  response.headers.add("Retry-After", "5");
  return response;
}

http::Response too_many_requests(int retry_after) {
  http::Response response = plain_text(429, "Too many requests, please try again later.\n");
  response.headers.add("Retry-After", std::to_string(retry_after));
  return response;
}

}  // namespace haulout::sim
