#include "sim/cluster.hpp"

#include "k8s/codec.hpp"
#include "sim/disruption.hpp"
#include "sim/garbage_collector.hpp"
#include "sim/job_tracking.hpp"
#include "sim/kubelet.hpp"
#include "sim/loader.hpp"
#include "sim/machines.hpp"
#include "sim/merge.hpp"
#include "sim/node_controllers.hpp"
#include "sim/pod_lifecycle.hpp"
#include "sim/scheduler.hpp"
#include "sim/volumes.hpp"
#include "sim/workloads.hpp"

namespace haulout::sim {

class Cluster::Impl {
 public:
  Impl(boost::asio::any_io_executor executor, Clock& clock, Rng& rng, Timing timing_in)
      : timing(timing_in), agenda(executor, clock), store(clock, rng), server(world, executor) {}

  Timing timing;
  Switches switches;
  Agenda agenda;
  Store store;
  World world{store, agenda, store.rng(), timing, switches};
  // Declared before the controllers, so that watches get a change before controllers react to it.
  ApiServer server;
  Kubelet kubelet{world};
  Scheduler scheduler{world};
  Workloads workloads{world};
  JobTracking job_tracking{world};
  DisruptionController disruption{world};
  NodeLifecycle node_lifecycle{world};
  PodGarbageCollector pod_gc{world};
  NamespaceController namespaces{world};
  OwnerGarbageCollector garbage_collector{world};
  EventExpiry event_expiry{world};
  Volumes volumes{world};
  Machines machines{world, kubelet};
};

namespace {
Key key_of(std::string_view resource, std::string_view ns, std::string_view name) {
  const ResourceInfo* info = find_resource(resource);
  return {std::string(resource), info && info->namespaced ? std::string(ns) : "", std::string(name)};
}
}  // namespace

Cluster::Cluster(boost::asio::any_io_executor executor, Clock& clock, Rng& rng, Timing timing)
    : impl_(std::make_unique<Impl>(executor, clock, rng, timing)) {}
Cluster::~Cluster() = default;

Result<> Cluster::load(std::string_view yaml_or_json) {
  auto objects = read_objects(yaml_or_json);
  if (!objects) return std::move(objects).error();
  add(*std::move(objects));
  return {};
}

void Cluster::add(std::vector<Json> objects) {
  // All objects appear in one instant. Every controller reacts after its lag, when all objects exist.
  for (Json& object : objects) {
    const auto resource = find_kind(text(object, "/kind"))->resource;
    create(resource, std::move(object));
  }
}

http::Transport& Cluster::api() {
  return impl_->server;
}
ApiServer& Cluster::server() {
  return impl_->server;
}
boost::asio::awaitable<void> Cluster::run() {
  co_await impl_->agenda.run();
}

void Cluster::create(std::string_view resource, Json object) {
  const ResourceInfo* info = find_resource(resource);
  if (!info) return;
  if (info->namespaced) {
    if (ns_of(object).empty()) object["metadata"]["namespace"] = "default";
    const std::string ns = ns_of(object);
    if (!impl_->store.get({"namespaces", "", ns}))
      impl_->store.create("namespaces", {{"metadata", {{"name", ns}}}, {"status", {{"phase", "Active"}}}});
  }
  if (info->resource == "pods" && text(object, "/status/phase").empty()) object["status"]["phase"] = "Pending";
  if (info->resource == "nodes" && text(object, "/status/nodeInfo/bootID").empty())
    object["status"]["nodeInfo"]["bootID"] = impl_->machines.new_boot_id();
  impl_->store.create(resource, std::move(object));
}

void Cluster::remove(std::string_view resource, std::string_view ns, std::string_view name) {
  impl_->store.remove(key_of(resource, ns, name));
}

void Cluster::patch(std::string_view resource, std::string_view ns, std::string_view name, const Json& patch) {
  impl_->store.modify(key_of(resource, ns, name), [&](Json& next) { merge_patch(next, patch); });
}

Json Cluster::get(std::string_view resource, std::string_view ns, std::string_view name) const {
  const Object object = impl_->store.get(key_of(resource, ns, name));
  return object ? *object : Json();
}

std::vector<Json> Cluster::all(std::string_view resource) const {
  std::vector<Json> result;
  for (const Object& object : impl_->store.list(resource)) result.push_back(*object);
  return result;
}

void Cluster::node_down(std::string_view name) {
  impl_->machines.down(std::string(name));
}
void Cluster::node_up(std::string_view name, std::string boot_id) {
  impl_->machines.up(std::string(name), boot_id);
}
void Cluster::reboot_node(std::string_view name, Duration down, std::string new_boot_id) {
  node_down(name);
  after(down, [this, node = std::string(name), boot_id = std::move(new_boot_id)] { node_up(node, boot_id); });
}
void Cluster::replace_node(std::string_view name) {
  impl_->machines.register_again(std::string(name));
}

void Cluster::cordon(std::string_view node) {
  impl_->store.modify(key_of("nodes", "", node), [&](Json& next) {
    next["spec"]["unschedulable"] = true;
    book_unschedulable(next, "kubectl", impl_->world.wall_now());
  });
}

void Cluster::uncordon(std::string_view node) {
  impl_->store.modify(key_of("nodes", "", node), [&](Json& next) {
    if (next.contains("spec")) next["spec"].erase("unschedulable");
    book_unschedulable(next, "kubectl", impl_->world.wall_now());
  });
}

void Cluster::delete_gracefully(std::string_view resource, std::string_view ns, std::string_view name,
                                std::optional<std::int64_t> grace_seconds) {
  sim::delete_gracefully(impl_->world, key_of(resource, ns, name), grace_seconds);
}

void Cluster::terminate_namespace(std::string_view ns) {
  impl_->store.modify(key_of("namespaces", "", ns), [&](Json& next) {
    next["metadata"]["deletionTimestamp"] = k8s::format_time(impl_->world.wall_now());
    next["metadata"]["deletionGracePeriodSeconds"] = 0;
    next["status"]["phase"] = "Terminating";
  });
}

void Cluster::at(TimePoint when, std::function<void()> action) {
  impl_->agenda.at(when, std::move(action));
}
void Cluster::after(Duration delay, std::function<void()> action) {
  impl_->agenda.after(delay, std::move(action));
}

void Cluster::restart(Duration down) {
  refuse_connections(down);
  drop_connections();
  // The watch cache of the restarted server begins at the current revision.
  after(down, [this] { compact(); });
}

void Cluster::refuse_connections(Duration how_long) {
  impl_->switches.refused_until = impl_->world.now() + how_long;
}
void Cluster::drop_connections() {
  impl_->server.drop_connections();
}
void Cluster::lag_watches(Duration how_long) {
  impl_->server.watches().lag_until(impl_->world.now() + how_long);
}
void Cluster::lag_cache(Duration how_long) {
  impl_->server.hold_cache_until(impl_->world.now() + how_long);
}
void Cluster::close_watches() {
  impl_->server.watches().end_all(WatchChannel::End::proper);
}
void Cluster::silence_watches() {
  impl_->server.watches().silence_all();
}
void Cluster::compact() {
  impl_->store.forget_history();
}
void Cluster::expire_continue_tokens() {
  impl_->server.expire_continue_tokens();
}

void Cluster::throttle(Duration how_long, int retry_after) {
  impl_->switches.throttled_until = impl_->world.now() + how_long;
  impl_->switches.throttle_retry_after = retry_after;
}

void Cluster::restore_etcd(std::uint64_t revision) {
  // Ends all watches first, so that they deliver no event of the restore.
  drop_connections();
  expire_continue_tokens();
  impl_->store.restore(revision);
}

void Cluster::forbid(std::string_view verb, std::string_view resource) {
  impl_->switches.forbidden.insert(std::string(verb) + " " + std::string(resource));
}
void Cluster::permit(std::string_view verb, std::string_view resource) {
  impl_->switches.forbidden.erase(std::string(verb) + " " + std::string(resource));
}

void Cluster::stop_kubelet(std::string_view node) {
  impl_->switches.stopped_kubelets.emplace(node);
}
void Cluster::start_kubelet(std::string_view node) {
  impl_->switches.stopped_kubelets.erase(std::string(node));
  impl_->kubelet.resync(std::string(node));
}
void Cluster::set_token(std::string token, std::optional<Identity> identity) {
  impl_->switches.tokens.insert_or_assign(std::move(token), std::move(identity));
}
void Cluster::stop_garbage_collector() {
  impl_->switches.garbage_collector = false;
}
void Cluster::start_garbage_collector() {
  impl_->switches.garbage_collector = true;
  impl_->garbage_collector.resync();
}
void Cluster::stop_disruption_controller() {
  impl_->switches.disruption_controller = false;
}
void Cluster::start_disruption_controller() {
  impl_->switches.disruption_controller = true;
  impl_->disruption.resync();
}

const Store& Cluster::store() const {
  return impl_->store;
}

const std::deque<AuditEntry>& Cluster::audit() const {
  return impl_->server.audit();
}
void Cluster::on_change(std::function<void(const Change&)> listener) {
  impl_->store.listen(std::move(listener));
}
std::uint64_t Cluster::revision() const {
  return impl_->store.revision();
}
std::size_t Cluster::open_watches() const {
  return impl_->server.watches().open_watches();
}
Timing& Cluster::timing() {
  return impl_->timing;
}
Switches& Cluster::switches() {
  return impl_->switches;
}

}  // namespace haulout::sim
