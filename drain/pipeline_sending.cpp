// Pipeline: decides which evictions to send now.
#include <algorithm>
#include <utility>

#include "drain/pipeline.hpp"

namespace haulout::drain {

namespace {

// With fewer pods than this, any watch event may be about the last one, so events are processed at once.
constexpr std::size_t few = 10;
// How long events may wait when the evictions of all pods have been sent. All pods may be deleted at the same moment
// then, and the drain must see its end within 100 ms.
constexpr Duration patience_at_the_end = std::chrono::milliseconds(40);
// How long events may wait while pods still have to be evicted: long enough that processing them costs little, short
// enough that people see progress.
constexpr Duration patience_before = std::chrono::milliseconds(200);

}  // namespace

std::size_t Pipeline::places_taken() const {
  return static_cast<std::size_t>(
      std::count_if(order_.begin(), order_.end(), [](const TrackedPod* tracked) { return tracked->holds_place; }));
}

bool Pipeline::few_left() const {
  return order_.size() < few;
}

Duration Pipeline::patience() const {
  if (few_left()) return Duration::zero();
  const std::size_t queued = count_of(PodState::queued);
  const bool for_a_place = options_.max_places != 0 && queued > 0;
  if (!window_.full() && (any_parked() || for_a_place)) return Duration::zero();
  return queued > 0 || window_.full() ? patience_before : patience_at_the_end;
}

void Pipeline::depart(TrackedPod& tracked, TimePoint now) {
  become(tracked, PodState::in_flight);
  tracked.request_out = true;
  tracked.has_news = false;
  tracked.sent_at = now;
  tracked.shorten_at = now + Backoff::minimum;
  tracked.in_turn_for = down_webhook(tracked);
  if (!tracked.in_turn_for.empty()) down_webhooks_.sent(tracked.in_turn_for, tracked.pod.uid);
  ++tracked.report.attempts;
}

void Pipeline::send(TrackedPod& tracked, TimePoint now) {
  if (tracked.state == PodState::parked) emit_(EventType::resumed, tracked.report);
  depart(tracked, now);
  tracked.holds_place = true;
  window_.sent(tracked.pod.uid, tracked.pod.ns, now);
  for (const std::string& budget : *tracked.budgets) signals_.asked(budget, now, rng_);
  tracked.lane = options_.respect_budgets ? book_.sent(tracked.pod, *tracked.budgets) : std::vector<std::string>();
  emit_(EventType::eviction_sent, tracked.report);
}

void Pipeline::send_signal(TrackedPod& tracked, TimePoint now) {
  const std::string& budget = tracked.budgets->front();
  signals_.sent(budget, cause_of(tracked), now, rng_);
  tracked.signal = true;
  depart(tracked, now);
  signal_window_.sent(tracked.pod.uid, tracked.pod.ns, now);
  book_.signalled(tracked.pod, budget);
  tracked.lane = *tracked.budgets;
  emit_(EventType::signal_sent, tracked.report);
}

Signals::Cause Pipeline::cause_of(const TrackedPod& tracked) {
  if (!tracked.asked) return Signals::Cause::first;
  return tracked.has_news ? Signals::Cause::news : Signals::Cause::turn;
}

std::string Pipeline::down_webhook(const TrackedPod& tracked) const {
  const auto& webhook = tracked.refusal.webhook;
  return webhook && webhook->down && down_webhooks_.contains(webhook->name) ? webhook->name : std::string();
}

bool Pipeline::waits_unseen(const TrackedPod& tracked) const {
  return options_.respect_budgets && !book_.visible() && tracked.state == PodState::parked &&
         tracked.last_verdict == EvictionVerdict::budget && !tracked.has_news;
}

BudgetBook::Gate Pipeline::gate_of(const TrackedPod& tracked) const {
  return options_.respect_budgets ? book_.gate(tracked.pod, *tracked.budgets) : BudgetBook::Gate::open;
}

std::vector<k8s::Pod> Pipeline::take_evictions(TimePoint now) {
  window_.look(now);
  signal_window_.look(now);
  if (paused_ || now < throttled_until_) return {};
  ask_guards_again(now);
  Taking taking{now, options_.max_places == 0 ? 0 : places_taken()};
  take_shortenings(taking);
  if (take(Pass::untroubled, taking)) take(Pass::troubled, taking);
  take_in_turn(taking);
  return std::move(taking.evictions);
}

std::optional<EvictionGuard::Hold> Pipeline::held_by_guard(const TrackedPod& tracked, TimePoint now) const {
  for (EvictionGuard* guard : options_.guards)
    if (auto held = guard->held(tracked.pod, now)) return held;
  return std::nullopt;
}

bool Pipeline::park_for_guard(TrackedPod& tracked, TimePoint now) {
  if (options_.guards.empty()) return false;
  auto held = held_by_guard(tracked, now);
  if (tracked.hold == TrackedPod::Hold::guard) tracked.hold = TrackedPod::Hold::none;
  if (!held) return false;
  tracked.hold = TrackedPod::Hold::guard;
  park(tracked, std::move(held->reason), std::move(held->message), held->until);
  return true;
}

void Pipeline::ask_guards_again(TimePoint now) {
  if (!std::exchange(guards_changed_, false) || options_.guards.empty() || count_of(PodState::parked) == 0) return;
  for (TrackedPod* tracked : order_) {
    if (tracked->hold != TrackedPod::Hold::guard || tracked->state != PodState::parked) continue;
    if (auto held = held_by_guard(*tracked, now)) {
      park(*tracked, std::move(held->reason), std::move(held->message), held->until);
    } else {
      tracked->wake_at = std::min(tracked->wake_at, now);
    }
  }
}

bool Pipeline::take(Pass pass, Taking& taking) {
  const TimePoint now = taking.now;
  bool others = false;
  const Tier* open_tier = nullptr;
  BudgetBook::Selection busy = nullptr;
  // A pod that was never parked keeps the next tier closed; a pod that was parked before does not.
  const auto close_behind = [&](const TrackedPod& tracked) {
    if (!tracked.was_parked && !open_tier) open_tier = &tracked.order.tier;
  };
  for (TrackedPod* tracked : order_) {
    const bool due =
        tracked->state == PodState::queued || (tracked->state == PodState::parked && tracked->wake_at <= now);
    // A pod that an etcd restore has brought back may still have a request in flight from before the restore.
    if (tracked->state == PodState::in_flight || (due && tracked->request_out)) {
      close_behind(*tracked);
      continue;
    }
    if (!due) continue;
    if (open_tier && *open_tier < tracked->order.tier) break;
    if (waits_for_all_others(*tracked)) continue;
    if (troubled(*tracked) != (pass == Pass::troubled)) {
      others = true;
      close_behind(*tracked);
      continue;
    }
    // Pods of one controller are adjacent in `order_`. If a lane is busy for the first of them, it is busy for all with
    // the same budgets.
    const bool same_lane = busy && busy == tracked->budgets;
    if (!same_lane && park_for_guard(*tracked, now)) continue;
    const auto gate = same_lane ? BudgetBook::Gate::busy : gate_of(*tracked);
    busy = gate == BudgetBook::Gate::busy && !tracked->budgets->empty() ? tracked->budgets : nullptr;
    if (gate == BudgetBook::Gate::closed) park_at_closed_gate(*tracked, now);
    if (gate == BudgetBook::Gate::closed || !down_webhook(*tracked).empty() || waits_unseen(*tracked)) {
      taking.in_turn.push_back(tracked);
      continue;
    }
    close_behind(*tracked);
    if (gate == BudgetBook::Gate::busy || !has_place(taking) || !window_.takes(tracked->pod.ns)) continue;
    send(*tracked, now);
    ++taking.places;
    taking.evictions.push_back(tracked->pod);
  }
  return others;
}

// Tries pods in the order of their last requests, the oldest first.
void Pipeline::take_in_turn(Taking& taking) {
  std::erase_if(taking.in_turn, [&](const TrackedPod* tracked) { return tracked->wake_at > taking.now; });
  std::sort(taking.in_turn.begin(), taking.in_turn.end(), [](const TrackedPod* a, const TrackedPod* b) {
    return a->sent_at != b->sent_at ? a->sent_at < b->sent_at : a->order < b->order;
  });
  for (TrackedPod* tracked : taking.in_turn)
    if (take_one_in_turn(*tracked, taking)) taking.evictions.push_back(tracked->pod);
}

// Returns false if the pod has to wait until it is due or until an answer that it waits for has arrived.
bool Pipeline::take_one_in_turn(TrackedPod& tracked, Taking& taking) {
  const std::string webhook = down_webhook(tracked);
  const TimePoint webhook_at = webhook.empty() ? TimePoint::min() : down_webhooks_.next(webhook);
  if (webhook_at > taking.now) {
    if (webhook_at != TimePoint::max())
      park(tracked, std::string(park_reason(EvictionVerdict::retry)), tracked.refusal.message, webhook_at);
    return false;
  }
  const TimePoint unseen_at =
      waits_unseen(tracked) ? unseen_budgets_.next(UnseenBudgets::group_of(tracked.pod)) : TimePoint::min();
  if (unseen_at > taking.now) {
    tracked.wake_at = unseen_at;
    return false;
  }
  // Checks guard and gate again: since take() looked, a guard may have let another pod go, and a lane takes one request
  // at a time.
  if (park_for_guard(tracked, taking.now)) return false;
  const BudgetBook::Gate gate = gate_of(tracked);
  if (gate == BudgetBook::Gate::busy || !has_place(taking)) return false;
  if (gate == BudgetBook::Gate::open) {
    if (!window_.takes(tracked.pod.ns)) return false;
    send(tracked, taking.now);
    ++taking.places;
    return true;
  }
  const std::string& budget = tracked.budgets->front();
  if (const TimePoint due = signals_.next(budget, cause_of(tracked)); due > taking.now) {
    tracked.wake_at = due;
    return false;
  }
  if (signals_.under_way(budget) || !signal_window_.takes(tracked.pod.ns)) return false;
  send_signal(tracked, taking.now);
  return true;
}

}  // namespace haulout::drain
