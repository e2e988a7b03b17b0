// The eviction pipeline as a pure state machine. Its caller reports changes of pods and budgets, answers to evictions,
// and the time. The pipeline returns the evictions to send now, and when to call it again. It does no I/O and never
// waits.
//
// A pod that must leave is queued (its eviction was not sent yet), in flight (its eviction was sent and not answered),
// terminating, parked or vanished (deleted). P9 below means the promise P9 in docs/reliability.md.
//   - Places (max_places) limit how many pods are evicted at the same time. A pod takes its place before its eviction
//     is sent. The place becomes free when the eviction fails, when the pod is deleted, 60 s after its grace period
//     ended, or when an accepted eviction has had no effect for 150 s. A pod that another client deletes takes no
//     place.
//   - A parked pod is one whose eviction cannot succeed now. It takes no place and does not delay later tiers (P9). It
//     is tried again after an event that may let its eviction succeed, or when its backoff ends.
//   - Each budget is a lane: of all pods that it selects, one eviction at a time is in flight (BudgetBook).
//   - While a pod's budget is exhausted, an eviction of the pod is nevertheless sent from time to time (Signals). The
//     pod stays parked, and the request takes neither a place nor a lane.
//   - If the drain may not read budgets, each namespace is a lane instead. The drain then learns of a budget only when
//     the server refuses an eviction. The refused pods of a controller are tried one at a time (UnseenBudgets).
//   - If a webhook cannot be called, the pods that it blocks are tried one at a time (DownWebhooks).
//   - A pod whose last eviction failed for a reason other than a budget is tried after all other pods (P9).
//   - A stage (order.hpp) starts when all pods of the earlier stages have been deleted.
//   - A gang that runs is broken only if the drain can then come to its end, as far as the pipeline knows: while policy
//     or its controller holds up another pod, whatever its stage, no member is evicted. A gang is broken when all
//     members of the gangs before it are terminating, deleted or finished. A gang that is broken already, also by the
//     drain itself, waits neither for such pods nor for other gangs. Budgets and guards hold up only the pod itself and
//     the gangs after it, not the other members of its gang.
//   - A tier starts when every pod of the earlier tiers is terminating, is deleted, or was parked at least once.
//   - A pod that is terminating is not evicted again, with one exception: if its grace period is longer than the one in
//     the options, a request shortens it. Every request has the pod's UID as a precondition.
// The pipeline identifies pods by UID. A change that is reported twice has no effect the second time. An answer that
// arrives after its pod was deleted frees its lane and corrects the report; the pod stays deleted.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "drain/budget_book.hpp"
#include "drain/eviction_pacing.hpp"
#include "drain/eviction_verdict.hpp"
#include "drain/guards.hpp"
#include "drain/observer.hpp"
#include "drain/order.hpp"
#include "drain/pod_filter.hpp"
#include "retry/backoff.hpp"
#include "retry/rng.hpp"

namespace haulout::drain {

// `left`: the drain does not wait for the pod, which stays on the node (skipped, or not waited for any more). The other
// states are explained above.
enum class PodState { left, queued, in_flight, terminating, parked, vanished };

// Returns true if the pod must leave the node and was not deleted yet.
constexpr bool must_leave(PodState state) {
  return state != PodState::left && state != PodState::vanished;
}

struct PipelineOptions {
  std::size_t max_places = 5;  // 0 means unlimited
  // Limit of eviction requests in flight at the same time. Independent of max_places. While answers are slow,
  // RequestWindow raises it.
  std::size_t max_requests = 10;
  bool respect_budgets = true;  // false when pods are deleted instead of evicted
  std::optional<std::int64_t> grace_seconds{};
  std::string own_uid{};
  std::vector<OrderRule> order{};
  bool leaves_pinned = false;  // skip pods that their controller recreates on this node, instead of parking them
  // Controllers that are known to recreate their pods on the node, as keys of controller_key().
  std::set<std::string> pinned_controllers{};
  // True if policy skips pods that have been terminating for too long. time_passed() then applies policy to all
  // terminating pods again.
  bool skips_overdue = false;
  // Guards, which are checked in addition to budgets. Borrowed. The first guard that holds a pod provides the reason.
  std::vector<EvictionGuard*> guards{};
};

// Returns "namespace/kind/name" of the pod's controller, or an empty string if the pod has none.
std::string controller_key(const k8s::Pod& pod);

struct TrackedPod {
  // The fields that each event reads for every pod come first, next to each other in memory.
  PodState state = PodState::queued;
  // Why the pod is parked. `none`: its last eviction failed, or its budget is exhausted. `policy`: until policy decides
  // otherwise about the pod. `pinned`: until its controller does not count as pinned any more. `guard`: until the guard
  // allows the eviction. `turn`: nothing holds it any more, and it waits for its turn like a queued pod: for its lane,
  // a place, or fewer requests in flight. The guards are asked once more before its eviction is sent.
  enum class Hold { none, policy, pinned, guard, turn } hold = Hold::none;
  EvictionVerdict last_verdict = EvictionVerdict::accepted;
  std::uint32_t refusals = 0;  // failed evictions in a row whose answers had the same class (last_verdict)
  bool holds_place = false;
  bool was_parked = false;
  bool is_late = false;
  bool stuck = false;        // the pod still exists 60 s after its grace period
  bool answer_lost = false;  // the answer to the last eviction was lost: the eviction may have taken effect
  bool request_out = false;  // an eviction was sent and not answered yet
  bool reading = false;      // parked until a guard has read something again (EvictionGuard::reads_first())
  // report.evicted_at was set from a watch event before the answer arrived. The answer may correct it, or show that
  // another client evicted the pod.
  bool inferred = false;
  bool signal = false;    // the request in flight is only a signal (Signals)
  bool asked = false;     // an answer has shown that the admission webhooks saw an eviction of this pod
  bool has_news = false;  // since the last request the pod has changed, or the webhook that denied it may have changed
  bool denied = false;    // the last request was a signal, and admission denied it
  TimePoint wake_at{};    // while parked: not tried again before this time, unless an event wakes the pod
  TimePoint terminating_until = TimePoint::max();  // when the pod's place becomes free at the latest
  // If the view does not show the pod terminating or deleted by then, the accepted eviction counts as lost.
  TimePoint accepted_until = TimePoint::max();
  TimePoint terminating_since{};
  TimePoint vanished_since{};
  // When the drain first saw the pod, or saw it again after its deletion. A list that was requested before
  // `known_since` or before `listed_at`, and does not contain the pod, does not prove that the pod was deleted.
  TimePoint known_since{};
  TimePoint told_at{};    // time of the last watch event about the pod; before any, of the first list that had the pod
  TimePoint listed_at{};  // when the last list that contained the pod was requested
  TimePoint last_answer{};
  TimePoint sent_at{};  // when the last request was sent
  // Whether the pod had finished before it was terminating, as far as the drain knows. Since Kubernetes 1.27, the
  // kubelet also sets a terminal phase on pods that it has stopped, so the phase of a terminating pod does not show
  // this.
  bool had_finished = false;
  bool cut_off = false;  // it was seen terminating, and had not finished by then
  OrderKey order;
  k8s::Pod pod;
  Decision decision;
  PodReport report;
  BudgetBook::Selection budgets = nullptr;  // budgets that select it now; never null in the pipeline
  std::vector<std::string> lane;            // lanes that its request in flight occupies; for a signal, its budget
  // Name of the webhook that could not be called and that the request in flight tries again (DownWebhooks); or empty.
  std::string in_turn_for{};
  // The last refusal, by the server or by a budget that the view shows as exhausted. Throttling, timeouts and broken
  // connections do not change it.
  struct Refusal {
    EvictionVerdict verdict = EvictionVerdict::accepted;
    std::uint32_t times = 0;  // refusals in a row of this class
    std::string message{};
    std::optional<WebhookRefusal> webhook{};  // the webhook that refused
  } refusal{};
  Backoff backoff{BackoffOptions{}};
  bool shortening = false;    // the request in flight only shortens the grace period
  std::string left_pinned{};  // why the pod is skipped as pinned, although the filters let it be evicted; else empty
  bool grace_given = false;   // the server has accepted the grace period of the options, or never will
  TimePoint shorten_at{};     // earliest time of the next request to shorten the grace period
};

class Pipeline {
 public:
  using Decide = std::function<Decision(const k8s::Pod&)>;
  using Emit = std::function<void(EventType, const PodReport&)>;
  // Returns the time of the server's clock, to which deletionTimestamps refer.
  using ServerNow = std::function<WallTime()>;
  // How long after the end of its grace period a pod keeps its place.
  static constexpr Duration place_margin = std::chrono::seconds(60);
  // After the server has accepted an eviction, the view shows the pod terminating within milliseconds, or within two
  // minutes if the watch connection was silently dead. If it does not within this limit, the eviction counts as lost
  // (etcd was restored from a backup) and is sent again.
  static constexpr Duration acceptance_limit = std::chrono::seconds(150);
  // A controller whose pods come back to a cordoned node this often counts as pinned to the node.
  static constexpr unsigned returns_until_pinned = 2;
  // A pod that was created within this time after the cordon does not count as one that came back, because it may have
  // been scheduled before the cordon. A pod that tolerates the cordon counts at once.
  static constexpr Duration race_window = std::chrono::seconds(5);

  Pipeline(PipelineOptions options, Rng& rng, Decide decide, Emit emit, ServerNow server_now);

  // The following functions report facts to the pipeline. `now` is the time for its decisions; `wall` is the time that
  // it stores in the PodReport.
  void start(TimePoint now);  // the cordon is in force; pods that appear from now on are late
  // Reports the pod of a watch event. The event may be a repetition, or older than a list that arrived before it. So it
  // never makes a deleted pod exist again, and never undoes a deletionTimestamp.
  void pod_changed(const k8s::Pod& pod, TimePoint now);
  // Reports a pod of a most-recent list that was requested at `asked`. That makes a deleted pod exist again and undoes
  // a deletionTimestamp (etcd was restored from a backup), unless the drain saw the pod deleted or terminating after
  // `asked`, or the watch has shown a later state of the pod since.
  void pod_listed(const k8s::Pod& pod, TimePoint asked, TimePoint now);
  // Reports that the most-recent list requested at `asked` does not contain the pod, so the pod was deleted. Does
  // nothing if the pod was first seen after `asked`, or if a list requested after `asked` contained it. Exception: if
  // an early page of this list contained the pod, and a later page another pod of the same name, the first one counts
  // as deleted, because it was deleted while the list was read.
  void pod_missing(const std::string& uid, TimePoint asked, TimePoint now, WallTime wall);
  // `listed` is a complete most-recent list of the node's pods, each of which was reported by pod_listed() before.
  // Calls pod_missing() for all other known pods.
  void only_listed(const std::map<std::string, k8s::Pod>& listed, TimePoint asked, TimePoint now, WallTime wall);
  // Takes over a complete most-recent list of the node's pods, by pod_listed() and pod_missing().
  void reconcile(const std::vector<k8s::Pod>& listed, TimePoint asked, TimePoint now, WallTime wall);
  void pod_gone(const std::string& uid, TimePoint now, WallTime wall);
  void budget_changed(const std::string& uid, const k8s::PodDisruptionBudget* budget, TimePoint now);
  void answered(const std::string& uid, const Result<>& answer, TimePoint now, WallTime wall);
  // While paused, no eviction is sent (the node was uncordoned, or the Node was deleted). A pod that was created while
  // the node was schedulable does not make its controller pinned, even if the drain finds out only later that the node
  // was schedulable.
  void set_paused(bool paused, TimePoint now);
  // The node was uncordoned for a while, which the drain found out only after the node was cordoned again.
  void cordoned_anew(TimePoint now);
  // The state of a guard has changed. The next take_evictions() checks the guards again for the pods parked by them.
  // With `decisions`, it also makes the decisions about waiting pods again.
  void guards_changed(bool decisions = false) {
    guards_changed_.any = true;
    guards_changed_.decisions |= decisions;
  }
  // Repeats the decisions that depend on time, such as whether a pod is still protected.
  void time_passed(TimePoint now);

  // How long watch events may wait while pods still have to be evicted and no event can be urgent: long enough to keep
  // the processing cheap, short enough to show progress to people.
  static constexpr Duration patience_before = std::chrono::milliseconds(200);
  // Returns how long watch events of pods and budgets may wait before they are processed. Zero while an event may allow
  // an eviction or be the last one of the drain. Not zero while the next eviction depends on an answer, or none is left
  // to send.
  Duration patience() const;
  bool unhurried() const { return patience() > Duration::zero(); }
  // Returns true if so few pods are left that any watch event may be about the last one.
  bool few_left() const;
  // Returns the evictions to send now. Each stays in flight until answered() is called for it.
  std::vector<k8s::Pod> take_evictions(TimePoint now);
  // Returns the time at which the next decision can change without an event, always later than `now`; max() if never.
  // Ignores a pod that is due already but waits for a place, a lane or its tier, because these become free by an answer
  // or an event.
  TimePoint next_wake(TimePoint now) const;

  // Returns UID and key of the pods that are still to be evicted, in order, for a dry run.
  std::vector<std::pair<std::string, std::string>> plan() const;
  // Records the answer to an eviction that was sent as a server dry run. A refused pod is parked. A pod whose eviction
  // was accepted stays queued.
  void dry_run_answered(const std::string& uid, const Result<>& answer);

  // Returns true if only skipped pods are left.
  bool clear() const;
  // Returns true if a pod still exists 60 s after its grace period, or if the server has answered twice that a pod does
  // not exist or was replaced while the view still has it.
  bool any_in_doubt() const;
  // Returns true if a pod is parked, for any reason. A pod whose signal is in flight counts, too.
  bool any_parked() const { return count_of(PodState::parked) > 0 || signal_window_.out() > 0; }
  // Returns true if a pod is parked because of a budget.
  bool any_held_by_budget() const;
  // Returns true if a pod is parked because of a guard.
  bool any_held_by_guard() const;
  std::set<std::string> namespaces_held_by_guards() const;
  // Returns true if the server refused the eviction of every remaining pod with an error that no retry can resolve.
  // Ignores the pod that Haulout runs in while it waits for the others.
  bool hopeless() const;
  Progress progress() const;
  const std::map<std::string, TrackedPod>& pods() const { return pods_; }
  // Returns the pods that must leave and were not deleted yet, in the order of their eviction.
  const std::vector<TrackedPod*>& leaving() const { return order_; }
  const BudgetBook& book() const { return book_; }
  // BudgetsFeed writes here how far the budgets are known. It reports changes of budgets to budget_changed().
  BudgetBook& book() { return book_; }
  std::size_t places_taken() const;
  TimePoint throttled_until() const { return throttled_until_; }
  const std::string& throttle_message() const { return throttle_message_; }
  std::vector<PodReport> reports() const;

 private:
  void track(const k8s::Pod& pod, TimePoint now);
  void become(TrackedPod& tracked, PodState state);
  std::size_t& count_of(PodState state) { return counts_.at(static_cast<std::size_t>(state)); }
  std::size_t count_of(PodState state) const { return counts_.at(static_cast<std::size_t>(state)); }
  void add_to_order(TrackedPod& tracked);
  void remove_from_order(const TrackedPod& tracked);
  void change(TrackedPod& tracked, const k8s::Pod& pod, TimePoint now);
  void apply_decision(TrackedPod& tracked, TimePoint now);
  static void see(TrackedPod& tracked, const k8s::Pod& pod);
  void note_late(TrackedPod& tracked, TimePoint now);
  void pin(TrackedPod& tracked, const std::string& what, TimePoint now);
  void send(TrackedPod& tracked, TimePoint now);
  void send_signal(TrackedPod& tracked, TimePoint now);
  void depart(TrackedPod& tracked, TimePoint now);
  BudgetBook::Gate gate_of(const TrackedPod& tracked) const;
  // Returns true if the pod waits: it is parked, or its request in flight is only a signal.
  static bool waits(const TrackedPod& tracked) {
    return tracked.state == PodState::parked || (tracked.state == PodState::in_flight && tracked.signal);
  }
  void see_terminating(TrackedPod& tracked, TimePoint now);
  void refuse(TrackedPod& tracked, const Error& error, EvictionVerdict verdict, TimePoint now);
  void throttle(TrackedPod& tracked, const Error& error, bool was_signal, TimePoint now);
  void count_answer(TrackedPod& tracked, const Error* error, EvictionVerdict verdict, TimePoint now);
  void hear_of_webhook(TrackedPod& tracked, const Error* error, EvictionVerdict verdict, TimePoint now);
  void webhook_is_back(const std::string& name, TimePoint now);
  void webhook_has_changed(const std::string& name, TimePoint now);
  std::string explained(const TrackedPod& tracked, const Error& error, EvictionVerdict verdict) const;
  void park(TrackedPod& tracked, std::string reason, std::string message, TimePoint wake_at);
  void hold(TrackedPod& tracked, TrackedPod::Hold why, std::string reason, std::string message);
  void queue(TrackedPod& tracked);
  void vanish(TrackedPod& tracked, TimePoint now, WallTime wall);
  void revive(TrackedPod& tracked, TimePoint now);
  void mark_stuck(TrackedPod& tracked);
  void leave_overdue(TimePoint now);
  void unpin(TimePoint now);
  void ask_guards_again(TimePoint now);
  std::optional<EvictionGuard::Hold> held_by_guard(TrackedPod& tracked, TimePoint now);
  // Returns a pod that must leave before this one may be evicted, or nullptr: a pod of an earlier stage; for a member
  // of a gang that runs, also a pod that keeps the drain from its end.
  const TrackedPod* waits_for(const TrackedPod& tracked) const;
  // Calls pod_missing() for each known pod that a most-recent list does not contain.
  void all_missing_but(const auto& listed, TimePoint asked, TimePoint now, WallTime wall);
  // Parks the pod and returns true if a guard holds it.
  bool park_for_guard(TrackedPod& tracked, TimePoint now);
  void park_at_closed_gate(TrackedPod& tracked, TimePoint now);
  static Signals::Cause cause_of(const TrackedPod& tracked);
  // Returns the name of the unreachable webhook that blocks the pod, if only one pod at a time is tried for it;
  // otherwise an empty string.
  std::string down_webhook(const TrackedPod& tracked) const;
  // Returns true if a budget that the drain may not read refused the pod, and the pod has not changed since.
  bool waits_unseen(const TrackedPod& tracked) const;
  void unseen_budget_lets_go(const TrackedPod& tracked, TimePoint now);
  void wake(TrackedPod& tracked, TimePoint now);
  void catch_up(TrackedPod& tracked, TimePoint now);
  // Pods whose eviction failed for a reason other than a budget come after the others, so that a webhook that hangs
  // does not take each place that becomes free (P9).
  enum class Pass { untroubled, troubled };
  static bool troubled(const TrackedPod& tracked);
  struct Taking {
    TimePoint now;
    std::size_t places;                  // places taken so far
    std::vector<k8s::Pod> evictions{};   // evictions to send
    std::vector<TrackedPod*> in_turn{};  // pods of which one at a time may be tried, after all others
  };
  bool has_place(const Taking& taking) const { return options_.max_places == 0 || taking.places < options_.max_places; }
  // Adds to `taking` the evictions of this pass that may be sent now, and the pods of which only one at a time may be
  // tried. Returns true if a pod that is due belongs to the other pass.
  bool take(Pass pass, Taking& taking);
  void take_in_turn(Taking& taking);
  bool take_one_in_turn(TrackedPod& tracked, Taking& taking);
  // The next three functions shorten the grace period of a terminating pod, if another client or an earlier drain has
  // given it a longer one than that of the options. The server accepts a shorter one without checking any budget, and
  // ignores a longer one. A request that shortens a grace period takes no place and no lane.
  bool to_be_shortened(const TrackedPod& tracked) const;
  void take_shortenings(Taking& taking);
  void not_shortened(TrackedPod& tracked, const Error& error, TimePoint now);

  PipelineOptions options_;
  Rng& rng_;
  Decide decide_;
  Emit emit_;
  ServerNow server_now_;
  BudgetBook book_;
  std::map<std::string, TrackedPod> pods_;       // by UID
  std::vector<TrackedPod*> order_;               // pods that must leave and were not deleted, in order
  std::map<std::string, unsigned> returns_;      // number of late pods that have come back, by controller UID
  std::map<std::string, unsigned> vanished_of_;  // number of evicted pods that were deleted, by controller UID
  std::optional<TimePoint> started_;
  Backoff throttle_backoff_{backoff_after(EvictionVerdict::throttle)};
  TimePoint throttled_until_{};
  std::string throttle_message_;
  std::array<std::size_t, 6> counts_{};  // number of pods in pods_, by state
  RequestWindow window_{options_.max_requests};
  RequestWindow signal_window_{options_.max_requests};
  Signals signals_;
  DownWebhooks down_webhooks_;
  UnseenBudgets unseen_budgets_;
  bool paused_ = false;
  struct {
    bool any = false;
    bool decisions = false;
  } guards_changed_;
  TimePoint taking_no_pods_since_{};  // since when the node has been cordoned; valid while not paused
};

}  // namespace haulout::drain
