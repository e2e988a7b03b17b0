#include "drain/drain.hpp"

#include <algorithm>

#include "drain/broken_gangs.hpp"
#include "drain/cordon_keeper.hpp"
#include "drain/eviction.hpp"
#include "drain/feeds.hpp"
#include "drain/findings.hpp"
#include "drain/pod_filter.hpp"
#include "drain/preflight.hpp"
#include "drain/session.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

// An earlier start of the run counts as at most this long ago, so that no clock makes the subtraction overflow.
constexpr Duration longest_wait = std::chrono::hours(24 * 365);

PipelineOptions pipeline_options(const Options& options) {
  PipelineOptions pipeline;
  pipeline.max_places = options.max_concurrent;
  pipeline.respect_budgets = !options.delete_instead_of_evict;
  pipeline.grace_seconds = options.grace_seconds;
  pipeline.own_uid = options.own_pod_uid;
  pipeline.order = options.order;
  pipeline.leaves_pinned = options.policy.pinned == Treatment::skip;
  pipeline.pinned_controllers = options.pinned_controllers;
  pipeline.skips_overdue = options.policy.skip_terminating_after.has_value();
  return pipeline;
}

}  // namespace

// All parts of a drain: the pure ones that decide, and those that send requests to the API server.
struct Drain::Impl {
  Impl(k8s::Client& client, Rng& rng, DrainObserver& observer, Options options, std::string node);

  asio::awaitable<bool> run_preflight();
  asio::awaitable<bool> run_cordon();
  asio::awaitable<bool> run_eviction();
  Report report() const;

  // Starts the clocks of the report and of the timeout. Limits the waits for volumes to be attached to other nodes, so
  // that they end `reattach_margin` before the timeout.
  void start_time();
  void begin_waits();
  std::optional<Duration> draining_for() const;
  Decision by_policy(const k8s::Pod& pod) const;
  // Returns true if another pod of the pod's DaemonSet was evicted in this attempt.
  bool another_daemon_was_evicted(const k8s::Pod& pod) const;
  std::set<std::string> evicted_daemon_sets() const;
  // Returns a budget of the pod for which `is_wanted` returns true; nullptr if there is none, or budgets do not count.
  const k8s::PodDisruptionBudget* budget_of(
      const k8s::Pod& pod, const std::function<bool(const k8s::PodDisruptionBudget&)>& is_wanted) const;
  SurgeBudgets surge_budgets() const;
  BudgetOfBoth budget_of_both() const;
  Pipeline make_pipeline();
  Progress progress() const;
  // If `goes_on` is false, emits `finished`: the drain has ended before its first eviction. Returns `goes_on`.
  bool tell_unless(bool goes_on);

  Session session;
  DaemonSetStates daemon_sets;
  std::set<std::string> evicted_before;  // UIDs of DaemonSets of which an earlier process has evicted pods
  std::optional<TimePoint> draining_since;
  ControllerBook controller_book;
  ControllerGuard controller_guard;
  SurgeBook surge_book;
  EvictionRequestBook request_book;
  VolumeBook volume_book;
  VolumeTurns volume_turns;
  Pipeline pipeline;

  CordonKeeper cordon;
  NodeFeed node;
  PodsFeed pods;
  BudgetsFeed budgets;
  ControllersFeed controllers;
  VolumesFeed volumes;
  SurgeFeed surge;
  EvictionRequestFeed requests;
  Feeds feeds{node, pods, budgets, controllers, volumes, surge, requests};

  Preflight preflight;
  Findings findings;
};

Drain::Impl::Impl(k8s::Client& client, Rng& rng, DrainObserver& observer, Options options, std::string node_name)
    : session(client, rng, observer, std::move(options), std::move(node_name)),
      controller_book(session.node_name()),
      controller_guard(session.options().guards, controller_book),
      surge_book(session.options(), controller_book, session.rng(), surge_budgets(), budget_of_both()),
      request_book(session.options(), session.rng(), [this] { return session.client().server_now(); }),
      volume_book(
          session.node_name(), session.options().volume_limit,
          [this](EventType type, const VolumeReport& volume) { session.emit(type, volume); },
          session.options().reattach_limit),
      volume_turns(volume_book),
      pipeline(make_pipeline()),
      cordon(session),
      node(session, pipeline, cordon),
      pods(session, pipeline, node),
      budgets(session, pipeline),
      controllers(session, pipeline, controller_book, controller_guard,
                  [this](const k8s::Pod& pod) { return by_policy(pod); }),
      volumes(session, pipeline, pods, volume_book, volume_turns),
      surge(session, pipeline, node, surge_book),
      requests(session, pipeline, node, request_book),
      preflight(session, pipeline, feeds, volume_book, daemon_sets),
      findings(session, pipeline, feeds) {
  session.set_progress([this] { return progress(); });
  controller_guard.set_replaced_first([this](const k8s::Pod& pod) { return surge_book.covers(pod); });
}

Pipeline Drain::Impl::make_pipeline() {
  PipelineOptions options = pipeline_options(session.options());
  if (session.options().guards.any()) options.guards.push_back(&controller_guard);
  options.guards.push_back(&surge_book);
  if (session.options().volume_turns != VolumeWait::off) options.guards.push_back(&volume_turns);
  // Comes last: a pod that another guard holds may not leave yet, so its responders are not asked.
  if (request_book.is_on()) options.guards.push_back(&request_book);
  return Pipeline(
      std::move(options), session.rng(),
      [this](const k8s::Pod& pod) { return controller_guard.judge(by_policy(pod), pod); },
      [this](EventType type, const PodReport& pod) {
        if (type == EventType::late_pod) node.pod_came_late();
        session.emit(type, pod, type == EventType::throttled ? pipeline.throttle_message() : std::string());
      },
      [this] { return session.client().server_now(); });
}

Decision Drain::Impl::by_policy(const k8s::Pod& pod) const {
  const Policy& policy = session.options().policy;
  const bool gang_is_broken = policy.gangs == Treatment::park && is_in_broken_gang(pod, pipeline.pods());
  return decide(
      pod, policy, daemon_sets, session.client().server_now(),
      {draining_for(), why_daemon_stays(pod, policy, session.options().own_pod_uid, another_daemon_was_evicted(pod)),
       gang_is_broken});
}

bool Drain::Impl::another_daemon_was_evicted(const k8s::Pod& pod) const {
  if (!is_daemon_pod(pod)) return false;
  // An earlier process may have ended between its note of the eviction and the request, so that the pod is still there.
  if (evicted_before.contains(pod.controller->uid)) return !evicted_before.contains(pod.uid);
  const auto& known = pipeline.pods();
  return std::any_of(known.begin(), known.end(), [&pod](const auto& entry) {
    const TrackedPod& other = entry.second;
    return other.report.attempts > 0 && other.pod.uid != pod.uid && other.pod.controller &&
           other.pod.controller->uid == pod.controller->uid;
  });
}

std::set<std::string> Drain::Impl::evicted_daemon_sets() const {
  std::set<std::string> evicted = evicted_before;
  // The agent asks after each change of its drain, and a node may have hundreds of pods.
  if (session.options().policy.evict_daemon_sets.empty()) return evicted;
  for (const auto& [uid, tracked] : pipeline.pods())
    if (tracked.report.attempts > 0 && tracked.decision.stage == Stage::daemon_sets)
      evicted.insert({tracked.pod.controller->uid, uid});
  return evicted;
}

const k8s::PodDisruptionBudget* Drain::Impl::budget_of(
    const k8s::Pod& pod, const std::function<bool(const k8s::PodDisruptionBudget&)>& is_wanted) const {
  const BudgetBook& book = pipeline.book();
  const auto found = pipeline.pods().find(pod.uid);
  if (found == pipeline.pods().end() || session.options().delete_instead_of_evict || !book.visible()) return nullptr;
  for (const std::string& budget : *found->second.budgets)
    if (const auto known = book.budgets().find(budget); known != book.budgets().end() && is_wanted(known->second))
      return &known->second;
  return nullptr;
}

SurgeBudgets Drain::Impl::surge_budgets() const {
  return {[this] { return pipeline.book().visible(); }, [this] { return budgets.forbidden(); },
          [this](const k8s::Pod& pod) { return budget_of(pod, is_closed_though_healthy) != nullptr; },
          [this](const k8s::Pod& pod, std::int32_t replicas) {
            const auto* budget = budget_of(
                pod, [&](const k8s::PodDisruptionBudget& one) { return counts_other_controllers(one, replicas); });
            return budget ? budget->key() : std::string();
          }};
}

BudgetOfBoth Drain::Impl::budget_of_both() const {
  return [this](const k8s::Pod& pod, const k8s::Pod& other) {
    const auto* budget = budget_of(
        pod, [&](const k8s::PodDisruptionBudget& one) { return counts_controllers(one) && one.selects(other); });
    return budget ? budget->key() : std::string();
  };
}

Progress Drain::Impl::progress() const {
  Progress progress = pipeline.progress();
  progress.detaching = volume_book.count(VolumeOutcome::detaching);
  if (volumes.awaited()) progress.unclear = volume_book.count(VolumeOutcome::unclear);
  return progress;
}

void Drain::Impl::start_time() {
  session.start_time();
  volume_book.detached().end_waits_at(session.options().timeout ? session.deadline() - reattach_margin
                                                                : TimePoint::max());
}

bool Drain::Impl::tell_unless(bool goes_on) {
  if (!goes_on) session.emit(EventType::finished, session.ending().message());
  return goes_on;
}

// The limits of rules that wait count from the cordon of this run, so a run that was interrupted does not wait longer.
// From here on they count by the monotonic clock, because the time of day may jump.
void Drain::Impl::begin_waits() {
  draining_since = session.now();
  const auto mark = preflight.mark_of_this_run(node.node());
  if (!mark) return;
  const Duration before = session.client().server_now() - mark->at;
  *draining_since -= std::clamp(before, Duration::zero(), longest_wait);
}

std::optional<Duration> Drain::Impl::draining_for() const {
  if (!draining_since) return std::nullopt;
  return session.now() - *draining_since;
}

asio::awaitable<bool> Drain::Impl::run_preflight() {
  start_time();
  co_return tell_unless(co_await preflight.run());
}

asio::awaitable<bool> Drain::Impl::run_cordon() {
  auto cordoned = co_await cordon.set(node.node());
  const bool goes_on = cordoned.has_value();
  if (goes_on) node.cordoned(*std::move(cordoned));
  co_return tell_unless(goes_on);
}

asio::awaitable<bool> Drain::Impl::run_eviction() {
  if (session.options().dry_run != DryRunMode::none) co_return co_await dry_run(session, pipeline, feeds);
  session.open(co_await asio::this_coro::executor);
  begin_waits();
  pipeline.start(session.now());
  if (preflight.holds() || co_await preflight.run_again()) {
    Eviction eviction(session, pipeline, cordon, feeds, findings);
    co_await eviction.run();
  }
  pods.close();
  budgets.close();
  node.close();
  volumes.close();
  controllers.close();
  requests.close();
  if (session.options().policy.waits_for_work && !session.ending().is(Outcome::node_gone)) {
    co_await surge.give_back();
    co_await requests.withdraw();
  }
  co_await cordon.restore();
  session.emit(EventType::finished, session.ending().message());
  co_return session.ending().is(Outcome::drained);
}

Report Drain::Impl::report() const {
  Report report;
  report.node = session.node_name();
  report.node_uid = node.node().uid;
  report.started_at = session.started_at();
  session.ending().write_to(report);
  report.cordon = cordon.report();
  report.pods = pipeline.reports();
  report.volumes = volume_book.reports();
  report.fits = preflight.fits();
  report.diagnoses = findings.active();
  return report;
}

Drain::Drain(k8s::Client& client, Rng& rng, DrainObserver& observer, Options options, std::string node)
    : impl_(std::make_unique<Impl>(client, rng, observer, std::move(options), std::move(node))) {}
Drain::~Drain() = default;

void Drain::expect_leaked(std::set<std::string> uids) {
  impl_->volume_book.expect_leaked(std::move(uids));
}
const std::set<std::string>& Drain::leaked() const {
  return impl_->volume_book.leaked();
}
void Drain::expect_evicted(std::set<std::string> uids) {
  impl_->evicted_before = std::move(uids);
}
std::set<std::string> Drain::evicted_daemon_sets() const {
  return impl_->evicted_daemon_sets();
}
bool Drain::may_have_surged() const {
  return impl_->surge.may_be_left();
}
bool Drain::may_have_requested() const {
  return impl_->requests.may_be_left();
}
Asked Drain::asked() const {
  return impl_->requests.asked();
}
void Drain::expect_requests() {
  impl_->requests.expect();
}
Surged Drain::surged() const {
  return impl_->surge_book.surged();
}
asio::awaitable<bool> Drain::preflight() {
  return impl_->run_preflight();
}
asio::awaitable<bool> Drain::cordon() {
  impl_->start_time();
  co_return co_await impl_->run_cordon();
}
asio::awaitable<bool> Drain::evict() {
  impl_->start_time();
  co_return co_await impl_->run_eviction();
}
const k8s::Node& Drain::node() const {
  return impl_->node.node();
}
std::vector<Diagnosis> Drain::diagnoses() const {
  return impl_->findings.active();
}
Report Drain::report() const {
  return impl_->report();
}

asio::awaitable<Report> Drain::run() {
  if (co_await impl_->run_preflight() && co_await impl_->run_cordon()) (void)co_await impl_->run_eviction();
  co_return impl_->report();
}

}  // namespace haulout::drain
