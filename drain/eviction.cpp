#include "drain/eviction.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "base/text.hpp"
#include "drain/broken_gangs.hpp"
#include "drain/gangs.hpp"
#include "drain/text.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

// The limit of one eviction request. Longer than the 10 s for which the server retries after conflicts on a budget or
// between pods of the same name. Shorter than the server's own limit of 60 s.
constexpr Duration evict_timeout = std::chrono::seconds(34);
// How often the drain checks conditions that no event reports: a protection that expires, a wall clock that jumps.
constexpr Duration look_interval = std::chrono::seconds(15);
// While many pods are left, events trigger look_around() at most this often, because nothing urgent depends on it.
constexpr Duration glance = std::chrono::milliseconds(200);
// A pod counts as terminating for too long one second after the limit, as in kubectl.
constexpr Duration overdue_margin = std::chrono::seconds(1);

constexpr unsigned most_tries = 5;

// Sends one eviction, or a deletion if `delete_instead_of_evict` is set. A server dry run calls this, too. Does not
// retry. Limited to 34 s. Fails with the error of the request. Cancellable.
Task<> request_removal(Session& session, std::string uid, std::string ns, std::string name) {
  k8s::DeleteOptions options;
  options.uid = std::move(uid);
  options.grace_seconds = session.options().grace_seconds;
  options.write.dry_run = session.options().dry_run == DryRunMode::server ? k8s::DryRun::server : k8s::DryRun::none;
  const TimePoint limit = session.within(evict_timeout);
  if (session.options().delete_instead_of_evict)
    co_return co_await session.client().remove<k8s::Pod>(ns, name, options, limit);
  co_return co_await session.client().evict(ns, name, options, limit);
}

bool worth_another_try(const Error& error) {
  const EvictionVerdict verdict = classify_eviction(error);
  return verdict == EvictionVerdict::retry || verdict == EvictionVerdict::throttle;
}

// Sends the eviction of one pod as a dry run, and returns the server's answer. Repeats the request only after transient
// errors and throttling, because such an answer does not depend on the pod.
asio::awaitable<Result<>> simulate_eviction(Session& session, k8s::Pod pod) {
  Backoff backoff(backoff_after(EvictionVerdict::retry));
  for (unsigned attempt = 1;; ++attempt) {
    const Result<> answer = co_await request_removal(session, pod.uid, pod.ns, pod.name);
    if (answer || attempt == most_tries || !worth_another_try(answer.error())) co_return answer;
    co_await session.clock().sleep_until(session.now() + backoff.next(session.rng(), answer.error().retry_after));
  }
}

}  // namespace

asio::awaitable<void> Eviction::run() {
  // Raises the diagnoses about what the plan could not read, before the loop sends an eviction.
  findings_.update(proof_.facts());
  co_await with_task_group([this](TaskGroup& group) { return loop(group); });
}

asio::awaitable<void> Eviction::loop(TaskGroup& group) {
  group.spawn(feeds_.pods.follow());
  if (!session_.options().delete_instead_of_evict) group.spawn(feeds_.budgets.follow());
  group.spawn(feeds_.node.follow());
  TimePoint looked_at{};
  TimePoint look_at{};
  while (!session_.ending().has_come()) {
    if (session_.now() >= look_at || !pipeline_.unhurried()) pipeline_.time_passed(session_.now());
    feeds_.budgets.watch_health();
    feeds_.pods.watch_health();
    feeds_.volumes.take_turns();
    feeds_.node.look(group);
    if (!feeds_.node.in_doubt()) {
      const std::vector<k8s::Pod> evictions = pipeline_.take_evictions(session_.now());
      // The drain says that it stops a gang before it does so.
      if (std::ranges::any_of(evictions, [](const k8s::Pod& pod) { return gang_of(pod).has_value(); }))
        findings_.update(proof_.facts());
      for (const k8s::Pod& pod : evictions) group.spawn(evict(pod.uid, pod.ns, pod.name));
    }
    if (feeds_.controllers.wants_to_read()) look_at = session_.now();
    if (session_.now() >= look_at || pipeline_.few_left()) {
      look_around(group);
      if (session_.ending().has_come()) co_return;
      looked_at = session_.now();
      look_at = next_wake();
    }
    hurry_views();
    const TimePoint wake = pipeline_.unhurried() ? look_at : std::min(look_at, pipeline_.next_wake(session_.now()));
    const bool news = co_await session_.changed().wait_until(session_.clock(), wake);
    if (news) look_at = std::min(look_at, looked_at + glance);
  }
}

asio::awaitable<void> Eviction::evict(std::string uid, std::string ns, std::string name) {
  const Result<> answer = co_await request_removal(session_, uid, ns, name);
  pipeline_.answered(uid, answer, session_.now(), session_.wall_now());
  session_.changed().notify();
}

void Eviction::look_around(TaskGroup& group) {
  feeds_.pods.look(group);
  feeds_.budgets.look(group);
  feeds_.controllers.look_at_held(group);
  feeds_.volumes.look(group);
  feeds_.surge.look(group);
  feeds_.controllers.look(group);  // after the surges, which may want to read a Deployment first
  feeds_.requests.look(group);
  findings_.look(group);
  findings_.update(proof_.facts());
  conclude();
  if (!session_.ending().has_come()) proof_.look(group);
}

// Makes the views process their gathered watch events if these have become urgent, for example by a response.
void Eviction::hurry_views() {
  const Duration patience = pipeline_.patience();
  const Duration before = std::exchange(patience_, patience);
  // If the events must not wait at all, always calls read_on(), because a view may have begun to gather events since
  // the last call. On a view that gathers none, read_on() has no effect.
  if (patience > Duration::zero() && patience >= before) return;
  feeds_.pods.read_on();
  feeds_.budgets.read_on();
}

namespace {

// Returns the end of a message, which names a pod that the drain has not seen deleted, and why.
std::string first_left(const std::vector<PodReport>& reports) {
  // A pod that waits for something comes first, then one that does not end. A pod whose eviction was not sent yet waits
  // only for others.
  for (const PodOutcome outcome : {PodOutcome::waiting, PodOutcome::terminating, PodOutcome::planned})
    for (const PodReport& pod : reports)
      if (pod.outcome == outcome)
        return fmt::format(": {} ({})", pod.key(),
                           outcome == PodOutcome::planned ? std::string_view("not evicted yet")
                           : pod.reason.empty()           ? to_string(outcome)
                                                          : std::string_view(pod.reason));
  return {};
}

}  // namespace

void Eviction::conclude() {
  if (feeds_.node.gone()) {
    session_.ending().end(Outcome::node_gone,
                          "the Node was deleted, or replaced by another of the same name, during the drain");
  } else if (pipeline_.hopeless()) {
    std::string first;
    for (const PodReport& pod : pipeline_.reports())
      if (pod.outcome == PodOutcome::waiting && first.empty())
        first = fmt::format("pod {}: {}", pod.key(), pod.message);
    session_.ending().end(Outcome::failed, "the server rejects the remaining evictions: " + first);
  } else if (session_.now() >= session_.deadline()) {
    const Progress progress = pipeline_.progress();
    const std::size_t left = progress.to_evict - progress.vanished;
    std::string why = "the deadline passed ";
    if (left > 0)
      why += fmt::format("with {} left{}", pods(left), first_left(pipeline_.reports()));
    else if (feeds_.volumes.clear())
      why += "before it was proved that the node is drained" + proof_.why_not_over();
    else if (const std::string volumes = feeds_.volumes.book().waiting_for(); !volumes.empty())
      why += "before all volumes were detached: " + volumes;
    else
      why += "before it was known whether all volumes are detached" + feeds_.volumes.why_unknown();
    session_.ending().end(Outcome::blocked, std::move(why));
  }
}

// Returns the earliest time at which policy skips a terminating pod as overdue (`skip_terminating_after`), which no
// watch event reports.
TimePoint Eviction::overdue_at() const {
  TimePoint next = TimePoint::max();
  const auto& limit = session_.options().policy.skip_terminating_after;
  if (!limit) return next;
  const WallTime wall = session_.client().server_now();
  for (const TrackedPod* tracked : pipeline_.leaving()) {
    if (tracked->state != PodState::terminating || !tracked->pod.deletion_timestamp) continue;
    const Duration left = *limit - Duration(wall - *tracked->pod.deletion_timestamp);
    // `left` is negative if the wall clock has passed the limit after policy was applied.
    next = std::min(next, saturating_add(session_.now(), std::max(left, Duration::zero()) + overdue_margin));
  }
  return next;
}

TimePoint Eviction::next_wake() const {
  const TimePoint at = session_.now();
  return std::min({session_.deadline(), at + look_interval, overdue_at(), pipeline_.next_wake(at),
                   feeds_.pods.next_wake(at), feeds_.budgets.next_wake(), feeds_.controllers.next_wake(at),
                   feeds_.volumes.next_wake(at), feeds_.surge.next_wake(at), feeds_.requests.next_wake(at),
                   findings_.next_wake(at), proof_.next_wake(at)});
}

asio::awaitable<bool> dry_run(Session& session, Pipeline& pipeline, const Feeds& feeds) {
  std::size_t would_go = 0;
  std::size_t blocked = 0;
  std::map<std::string, std::size_t> guarded;  // number of evictable pods that use up a disruption, by budget UID
  const auto& budgets = pipeline.book().budgets();
  pipeline.start(session.now());
  for (const TrackedPod* tracked : pipeline.leaving())
    if (tracked->state == PodState::parked) ++blocked;  // policy parks the pod; its report has the reason
  for (const auto& [uid, name] : pipeline.plan()) {
    Result<> answer;
    if (session.options().dry_run == DryRunMode::server) {
      answer = co_await simulate_eviction(session, pipeline.pods().at(uid).pod);
      if (!answer && classify_eviction(answer.error()) == EvictionVerdict::gone) continue;
      pipeline.dry_run_answered(uid, answer);
    }
    ++(answer ? would_go : blocked);
    const TrackedPod& tracked = pipeline.pods().at(uid);
    if (answer)
      for (const std::string& budget : *tracked.budgets)
        if (const auto found = budgets.find(budget);
            found != budgets.end() && !BudgetBook::exempt(tracked.pod, found->second))
          ++guarded[budget];
  }
  std::string message = blocked == 0
                            ? fmt::format("dry run: {} would be evicted", pods(would_go))
                            : fmt::format("dry run: {} could be evicted now, {} could not", pods(would_go), blocked);
  for (const auto& [uid, count] : guarded) {
    const auto found = budgets.find(uid);
    if (session.options().delete_instead_of_evict || found == budgets.end()) continue;
    const auto allowed = static_cast<std::size_t>(std::max(0, found->second.disruptions_allowed));
    if (count > allowed)
      message += fmt::format("; PodDisruptionBudget {} selects {} of them and allows {} now", found->second.key(),
                             count, count_of(allowed, "disruption"));
  }
  message += feeds.surge.plan() + feeds.requests.plan();
  std::vector<DiagnosisFact> broken;
  diagnose_gangs(pipeline.leaving(), pipeline.pods(), session.options().policy, broken);
  for (const DiagnosisFact& fact : broken)
    message += fmt::format("; {}: {} [{}]", fact.subject, fact.message, fact.code);
  session.ending().end(blocked == 0 ? Outcome::drained : Outcome::blocked, std::move(message));
  session.emit(EventType::finished, session.ending().message());
  co_return session.ending().is(Outcome::drained);
}

}  // namespace haulout::drain
