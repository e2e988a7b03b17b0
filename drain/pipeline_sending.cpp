// Pipeline: which evictions may be sent now.
#include <algorithm>
#include <utility>

#include "drain/pipeline.hpp"

namespace haulout::drain {

namespace {

// Of so many pods any can be the last to go.
constexpr std::size_t few = 10;
// All the others may go in one moment, too, but not before they have been asked to: an end is to be seen within 100 ms.
constexpr Duration patience_at_the_end = std::chrono::milliseconds(40);
// Long enough that reading costs little, short enough that people see things move.
constexpr Duration patience_before = std::chrono::milliseconds(200);

// A refusal by a budget is no failure: such a pod is woken when it can go.
bool troubled(const TrackedPod& tracked) {
  return tracked.refusals > 0 && tracked.last_verdict != EvictionVerdict::budget;
}

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
  if (!full() && (count_of(PodState::parked) > 0 || for_a_place)) return Duration::zero();
  return queued > 0 || full() ? patience_before : patience_at_the_end;
}

void Pipeline::send(TrackedPod& tracked) {
  if (tracked.state == PodState::parked) emit_(EventType::resumed, tracked.report);
  become(tracked, PodState::in_flight);
  tracked.holds_place = true;
  tracked.request_out = true;
  ++requests_out_;
  ++tracked.report.attempts;
  tracked.lane = options_.respect_budgets ? book_.sent(tracked.pod, *tracked.budgets) : std::vector<std::string>();
  emit_(EventType::eviction_sent, tracked.report);
}

BudgetBook::Gate Pipeline::gate_of(const TrackedPod& tracked) const {
  return options_.respect_budgets ? book_.gate(tracked.pod, *tracked.budgets) : BudgetBook::Gate::open;
}

std::vector<k8s::Pod> Pipeline::take_evictions(TimePoint now) {
  std::vector<k8s::Pod> evictions;
  if (paused_ || now < throttled_until_ || full()) return evictions;
  ask_guards_again(now);
  std::size_t places = options_.max_places == 0 ? 0 : places_taken();
  if (take(Pass::untroubled, now, places, evictions)) take(Pass::troubled, now, places, evictions);
  return evictions;
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

bool Pipeline::take(Pass pass, TimePoint now, std::size_t& places, std::vector<k8s::Pod>& evictions) {
  bool others = false;
  const Tier* open_tier = nullptr;
  BudgetBook::Selection busy = nullptr;
  // A pod that is tried for the first time keeps the next tier closed, a pod that was parked before does not.
  const auto close_behind = [&](const TrackedPod& tracked) {
    if (!tracked.was_parked && !open_tier) open_tier = &tracked.order.tier;
  };
  for (TrackedPod* tracked : order_) {
    if (full()) break;
    const bool due =
        tracked->state == PodState::queued || (tracked->state == PodState::parked && tracked->wake_at <= now);
    // One that a restored etcd has brought back may still wait for the answer about its life before.
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
    // Pods of one controller stand next to each other: a lane that is busy for the first of them is for all.
    const bool same_lane = busy && busy == tracked->budgets;
    if (!same_lane && park_for_guard(*tracked, now)) continue;
    const auto gate = same_lane ? BudgetBook::Gate::busy : gate_of(*tracked);
    busy = gate == BudgetBook::Gate::busy && !tracked->budgets->empty() ? tracked->budgets : nullptr;
    if (gate == BudgetBook::Gate::closed) {
      park_at_closed_gate(*tracked, now);
      continue;
    }
    close_behind(*tracked);
    if (gate == BudgetBook::Gate::busy || (options_.max_places != 0 && places >= options_.max_places)) continue;
    send(*tracked);
    ++places;
    evictions.push_back(tracked->pod);
  }
  return others;
}

}  // namespace haulout::drain
