// Version, health and discovery endpoints of the API server; also routes the review APIs (api_reviews.cpp).
#include <set>

#include "sim/api_server.hpp"

namespace haulout::sim {
namespace {

using Ordered = nlohmann::ordered_json;

Ordered resource_list(std::string_view group, std::string_view group_version) {
  Ordered resources = Ordered::array();
  for (const ResourceInfo& info : all_resources()) {
    if (info.group != group) continue;
    std::string singular(info.kind);
    for (char& c : singular)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    resources.push_back({{"name", info.resource},
                         {"singularName", singular},
                         {"namespaced", info.namespaced},
                         {"kind", info.kind},
                         {"verbs", {"create", "delete", "get", "list", "patch", "update", "watch"}}});
    if (scalable(info))
      resources.push_back({{"name", std::string(info.resource) + "/scale"},
                           {"singularName", ""},
                           {"namespaced", true},
                           {"group", "autoscaling"},
                           {"version", "v1"},
                           {"kind", "Scale"},
                           {"verbs", {"get", "patch", "update"}}});
    if (info.resource == "pods")
      resources.push_back({{"name", "pods/eviction"},
                           {"singularName", ""},
                           {"namespaced", true},
                           {"group", "policy"},
                           {"version", "v1"},
                           {"kind", "Eviction"},
                           {"verbs", {"create"}}});
  }
  return {{"kind", "APIResourceList"}, {"apiVersion", "v1"}, {"groupVersion", group_version}, {"resources", resources}};
}

Ordered group_list() {
  std::set<std::string> seen;
  Ordered groups = Ordered::array();
  for (const ResourceInfo& info : all_resources()) {
    if (info.group.empty() || !seen.insert(std::string(info.group)).second) continue;
    const Ordered version = {{"groupVersion", info.api_version()}, {"version", info.version}};
    groups.push_back({{"name", info.group}, {"versions", Ordered::array({version})}, {"preferredVersion", version}});
  }
  return {{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", groups}};
}

}  // namespace

http::Response ApiServer::discover(const Call& call) {
  const std::string& path = call.path;
  if (path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" && call.verb == "create")
    return access_review(call);
  if (path == "/apis/authentication.k8s.io/v1/selfsubjectreviews" && call.verb == "create") return self_review(call);
  if (path == "/readyz" || path == "/livez" || path == "/healthz") return plain_text(200, "ok");
  if (path == "/version")
    return json_response(
        200, R"({"major":"1","minor":"36","gitVersion":"v1.36.3+haulout-sim","platform":"simulated/cluster"})");
  if (path == "/api") return json_response(200, R"({"kind":"APIVersions","versions":["v1"]})");
  if (path == "/api/v1") return json_response(200, resource_list("", "v1").dump());
  if (path == "/apis") return json_response(200, group_list().dump());
  for (const ResourceInfo& info : all_resources())
    if (!info.group.empty() && path == "/apis/" + info.api_version())
      return json_response(200, resource_list(info.group, info.api_version()).dump());
  return plain_text(404, "404 page not found\n");
}

}  // namespace haulout::sim
