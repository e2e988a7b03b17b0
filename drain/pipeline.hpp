// The eviction pipeline as a pure state machine. Its caller reports changes of pods and budgets, answers to evictions,
// and the time. The pipeline returns the evictions to send now, and when to call it again. It does no I/O and never
// waits.
//
// A pod that must leave is queued, in flight (its eviction was sent), terminating, parked or vanished (deleted).
//   - Places (max_places) limit the pods that are leaving at the same time. A pod takes its place before its eviction
//     is sent. It gives the place back when the eviction is refused, when the pod is deleted, 60 s after its grace
//     period ended, or when an accepted eviction has had no effect for 150 s. A pod that another client deletes takes
//     no place.
//   - A parked pod waits for something else. It takes no place and does not hold up its tier (P9). It is tried again on
//     the event that can help it, or when its backoff ends.
//   - Each budget is a lane with one request in flight (BudgetBook).
//   - While a pod's budget is closed, an eviction of the pod is sent now and then all the same (Signals). The pod stays
//     parked, and the request takes neither a place nor a lane.
//   - If the drain may not read budgets: of the pods of one controller that a budget refuses, one at a time is tried
//     again (UnseenBudgets).
//   - If a webhook cannot be called: of the pods that it holds back, one at a time is tried again (DownWebhooks).
//   - A pod whose last eviction failed is tried after the pods whose evictions have not failed (P9).
//   - The pod that this program runs in is evicted when all others have been deleted.
//   - A tier starts when every pod of the earlier tiers is terminating, deleted, or has been parked.
//   - A pod that is terminating is not evicted again, with one exception: one request that shortens a grace period
//     which is longer than the one that was asked for. Every eviction names one UID.
// The pipeline identifies pods by UID. A change that is reported twice has no effect the second time. An answer that
// arrives after its pod was deleted has none, either.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "drain/budget_book.hpp"
#include "drain/down_webhooks.hpp"
#include "drain/eviction_guard.hpp"
#include "drain/eviction_verdict.hpp"
#include "drain/observer.hpp"
#include "drain/order.hpp"
#include "drain/pod_filter.hpp"
#include "drain/request_window.hpp"
#include "drain/signals.hpp"
#include "drain/unseen_budgets.hpp"
#include "retry/backoff.hpp"
#include "retry/rng.hpp"

namespace haulout::drain {

enum class PodState { left, queued, in_flight, terminating, parked, vanished };

// It is to go and has not gone yet.
constexpr bool must_leave(PodState state) {
  return state != PodState::left && state != PodState::vanished;
}

struct PipelineOptions {
  std::size_t max_places = 5;  // 0: unlimited
  // Eviction requests on the wire at once, whatever the places, while answers are quick (RequestWindow).
  std::size_t max_requests = 10;
  bool respect_budgets = true;  // false when pods are deleted instead of evicted
  std::optional<std::int64_t> grace_seconds{};
  std::string own_uid{};
  std::vector<OrderRule> order{};
  bool leaves_pinned = false;  // pods that are pinned to the node are left instead of waited for
  // That are known to bring their pods back to the node, as controller_key() names them.
  std::set<std::string> pinned_controllers{};
  // Policy skips pods that have been terminating for too long: time alone can take a pod out.
  bool skips_overdue = false;
  // Guards beyond budgets. Borrowed. The first that holds a pod back says why.
  std::vector<EvictionGuard*> guards{};
};

// Namespace/kind/name of the controller that has made it; empty: none has.
std::string controller_key(const k8s::Pod& pod);

struct TrackedPod {
  // First, side by side: what is looked at in every pod each time that something happens.
  PodState state = PodState::queued;
  // Parked until the pod or policy changes, not by time; by a guard until that lets it go.
  enum class Hold { none, policy, pinned, guard } hold = Hold::none;
  EvictionVerdict last_verdict = EvictionVerdict::accepted;
  std::uint32_t refusals = 0;  // in a row, with the same verdict
  bool holds_place = false;
  bool was_parked = false;
  bool is_late = false;
  bool stuck = false;        // still there 60 s after its grace period
  bool answer_lost = false;  // the last eviction may have taken effect: no answer came
  bool request_out = false;  // an eviction was sent and not yet answered
  bool inferred = false;     // evicted_at stems from the watch: the answer may yet say that it was not us
  bool signal = false;       // the request that is out is only a signal
  bool asked = false;        // the server has answered a request for it, and its admission has seen it
  bool has_news = false;     // it has changed since
  bool denied = false;       // by its budget's closed gate it waits with what admission said to the last signal
  TimePoint wake_at{};       // parked: not tried before, unless woken
  TimePoint terminating_until = TimePoint::max();  // when its place is given back
  TimePoint accepted_until = TimePoint::max();  // when an accepted eviction that the view does not show counts as lost
  TimePoint terminating_since{};
  TimePoint vanished_since{};
  // A list that was asked for before either of them, and does not have it, proves nothing.
  TimePoint known_since{};
  TimePoint told_at{};    // by the watch, last
  TimePoint listed_at{};  // when the last list that had it was asked for
  TimePoint last_answer{};
  TimePoint sent_at{};  // of the last request
  // Before it was on its way out, as far as was seen. What the kubelet has stopped has finished, too (since 1.27).
  bool had_finished = false;
  OrderKey order;
  k8s::Pod pod;
  Decision decision;
  PodReport report;
  BudgetBook::Selection budgets = nullptr;  // that select it now; never null in a pod of the pipeline
  std::vector<std::string> lane;            // that were busy with its request when it was sent; of a signal its budget
  std::string in_turn_for{};                // the webhook that is down, of whose pods this one was asked for
  // What the server, or a budget that is seen to be closed, refused it with last. Silence and broken connections say
  // nothing about that and change nothing.
  struct Refusal {
    EvictionVerdict verdict = EvictionVerdict::accepted;
    std::uint32_t times = 0;  // in a row
    std::string message{};
    std::optional<WebhookRefusal> webhook{};  // that said no
  } refusal{};
  Backoff backoff{BackoffOptions{}};
  bool shortening = false;    // the request that is out is to shorten its grace period
  std::string left_pinned{};  // why it is left although policy says evict: its controller brings it back
  bool grace_given = false;   // the server has accepted our grace period, or will not
  TimePoint shorten_at{};     // not before: the last try failed
};

class Pipeline {
 public:
  using Decide = std::function<Decision(const k8s::Pod&)>;
  using Emit = std::function<void(EventType, const PodReport&)>;
  // The server's clock, by which it says when a pod's time is up.
  using ServerNow = std::function<WallTime()>;
  // How long past the end of its grace period a pod keeps its place.
  static constexpr Duration place_margin = std::chrono::seconds(60);
  // An accepted eviction shows in the view within milliseconds, after a black hole within two minutes. Later it is lost
  // (an etcd restored from a backup) and is sent again.
  static constexpr Duration acceptance_limit = std::chrono::seconds(150);
  // A controller whose pods return this often to a cordoned node is pinned to it.
  static constexpr unsigned returns_until_pinned = 2;
  // Pods that were on their way when the node was cordoned are no returns, unless they tolerate the cordon.
  static constexpr Duration race_window = std::chrono::seconds(5);

  Pipeline(PipelineOptions options, Rng& rng, Decide decide, Emit emit, ServerNow server_now);

  // Facts. `wall` is what the report shows.
  void start(TimePoint now);  // the cordon stands: pods that appear from now on are late
  // An event of the watch. It may be a replay, or have been held back while a list told more: it brings no vanished pod
  // back and takes no deletion back.
  void pod_changed(const k8s::Pod& pod, TimePoint now);
  // From a most-recent list. It does both (an etcd restored from a backup), unless the pod vanished or was seen leaving
  // after the list was `asked` for, or the watch has told of a later state of it since.
  void pod_listed(const k8s::Pod& pod, TimePoint asked, TimePoint now);
  // A most-recent list does not have it: it has vanished, unless we learnt later than the list was `asked` for that it
  // is there; or the list that had it a moment ago has another one under its name.
  void pod_missing(const std::string& uid, TimePoint asked, TimePoint now, WallTime wall);
  // All pods of the node by a most-recent list that was told pod by pod: likewise for all others that are known.
  void only_listed(const std::map<std::string, k8s::Pod>& listed, TimePoint asked, TimePoint now, WallTime wall);
  // All pods of the node by a most-recent list.
  void reconcile(const std::vector<k8s::Pod>& listed, TimePoint asked, TimePoint now, WallTime wall);
  void pod_gone(const std::string& uid, TimePoint now, WallTime wall);
  void budget_changed(const std::string& uid, const k8s::PodDisruptionBudget* budget, TimePoint now);
  void answered(const std::string& uid, const Result<>& answer, TimePoint now, WallTime wall);
  // No eviction is sent while paused (the cordon or the Node is gone). What has come to a node that took pods is not
  // pinned to it, also if that was learnt only afterwards.
  void set_paused(bool paused, TimePoint now);
  // The node took pods for a while, which is learnt only now that it takes none any more.
  void cordoned_anew(TimePoint now);
  // What guards know has changed: they are asked again by the next take_evictions().
  void guards_changed() { guards_changed_ = true; }
  void set_budgets_visible(bool visible) { book_.set_visible(visible); }
  // Time-dependent decisions (a protection that runs out) are taken again.
  void time_passed(TimePoint now);

  // How long news of pods and budgets may be left unread. Zero while any of them may let an eviction go or be the last;
  // otherwise an answer comes first.
  Duration patience() const;
  bool unhurried() const { return patience() > Duration::zero(); }
  // Any news may be the last.
  bool few_left() const;
  // The evictions to send now; each is in flight until answered() is called for it.
  std::vector<k8s::Pod> take_evictions(TimePoint now);
  // When the next decision can change without an event, always later than `now`; max() if never. What is due already
  // but waits for a place, a lane or its tier is woken by the event that frees it.
  TimePoint next_wake(TimePoint now) const;

  // UID and key of the pods that are still to be evicted, in order: what a dry run walks through.
  std::vector<std::pair<std::string, std::string>> plan() const;
  // The answer to a simulated eviction: recorded, nothing else changes.
  void dry_run_answered(const std::string& uid, const Result<>& answer);

  // Nothing is left but pods that are skipped on purpose.
  bool clear() const;
  // A pod is still there 60 s after its grace period, or the server has said twice that it is not.
  bool any_in_doubt() const;
  // A pod waits for something; for a budget; for a guard.
  bool any_parked() const { return count_of(PodState::parked) > 0 || signal_window_.out() > 0; }
  bool any_held_by_budget() const;
  bool any_held_by_guard() const;
  std::set<std::string> namespaces_held_by_guards() const;
  // Every pod that is left was refused in a way that no retry heals.
  bool hopeless() const;
  Progress progress() const;
  const std::map<std::string, TrackedPod>& pods() const { return pods_; }
  // Those that must leave and have not vanished, in the order of their eviction.
  const std::vector<TrackedPod*>& leaving() const { return order_; }
  const BudgetBook& book() const { return book_; }
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
  // Its eviction is out, but only as a signal: it waits as before.
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
  std::optional<EvictionGuard::Hold> held_by_guard(const TrackedPod& tracked, TimePoint now) const;
  // The own pod: whoever evicts itself leaves to nobody in particular what it still waits for.
  bool waits_for_all_others(const TrackedPod& tracked) const { return tracked.order.tier.own && order_.size() > 1; }
  // Those that a most-recent list does not have.
  void all_missing_but(const auto& listed, TimePoint asked, TimePoint now, WallTime wall);
  // True when a guard holds it back: it is parked.
  bool park_for_guard(TrackedPod& tracked, TimePoint now);
  void park_at_closed_gate(TrackedPod& tracked, TimePoint now);
  static Signals::Cause cause_of(const TrackedPod& tracked);
  // The webhook that is down and of whose pods only one in turn is asked for; empty: none.
  std::string down_webhook(const TrackedPod& tracked) const;
  // A budget that we may not see has refused it, and nothing has changed since.
  bool waits_unseen(const TrackedPod& tracked) const;
  void unseen_budget_lets_go(const TrackedPod& tracked, TimePoint now);
  void wake(TrackedPod& tracked, TimePoint now);
  void catch_up(TrackedPod& tracked, TimePoint now);
  // What has failed for its own reasons comes after what has not: a webhook that hangs must not take each place that
  // becomes free (P9).
  enum class Pass { untroubled, troubled };
  static bool troubled(const TrackedPod& tracked);
  struct Taking {
    TimePoint now;
    std::size_t places;                  // taken
    std::vector<k8s::Pod> evictions{};   // to be sent
    std::vector<TrackedPod*> in_turn{};  // that may be asked for after all others
  };
  bool has_place(const Taking& taking) const { return options_.max_places == 0 || taking.places < options_.max_places; }
  // True when pods of the other pass wait.
  bool take(Pass pass, Taking& taking);
  void take_in_turn(Taking& taking);
  bool take_one_in_turn(TrackedPod& tracked, Taking& taking);
  // pipeline_grace.cpp
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
  std::vector<TrackedPod*> order_;               // pods that must leave and have not vanished, by their order
  std::map<std::string, unsigned> returns_;      // by controller UID
  std::map<std::string, unsigned> vanished_of_;  // by controller UID: evicted pods that have vanished
  std::optional<TimePoint> started_;
  Backoff throttle_backoff_{backoff_after(EvictionVerdict::throttle)};
  TimePoint throttled_until_{};
  std::string throttle_message_;
  std::array<std::size_t, 6> counts_{};  // of pods_, by state
  RequestWindow window_{options_.max_requests};
  RequestWindow signal_window_{options_.max_requests};
  Signals signals_;
  DownWebhooks down_webhooks_;
  UnseenBudgets unseen_budgets_;
  bool paused_ = false;
  bool guards_changed_ = false;
  TimePoint taking_no_pods_since_{};  // while not paused
};

}  // namespace haulout::drain
