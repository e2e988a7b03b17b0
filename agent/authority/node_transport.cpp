#include "agent/authority/node_transport.hpp"

#include "k8s/requests.hpp"

namespace haulout::agent {
namespace {

constexpr std::string_view core = "/api/v1/";

// Returns the value of `key` in the query string, still percent-encoded.
std::string_view parameter(std::string_view target, std::string_view key) {
  const auto question = target.find('?');
  std::string_view rest = question == std::string_view::npos ? std::string_view() : target.substr(question + 1);
  while (!rest.empty()) {
    const auto end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    if (pair.size() > key.size() && pair.starts_with(key) && pair[key.size()] == '=')
      return pair.substr(key.size() + 1);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

// Returns true if the field selector of the request has the requirement `field`=`node`.
bool selects(std::string_view target, std::string_view field, std::string_view node) {
  const std::string comma = k8s::percent_encode(",");
  const std::string wanted = k8s::percent_encode(std::string(field) + "=" + std::string(node));
  std::string_view rest = parameter(target, "fieldSelector");
  while (!rest.empty()) {
    const auto end = std::min(rest.find(comma), rest.size());
    if (rest.substr(0, end) == wanted) return true;
    rest.remove_prefix(std::min(end + comma.size(), rest.size()));
  }
  return false;
}

// Returns the part REST of "namespaces/NS/REST"; any other path as it is.
std::string_view without_namespace(std::string_view path) {
  constexpr std::string_view scope = "namespaces/";
  if (!path.starts_with(scope)) return path;
  const auto end = path.find('/', scope.size());
  return end == std::string_view::npos ? path : path.substr(end + 1);
}

}  // namespace

bool goes_as_node(const http::Request& request, std::string_view node) {
  const std::string_view target = request.target;
  std::string_view path = target.substr(0, target.find('?'));
  if (node.empty() || !path.starts_with(core)) return false;
  path.remove_prefix(core.size());
  const std::string own = "nodes/" + k8s::percent_encode(node);
  const bool reads = request.method == "GET";
  const bool patches = request.method == "PATCH";
  if (path == own) return reads || patches;
  if (path == own + "/status") return patches;
  if (path == "nodes") return reads && selects(target, "metadata.name", node);
  path = without_namespace(path);
  if (path == "pods") return reads && selects(target, "spec.nodeName", node);
  return request.method == "POST" && path.starts_with("pods/") && path.ends_with("/eviction");
}

http::Request NodeTransport::signed_by(http::Request request) const {
  if (goes_as_node(request, node_)) request.headers.set("Impersonate-User", "system:node:" + node_);
  return request;
}

Task<http::Response> NodeTransport::round_trip(http::Request request, TimePoint deadline) {
  return inner_.round_trip(signed_by(std::move(request)), deadline);
}

Task<std::unique_ptr<http::BodyStream>> NodeTransport::open(http::Request request, TimePoint deadline) {
  return inner_.open(signed_by(std::move(request)), deadline);
}

}  // namespace haulout::agent
