#include "drain/retirement.hpp"

#include <fmt/format.h>

#include "base/duration.hpp"
#include "drain/pod_filter.hpp"
#include "drain/session.hpp"
#include "k8s/patience.hpp"
#include "retry/backoff.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

// Namespace of the Leases by which kubelets report that they are alive.
constexpr const char* node_leases = "kube-node-lease";

// Returns true for pods that end with their node: evicting them would not move them anywhere.
bool ends_with_node(const k8s::Pod& pod) {
  return is_mirror(pod) || is_daemon_pod(pod) || pod.finished();
}

// Returns true if the drain has not waited until the volume is detached, because it saw no reason to.
bool was_left(const VolumeReport& volume) {
  return volume.outcome == VolumeOutcome::kept || volume.outcome == VolumeOutcome::leaked ||
         volume.outcome == VolumeOutcome::inline_volume;
}

}  // namespace

Retirement::Retirement(k8s::Client& client, Rng& rng, RetirementOptions options, const Report& drained)
    : client_(client), rng_(rng), options_(std::move(options)), node_(drained.node), uid_(drained.node_uid) {
  for (const VolumeReport& volume : drained.volumes)
    if (was_left(volume)) settled_volumes_.insert(volume.attachment);
  for (const PodReport& pod : drained.pods)
    if (pod.outcome == PodOutcome::skipped) staying_pods_.insert(pod.uid);
  report_.message = "stopped before the Node was deleted";
}

bool Retirement::end(RetirementOutcome outcome, std::string message) {
  report_.outcome = outcome;
  report_.message = std::move(message);
  return false;
}

bool Retirement::fail(const Error& error, std::string_view what) {
  report_.error = error;
  report_.connection_failed = is_connection_failure(error);
  return end(RetirementOutcome::failed, fmt::format("{}: {}", what, error.message()));
}

// Repeats a request that fails, for at most patience_with_others.
template <class T>
Task<T> Retirement::ask(std::function<Task<T>(TimePoint)> request) {
  const TimePoint deadline = client_.clock().now() + patience_with_others;
  co_return co_await k8s::patiently<T>(client_, rng_, {deadline, request_timeout, options_.unreachable_limit},
                                       std::move(request), options_.failed);
}

asio::awaitable<bool> Retirement::check_before() {
  report_.leftovers.clear();
  auto node = co_await ask<k8s::Node>([this](TimePoint until) { return client_.get_node(node_, until); });
  if (!node && k8s::is_gone(node.error())) {
    // If an answer to the deletion was lost, this program has deleted the Node. Otherwise another one has.
    const bool ours = report_.deletion == NodeDeletion::unknown;
    report_.deletion = ours ? NodeDeletion::done : NodeDeletion::by_another;
    if (ours) options_.deleted();
    co_return options_.dry_run == DryRunMode::none || end(RetirementOutcome::retired);
  }
  if (!node) co_return fail(node.error(), "node " + node_ + " could not be read");
  if (node->uid != uid_)
    co_return end(RetirementOutcome::replaced,
                  "the Node that was drained is deleted, and another Node has its name; the new Node was not changed");
  version_ = node->resource_version;
  if (std::string objection = options_.objection(*node); !objection.empty())
    report_.leftovers.push_back({"node " + node_, std::move(objection)});
  if (!node->unschedulable && options_.dry_run == DryRunMode::none)
    report_.leftovers.push_back(
        {"node " + node_, "it is not cordoned any more, so new pods may be on it: retire it again"});
  if (!co_await find_pods() || !co_await find_volumes()) co_return false;
  if (!report_.leftovers.empty()) co_return end(RetirementOutcome::kept);
  co_return true;
}

// Records the pods that would end with the Node, without an eviction. In a dry run these are the ones that the drain
// would leave.
asio::awaitable<bool> Retirement::find_pods() {
  auto pods = co_await ask<k8s::List<k8s::Pod>>([this](TimePoint until) { return client_.list_pods_on(node_, until); });
  if (!pods) co_return fail(pods.error(), "the pods of node " + node_ + " could not be listed");
  for (const k8s::Pod& pod : pods->items)
    if (!ends_with_node(pod) && (options_.dry_run == DryRunMode::none || staying_pods_.contains(pod.uid)))
      report_.leftovers.push_back(
          {"pod " + pod.key(),
           "it would end with the Node, without an eviction: evict or move it, then retire the node again"});
  co_return true;
}

// Records the volumes that would be detached without an unmount. In a dry run all pods still use their volumes, so none
// is recorded.
asio::awaitable<bool> Retirement::find_volumes() {
  if (options_.dry_run != DryRunMode::none) co_return true;
  auto attachments = co_await ask<k8s::List<k8s::VolumeAttachment>>(
      [this](TimePoint until) { return k8s::list_attachments_to(client_, node_, until); });
  if (!attachments) co_return fail(attachments.error(), "the volumes of node " + node_ + " could not be listed");
  for (const k8s::VolumeAttachment& attachment : attachments->items)
    if (!settled_volumes_.contains(attachment.name))
      report_.leftovers.push_back({"VolumeAttachment " + attachment.name,
                                   "without its Node, the volume would be detached while it may still be mounted: wait "
                                   "until it is detached, then retire the node again"});
  co_return true;
}

// The clean-up takes the node out of service for good, so it comes after everything that may keep the Node. Meanwhile
// the node may be uncordoned, get a pod, or be replaced, so nothing that was seen before it counts afterwards.
asio::awaitable<bool> Retirement::clean_up() {
  if (!options_.clean_up || options_.dry_run != DryRunMode::none) co_return true;
  report_.message = "stopped during the clean-up of the machine, before the Node was deleted";
  if (auto failed = co_await options_.clean_up()) {
    report_.leftovers.push_back(*std::move(failed));
    co_return end(RetirementOutcome::kept);
  }
  report_.message = "stopped after the clean-up of the machine, before the Node was deleted";
  co_return co_await check_before();
}

// Sends the deletion once. While the request is under way, and after an answer that does not say what the server has
// done, it is unknown whether the Node is deleted.
Task<Retirement::Sent> Retirement::send_deletion(TimePoint deadline) {
  const NodeDeletion before = report_.deletion;
  const bool real = options_.dry_run == DryRunMode::none;
  if (real) report_.deletion = NodeDeletion::unknown;
  const k8s::DeleteOptions options{.uid = uid_,
                                   .grace_seconds = {},
                                   .write = {.dry_run = real ? k8s::DryRun::none : k8s::DryRun::server},
                                   .resource_version = version_};
  const auto removed = co_await client_.remove<k8s::Node>({}, node_, options, deadline);
  if (removed) co_return Sent::deleted;
  const bool answered = removed.error().code() == Errc::status && !k8s::is_transient(removed.error());
  if (answered) report_.deletion = before;
  // 404 and 409: check_before() finds out what has become of the Node.
  if (k8s::is_gone(removed.error()) || k8s::is_conflict(removed.error())) co_return Sent::changed;
  co_return removed.error();
}

// If the Node has changed since it was read, for example by a heartbeat of its kubelet, looks again and repeats the
// deletion.
asio::awaitable<bool> Retirement::delete_node() {
  const TimePoint limit = client_.clock().now() + patience_with_others;
  Backoff backoff({std::chrono::milliseconds(100), 2.0, std::chrono::seconds(5), BackoffOptions::Jitter::equal});
  while (report_.deletion != NodeDeletion::done && report_.deletion != NodeDeletion::by_another) {
    if (options_.dry_run == DryRunMode::client) co_return end(RetirementOutcome::retired);
    const auto sent = co_await ask<Sent>([this](TimePoint until) { return send_deletion(until); });
    if (!sent) co_return fail(sent.error(), "node " + node_ + " could not be deleted");
    if (*sent == Sent::deleted && options_.dry_run != DryRunMode::none) co_return end(RetirementOutcome::retired);
    if (*sent == Sent::deleted) {
      report_.deletion = NodeDeletion::done;
      options_.deleted();
      break;
    }
    if (client_.clock().now() >= limit)
      co_return end(
          RetirementOutcome::failed,
          fmt::format("node {} changed before each attempt to delete it, so it was not deleted; retire it again",
                      node_));
    co_await client_.clock().sleep_until(client_.clock().now() + backoff.next(rng_));
    if (!co_await check_before()) co_return false;
  }
  co_return true;
}

// Records that it is unknown whether `what` is left. Returns true if a later look may show it.
bool Retirement::unreadable(std::string what, const Error& error) {
  report_.leftovers.push_back({std::move(what), "could not be read, and may still exist: " + error.message()});
  retry_after_ = std::max(retry_after_, error.retry_after);
  return k8s::may_heal(error);
}

template <class T>
asio::awaitable<bool> Retirement::look_for(std::string ns, std::string what) {
  const TimePoint until = client_.clock().now() + request_timeout;
  const auto found = co_await client_.get<T>(std::move(ns), node_, until);
  if (found) {
    report_.leftovers.push_back({std::move(what),
                                 "the garbage collector has not deleted it with its Node: see its finalizers, and "
                                 "check that kube-controller-manager runs"});
    co_return true;
  }
  co_return !k8s::is_gone(found.error()) && unreadable(std::move(what), found.error());
}

asio::awaitable<bool> Retirement::look_after() {
  report_.leftovers.clear();
  retry_after_.reset();
  const TimePoint until = client_.clock().now() + request_timeout;
  const auto node = co_await client_.get_node(node_, until);
  if (node && node->uid != uid_) {
    report_.leftovers.push_back(
        {"node " + node_,
         "a Node of this name exists again, usually because the kubelet has registered it: stop the kubelet on the "
         "machine, then retire that Node"});
    co_return false;
  }
  bool may_end = false;
  if (node) {
    report_.leftovers.push_back(
        {"node " + node_, fmt::format("its finalizers prevent the end of its deletion; the controllers that set them "
                                      "must remove them (kubectl get node {} -o jsonpath={{.metadata.finalizers}})",
                                      node_)});
    may_end = true;
  } else if (!k8s::is_gone(node.error())) {
    may_end |= unreadable("node " + node_, node.error());
  }
  const auto pods = co_await client_.list_pods_on(node_, until);
  if (!pods) {
    may_end |= unreadable("pods of node " + node_, pods.error());
  } else {
    for (const k8s::Pod& pod : pods->items)
      report_.leftovers.push_back(
          {"pod " + pod.key(),
           fmt::format("the pod garbage collector has not deleted it with its Node: see its finalizers (kubectl get "
                       "pod {} -n {} -o yaml), and check that kube-controller-manager runs",
                       pod.name, pod.ns)});
    may_end |= !pods->items.empty();
  }
  const auto attachments = co_await k8s::list_attachments_to(client_, node_, until);
  if (!attachments) {
    may_end |= unreadable("VolumeAttachments of node " + node_, attachments.error());
  } else {
    for (const k8s::VolumeAttachment& attachment : attachments->items)
      report_.leftovers.push_back({"VolumeAttachment " + attachment.name,
                                   "the volume is not detached yet: kube-controller-manager may wait six minutes. If "
                                   "it stays longer, see the log of its CSI driver's controller"});
    may_end |= !attachments->items.empty();
  }
  may_end |= co_await look_for<k8s::CsiNode>({}, "CSINode " + node_);
  may_end |= co_await look_for<k8s::Lease>(node_leases, fmt::format("Lease {}/{}", node_leases, node_));
  co_return may_end;
}

asio::awaitable<void> Retirement::wait_until_clean() {
  report_.message = "stopped before it was seen that nothing is left of the node";
  const TimePoint begun = client_.clock().now(), limit = begun + last_look_limit;
  Backoff backoff({std::chrono::seconds(1), 1.5, std::chrono::seconds(10), BackoffOptions::Jitter::equal});
  for (;;) {
    const bool may_end = co_await look_after();
    if (report_.leftovers.empty()) {
      end(RetirementOutcome::retired);
      co_return;
    }
    const TimePoint now = client_.clock().now(), next = now + backoff.next(rng_, retry_after_);
    // The last look is at the limit, unless the server has asked for a longer pause.
    if (!may_end || now >= limit || (retry_after_ && next > limit)) {
      end(RetirementOutcome::unfinished,
          may_end ? fmt::format("{} after the deletion of the Node, something of the node is left or could not be read",
                                format_duration(now - begun))
                  : "the Node is deleted, but something of the node is left or could not be read");
      co_return;
    }
    co_await client_.clock().sleep_until(std::min(next, limit));
  }
}

asio::awaitable<void> Retirement::run() {
  if (co_await check_before() && co_await clean_up() && co_await delete_node()) co_await wait_until_clean();
}

}  // namespace haulout::drain
