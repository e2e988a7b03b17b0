#include "sim/cluster.hpp"

#include "sim/cluster_parts.hpp"
#include "sim/loader.hpp"
#include "sim/single_objects.hpp"

namespace haulout::sim {

Key key_of(std::string_view resource, std::string_view ns, std::string_view name) {
  const ResourceInfo* info = find_resource(resource);
  return {std::string(resource), info && info->namespaced ? std::string(ns) : "", std::string(name)};
}

Cluster::Cluster(boost::asio::any_io_executor executor, Clock& clock, Rng& rng, Timing timing)
    : parts_(std::make_unique<ClusterParts>(executor, clock, rng, timing)) {}
Cluster::~Cluster() = default;

Result<> Cluster::load(std::string_view yaml_or_json) {
  auto objects = read_objects(yaml_or_json);
  if (!objects) return std::move(objects).error();
  add(*std::move(objects));
  return {};
}

void Cluster::add(std::vector<Json> objects) {
  // All objects are created at the same time. Every controller reacts after its lag, when all objects exist.
  for (Json& object : objects) {
    const auto resource = find_kind(text(object, "/kind"))->resource;
    create(resource, std::move(object));
  }
}

http::Transport& Cluster::api() {
  return parts_->server;
}
ApiServer& Cluster::server() {
  return parts_->server;
}
boost::asio::awaitable<void> Cluster::run() {
  co_await parts_->agenda.run();
}

void Cluster::create(std::string_view resource, Json object) {
  const ResourceInfo* info = find_resource(resource);
  if (!info) return;
  if (info->namespaced) {
    if (ns_of(object).empty()) object["metadata"]["namespace"] = "default";
    const std::string ns = ns_of(object);
    if (!parts_->store.get({"namespaces", "", ns}))
      parts_->store.create("namespaces", {{"metadata", {{"name", ns}}}, {"status", {{"phase", "Active"}}}});
  }
  if (info->resource == "pods" && text(object, "/status/phase").empty()) object["status"]["phase"] = "Pending";
  if (info->resource == "nodes" && text(object, "/status/nodeInfo/bootID").empty())
    object["status"]["nodeInfo"]["bootID"] = parts_->machines.new_boot_id();
  parts_->store.create(resource, std::move(object));
}

void Cluster::remove(std::string_view resource, std::string_view ns, std::string_view name) {
  parts_->store.remove(key_of(resource, ns, name));
}

void Cluster::patch(std::string_view resource, std::string_view ns, std::string_view name, const Json& patch) {
  parts_->store.modify(key_of(resource, ns, name), [&](Json& next) { merge_patch(next, patch); });
}

Json Cluster::get(std::string_view resource, std::string_view ns, std::string_view name) const {
  const Object object = parts_->store.get(key_of(resource, ns, name));
  return object ? *object : Json();
}

std::vector<Json> Cluster::all(std::string_view resource) const {
  std::vector<Json> result;
  for (const Object& object : parts_->store.list(resource)) result.push_back(*object);
  return result;
}

void Cluster::node_down(std::string_view name) {
  parts_->machines.down(std::string(name));
}
void Cluster::node_up(std::string_view name, std::string boot_id) {
  parts_->machines.up(std::string(name), boot_id);
}

void Cluster::after(Duration delay, std::function<void()> action) {
  parts_->agenda.after(delay, std::move(action));
}

void Cluster::forbid(std::string_view verb, std::string_view resource) {
  parts_->switches.forbidden.insert(std::string(verb) + " " + std::string(resource));
}

void Cluster::stop_kubelet(std::string_view node) {
  parts_->switches.stopped_kubelets.emplace(node);
}

const Store& Cluster::store() const {
  return parts_->store;
}

void Cluster::on_change(std::function<void(const Change&)> listener) {
  parts_->store.listen(std::move(listener));
}
Switches& Cluster::switches() {
  return parts_->switches;
}
ClusterParts& Cluster::parts() {
  return *parts_;
}
const ClusterParts& Cluster::parts() const {
  return *parts_;
}

}  // namespace haulout::sim
