#include "drain/preflight.hpp"

#include <fmt/format.h>

#include "drain/gangs.hpp"
#include "drain/reasons.hpp"
#include "placement/fit.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

// If the plan is older than this, the drain makes it again before the first eviction. A plan gets old if a command
// drains several nodes, one after the other.
constexpr Duration plan_keeps = std::chrono::seconds(5);

std::set<std::string> leaving_pods(const Pipeline& pipeline) {
  std::set<std::string> leaving;
  for (const auto& [uid, tracked] : pipeline.pods())
    if (tracked.state != PodState::left && !tracked.pod.terminating() && !tracked.decision.is_awaited)
      leaving.insert(uid);
  return leaving;
}

// Adds the answer `unknown` for each pod that its controller replaces on another node but for which the check has no
// answer. The API server's list of all pods may lack such a pod.
void add_unanswered(const Pipeline& pipeline, const std::set<std::string>& leaving,
                    std::vector<placement::PodFit>& fits) {
  std::set<std::string> answered;
  for (const placement::PodFit& fit : fits) answered.insert(fit.uid);
  for (const std::string& uid : leaving) {
    const k8s::Pod& pod = pipeline.pods().at(uid).pod;
    const bool comes_back = pod.controller && !is_daemon_pod(pod) && !is_mirror(pod) && !pod.finished();
    if (comes_back && !answered.contains(uid))
      fits.push_back({pod.key(),
                      uid,
                      placement::Fit::unknown,
                      {},
                      {},
                      "the API server did not list the pod among the pods of the cluster"});
  }
}

}  // namespace

Task<k8s::Node> Preflight::first_contact() {
  Trouble trouble(session_, "node " + session_.node_name() + " could not be read");
  auto node = co_await k8s::patiently<k8s::Node>(
      session_.client(), session_.rng(),
      {session_.deadline(), request_timeout, session_.options().unreachable_limit, session_.options().fail_fast},
      [this](TimePoint until) { return session_.client().get_node(session_.node_name(), until); },
      [&trouble](const Error& error) { trouble.tell(error); });
  if (node) trouble.over();
  co_return node;
}

asio::awaitable<void> Preflight::look_up_daemon_sets(std::vector<k8s::Pod> pods) {
  const TimePoint limit = session_.now() + patience_with_others;
  std::set<std::string> asked;
  for (const k8s::Pod& pod : pods) {
    if (!can_look_up_daemon_set(pod) || !asked.insert(pod.controller->uid).second) continue;
    auto found = co_await session_.insist<k8s::DaemonSet>(
        fmt::format("DaemonSet {}/{} could not be read", pod.ns, pod.controller->name),
        [&](TimePoint until) { return session_.client().get<k8s::DaemonSet>(pod.ns, pod.controller->name, until); },
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
asio::awaitable<bool> Preflight::permitted(k8s::ResourceAttributes attributes) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (attempt > 0) co_await session_.clock().sleep_until(session_.now() + std::chrono::milliseconds(500));
    auto review = co_await k8s::review_access(session_.client(), attributes, session_.within(request_timeout));
    if (!review || review->allowed) co_return true;
  }
  co_return false;
}

asio::awaitable<bool> Preflight::review_permissions() {
  if (!session_.options().review_access || session_.options().dry_run == DryRunMode::client) co_return true;
  if (!feeds_.node.node().unschedulable) {
    k8s::ResourceAttributes cordon;
    cordon.verb = "patch";
    cordon.resource = "nodes";
    cordon.name = session_.node_name();
    if (!co_await permitted(cordon))
      co_return session_.ending().lacks_right(session_.node_name(), cordon, "cordon the node");
  }
  std::set<std::string> namespaces;
  for (const auto& [uid, tracked] : pipeline_.pods())
    if (tracked.state != PodState::left) namespaces.insert(tracked.pod.ns);
  if (namespaces.empty()) co_return true;
  k8s::ResourceAttributes removal;
  removal.verb = session_.options().delete_instead_of_evict ? "delete" : "create";
  removal.resource = "pods";
  if (!session_.options().delete_instead_of_evict) removal.subresource = "eviction";
  const bool deletes = session_.options().delete_instead_of_evict;
  if (!co_await permitted_in(namespaces, removal, deletes ? "delete pods" : "evict pods")) co_return false;
  if (session_.options().guards.surge == Surge::off) co_return true;
  k8s::ResourceAttributes release;
  release.verb = "patch";
  release.resource = "pods";
  co_return co_await permitted_in(namespaces, release, "take a label off pods (--surge)");
}

// Returns false if the right is granted neither for the whole cluster nor for each of the namespaces. The drain has
// ended then.
asio::awaitable<bool> Preflight::permitted_in(std::set<std::string> namespaces, k8s::ResourceAttributes right,
                                              std::string what) {
  if (co_await permitted(right)) co_return true;
  for (const std::string& ns : namespaces) {
    right.ns = ns;
    if (!co_await permitted(right)) co_return session_.ending().lacks_right(session_.node_name(), right, what);
  }
  co_return true;
}

// Returns true if this drain continues a run that another process has begun: the Node has the mark of the same run.
// Then the drain does not know which pods that process has evicted.
std::optional<CordonMark> Preflight::mark_of_this_run(const k8s::Node& node) const {
  auto mark = mark_of(node);
  const std::string& run = session_.options().run_id;
  return mark && !run.empty() && mark->run == run ? std::move(mark) : std::nullopt;
}

bool Preflight::refuse_by_policy() {
  std::string refused;
  std::map<std::string, std::vector<std::string>> members;  // by gang
  std::size_t count = 0;
  // A run that has begun is not given up because of a member that came late. The member is waited for.
  const bool begun = mark_of_this_run(feeds_.node.node()).has_value();
  for (const PodReport& pod : pipeline_.reports()) {
    if (pod.verdict != Verdict::refuse || (begun && pod.reason == reason::gang_member)) continue;
    ++count;
    const auto gang = gang_of(pipeline_.pods().at(pod.uid).pod);
    if (gang && pod.reason == reason::gang_member)
      members[gang->text()].push_back(pod.key());
    else
      refused += fmt::format("{}{} ({})", refused.empty() ? "" : ", ", pod.key(), pod.reason);
  }
  if (count == 0) return false;
  for (const auto& [gang, pods] : members)
    refused += fmt::format("{}{} runs only as a whole, and has members on the node: {} ({})",
                           refused.empty() ? "" : "; ", gang, fmt::join(pods, ", "), reason::gang_member);
  session_.ending().end(
      Outcome::refused,
      fmt::format(
          "the options of the drain or an annotation forbid the eviction of {} pod{}, so the drain evicts none: {}",
          count, count == 1 ? "" : "s", refused));
  return true;
}

// Returns false if the drain has ended: --check-fit=block or require refuses it, or the check itself failed with one of
// them. With warn, reports the result of the check, or why it failed, and returns true.
asio::awaitable<bool> Preflight::check_fit() {
  // If the drain continues an earlier run, the fit is not checked: some pods of the node were evicted already, so the
  // drain must not be refused for lack of capacity.
  const bool begun = mark_of_this_run(feeds_.node.node()).has_value();
  if (session_.options().fit == FitPolicy::off || begun) co_return true;
  std::set<std::string> closed = session_.options().drained_together;
  closed.insert(session_.node_name());
  const std::set<std::string> leaving = leaving_pods(pipeline_);
  const std::string what = "whether the pods of node " + session_.node_name() + " fit elsewhere is unknown";
  // With `warn` the check must not delay the drain without limit. Otherwise the drain may not begin without an answer.
  const TimePoint limit =
      session_.options().fit == FitPolicy::warn ? session_.now() + patience_with_others : TimePoint::max();
  auto fits = co_await session_.insist<std::vector<placement::PodFit>>(
      what,
      [&](TimePoint until) {
        return placement::check_fit(session_.client(), {leaving, closed}, session_.options().page_size,
                                    std::min(until, limit));
      },
      placement::fit_limit, limit);
  if (!fits) {
    if (session_.options().fit != FitPolicy::warn)
      co_return session_.ending().give_up(fits.error(), what + ", so nothing was changed");
    for (const PodReport& pod : pipeline_.reports())
      if (leaving.contains(pod.uid))
        fits_.push_back({pod.key(), pod.uid, placement::Fit::unknown, {}, {}, fits.error().message()});
    session_.emit(EventType::fit_checked, what + ": " + fits.error().message());
    co_return true;
  }
  fits_ = *std::move(fits);
  if (session_.options().fit == FitPolicy::require) add_unanswered(pipeline_, leaving, fits_);
  const std::string doubts = placement::summary(session_.node_name(), fits_);
  const bool refused =
      (session_.options().fit != FitPolicy::warn && placement::count(fits_, placement::Fit::does_not_fit) != 0) ||
      (session_.options().fit == FitPolicy::require && placement::count(fits_, placement::Fit::unknown) != 0);
  if (refused) co_return session_.ending().end(Outcome::refused, doubts + "; so nothing was changed");
  if (!doubts.empty()) session_.emit(EventType::fit_checked, doubts);
  co_return true;
}

asio::awaitable<bool> Preflight::run() {
  auto node = co_await first_contact();
  if (!node) {
    if (k8s::is_gone(node.error())) {
      co_return session_.ending().end(
          Outcome::failed,
          fmt::format("node {} does not exist in this cluster (kubectl get nodes lists the nodes)",
                      session_.node_name()),
          node.error());
    }
    co_return session_.ending().fail(node.error(), "node " + session_.node_name() + " could not be read");
  }
  feeds_.node.found(*std::move(node));

  const std::string what = "the pods of node " + session_.node_name() + " could not be listed";
  auto pods = co_await session_.insist<k8s::List<k8s::Pod>>(
      what, [this](TimePoint deadline) { return session_.client().list_pods_on(session_.node_name(), deadline); });
  if (!pods) co_return session_.ending().give_up(pods.error(), what);
  co_await look_up_daemon_sets(pods->items);
  co_await feeds_.budgets.list_for(pods->items);
  if (!co_await feeds_.controllers.look_up(pods->items, false)) co_return false;
  for (const k8s::Pod& pod : pods->items) pipeline_.pod_changed(pod, session_.now());
  feeds_.pods.listed(*std::move(pods));
  if (refuse_by_policy()) co_return false;
  if (!co_await review_permissions()) co_return false;
  if (!co_await feeds_.controllers.list_pods()) co_return false;
  co_await feeds_.surge.read_at_first();
  if (!co_await check_fit()) co_return false;
  if (mark_of_this_run(feeds_.node.node())) volumes_.expect_all();
  if (!co_await feeds_.volumes.list()) co_return false;
  planned_at_ = session_.now();
  session_.emit(EventType::planned);
  co_return true;
}

// With several nodes and guards that count pods, the plan must always be made again, because the guards must also count
// the pods that were evicted from the other nodes a moment ago.
bool Preflight::holds() const {
  if (session_.options().drained_together.size() > 1 && session_.options().guards.follows_pods()) return false;
  return session_.now() < saturating_add(planned_at_, plan_keeps);
}

asio::awaitable<bool> Preflight::run_again() {
  const std::string no_node = "node " + session_.node_name() + " could not be read";
  auto node = co_await session_.insist<k8s::Node>(
      no_node, [this](TimePoint limit) { return session_.client().get_node(session_.node_name(), limit); },
      request_timeout);
  if (!node && k8s::is_gone(node.error())) {
    feeds_.node.see(nullptr);
    co_return true;
  }
  if (!node) co_return session_.ending().give_up(node.error(), no_node);
  feeds_.node.see(&*node);
  const TimePoint asked = session_.now();
  const std::string no_pods = "the pods of node " + session_.node_name() + " could not be listed";
  auto pods = co_await session_.insist<k8s::List<k8s::Pod>>(
      no_pods, [this](TimePoint limit) { return session_.client().list_pods_on(session_.node_name(), limit); });
  if (!pods) co_return session_.ending().give_up(pods.error(), no_pods);
  feeds_.controllers.forget_pods();
  std::set<std::string> gone;
  for (const auto& [uid, tracked] : pipeline_.pods()) gone.insert(uid);
  for (const k8s::Pod& pod : pods->items) gone.erase(pod.uid);
  for (const std::string& uid : gone) pipeline_.pod_gone(uid, session_.now(), session_.wall_now());
  co_await feeds_.budgets.list_for(pods->items);
  if (!co_await feeds_.controllers.look_up(pods->items, true)) co_return false;
  for (const k8s::Pod& pod : pods->items) pipeline_.pod_listed(pod, asked, session_.now());
  feeds_.pods.listed(*std::move(pods));
  // The pods of the controllers and the volumes are listed before the main loop begins to evict. Without these lists
  // the guards would park pods, and a pod that was parked once does not keep the next tier from starting any more.
  co_return co_await feeds_.controllers.list_pods() && co_await feeds_.volumes.list();
}

}  // namespace haulout::drain
