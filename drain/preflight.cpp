// Drain preflight, before the drain changes anything: reads the node and its pods, checks permissions, and checks
// whether policy allows the drain.
#include <fmt/format.h>
#include <set>

#include "drain/drain_impl.hpp"
#include "drain/insist.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

// How long to retry the list of budgets, for a server that has just started. Without budgets the drain continues more
// carefully.
constexpr Duration budgets_patience = std::chrono::seconds(2);

}  // namespace

Task<k8s::Node> Drain::Impl::first_contact() {
  Trouble trouble(*this, "node " + node_name_ + " could not be read");
  auto node = co_await k8s::patiently<k8s::Node>(
      client_, rng_, {deadline_, request_timeout, options_.unreachable_limit, options_.fail_fast},
      [this](TimePoint until) { return client_.get_node(node_name_, until); },
      [&trouble](const Error& error) { trouble.tell(error); });
  if (node) trouble.over();
  co_return node;
}

asio::awaitable<void> Drain::Impl::look_up_daemon_sets(std::vector<k8s::Pod> pods) {
  const TimePoint limit = now() + patience_with_others;
  std::set<std::string> asked;
  for (const k8s::Pod& pod : pods) {
    if (!can_look_up_daemon_set(pod) || !asked.insert(pod.controller->uid).second) continue;
    auto found = co_await insist<k8s::DaemonSet>(
        fmt::format("DaemonSet {}/{} could not be read", pod.ns, pod.controller->name),
        [&](TimePoint until) { return client_.get<k8s::DaemonSet>(pod.ns, pod.controller->name, until); },
        request_timeout, limit);
    DaemonSetState state = DaemonSetState::unknown;
    if (found) {
      state = found->uid == pod.controller->uid ? DaemonSetState::exists : DaemonSetState::gone;
    } else if (k8s::is_gone(found.error())) {
      state = DaemonSetState::gone;
    }
    daemon_sets_[pod.controller->uid] = state;
  }
}

// Returns false if the server denies the right twice. If the review itself fails, returns true, and the request that
// needs the right shows whether it is granted.
asio::awaitable<bool> Drain::Impl::permitted(k8s::ResourceAttributes attributes) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (attempt > 0) co_await clock_.sleep_until(now() + std::chrono::milliseconds(500));
    auto review = co_await client_.review_access(attributes, within(request_timeout));
    if (!review || review->allowed) co_return true;
  }
  co_return false;
}

bool Drain::Impl::refuse_by_rights(const k8s::ResourceAttributes& attributes, std::string_view what) {
  const std::string resource =
      attributes.subresource.empty() ? attributes.resource : attributes.resource + "/" + attributes.subresource;
  const std::string where = attributes.ns.empty() ? std::string() : " in namespace " + attributes.ns;
  Error error(Errc::status, fmt::format("not permitted to {}{}: grant verb {} on resource {} (API group \"{}\")", what,
                                        where, attributes.verb, resource, attributes.group));
  error.peer = PeerStatus{403, "Forbidden", resource, {}, {}, {}, {}, true};
  return fail(error, "node " + node_name_);
}

asio::awaitable<bool> Drain::Impl::review_permissions() {
  if (!options_.review_access || options_.dry_run == DryRunMode::client) co_return true;
  if (!node_.unschedulable) {
    k8s::ResourceAttributes cordon;
    cordon.verb = "patch";
    cordon.resource = "nodes";
    cordon.name = node_name_;
    if (!co_await permitted(cordon)) co_return refuse_by_rights(cordon, "cordon the node");
  }
  std::set<std::string> namespaces;
  for (const auto& [uid, tracked] : pipeline_->pods())
    if (tracked.state != PodState::left) namespaces.insert(tracked.pod.ns);
  if (namespaces.empty()) co_return true;
  k8s::ResourceAttributes removal;
  removal.verb = options_.delete_instead_of_evict ? "delete" : "create";
  removal.resource = "pods";
  if (!options_.delete_instead_of_evict) removal.subresource = "eviction";
  if (co_await permitted(removal)) co_return true;
  // The right is not granted for the whole cluster. Checks the namespaces that have pods to evict.
  for (const std::string& ns : namespaces) {
    removal.ns = ns;
    if (!co_await permitted(removal))
      co_return refuse_by_rights(removal, options_.delete_instead_of_evict ? "delete pods" : "evict pods");
  }
  co_return true;
}

asio::awaitable<void> Drain::Impl::list_budgets() {
  if (options_.delete_instead_of_evict) co_return;
  auto budgets = co_await insist<k8s::List<k8s::PodDisruptionBudget>>(
      "PodDisruptionBudgets could not be listed",
      [this](TimePoint limit) { return client_.list<k8s::PodDisruptionBudget>({.limit = k8s::usual_page}, limit); },
      std::nullopt, now() + budgets_patience);
  if (budgets) {
    learn_budgets(budgets->items);
    listed_budgets_ = *std::move(budgets);
  } else {
    pipeline_->set_budgets_visible(false);
  }
}

// `listed` contains all budgets. Known budgets that it lacks were deleted.
void Drain::Impl::learn_budgets(const std::vector<k8s::PodDisruptionBudget>& listed) {
  std::set<std::string> gone;
  for (const auto& [uid, budget] : pipeline_->book().budgets()) gone.insert(uid);
  for (const auto& budget : listed) gone.erase(budget.uid);
  for (const std::string& uid : gone) pipeline_->budget_changed(uid, nullptr, now());
  for (const auto& budget : listed) pipeline_->budget_changed(budget.uid, &budget, now());
}

bool Drain::Impl::refuse_by_policy() {
  std::string refused;
  std::size_t count = 0;
  for (const PodReport& pod : pipeline_->reports()) {
    if (pod.verdict != Verdict::refuse) continue;
    ++count;
    refused += fmt::format("{}{} ({})", refused.empty() ? "" : ", ", pod.key(), pod.reason);
  }
  if (count == 0) return false;
  end(Outcome::refused, fmt::format("policy does not allow the eviction of {} pod{}, so nothing was changed: {}", count,
                                    count == 1 ? "" : "s", refused));
  return true;
}

asio::awaitable<bool> Drain::Impl::preflight() {
  start_time();
  auto node = co_await first_contact();
  if (!node) {
    if (k8s::is_gone(node.error())) {
      report_.error = node.error();
      co_return end(
          Outcome::failed,
          fmt::format("node {} does not exist in this cluster (kubectl get nodes lists the nodes)", node_name_));
    }
    co_return fail(node.error(), "node " + node_name_ + " could not be read");
  }
  node_ = *std::move(node);
  node_facts_.unschedulable = node_.unschedulable;
  node_facts_.ready = node_.ready;
  report_.cordon.before = report_.cordon.after = node_.unschedulable;
  if (node_.unschedulable) report_.cordon.owner = cordon_owner(node_) == CordonOwner::haulout ? "haulout" : "other";

  const std::string what = "the pods of node " + node_name_ + " could not be listed";
  auto pods = co_await insist<k8s::List<k8s::Pod>>(
      what, [this](TimePoint deadline) { return client_.list_pods_on(node_name_, deadline); });
  if (!pods) co_return give_up(pods.error(), what);
  co_await look_up_daemon_sets(pods->items);
  co_await list_budgets();
  if (!co_await look_up_controllers(pods->items, false)) co_return false;
  for (const k8s::Pod& pod : pods->items) pipeline_->pod_changed(pod, now());
  pods_meta_ = pods->meta;
  listed_pods_ = std::move(pods->items);
  if (refuse_by_policy()) co_return false;
  if (!co_await review_permissions()) co_return false;
  if (!co_await list_controlled_pods()) co_return false;
  if (!co_await check_fit()) co_return false;
  if (resumes()) volumes_.expect_all();
  if (!co_await list_volumes()) co_return false;
  planned_at_ = now();
  emit(EventType::planned);
  co_return true;
}

}  // namespace haulout::drain
