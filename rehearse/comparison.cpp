#include "rehearse/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/duration.hpp"
#include "base/text.hpp"

namespace haulout::rehearse {
namespace {

// By how much longer a pod must wait for capacity to count as waiting longer: by both.
constexpr Duration room_noise = std::chrono::seconds(10);
constexpr int room_share = 10;
// A setting must be faster by this part of the time.
constexpr int time_share = 100;

bool is_complete(const FleetNode& node) {
  return node.updated && node.state == agent::State::idle;
}

// Returns the part of its replicas that were Ready in its worst moment.
double least_share(const OwnerCourse& owner) {
  return owner.replicas == 0 ? 1.0 : static_cast<double>(owner.least_ready) / static_cast<double>(owner.replicas);
}

std::string after(WallTime at, WallTime began) {
  return "after " + format_whole_seconds(at - began);
}

std::optional<Objection> unfinished_objection(const FleetFigures& figures, const FleetFigures& reference) {
  if (figures.unfinished.size() <= reference.unfinished.size()) return std::nullopt;
  return Objection{Objection::Kind::unfinished, figures.unfinished.front(),
                   fmt::format("{} not updated, {} more than with the slowest setting: {}",
                               count_of(figures.unfinished.size(), "node"),
                               figures.unfinished.size() - reference.unfinished.size(), some_of(figures.unfinished))};
}

bool waits_longer(Duration waits, Duration before) {
  return waits > before + room_noise && waits > before + before / room_share;
}

Objection room_objection(const OwnerCourse& owner, Duration before) {
  std::string text =
      fmt::format("{}: {} for capacity, up to {}", owner.owner,
                  owner.without_room == 1 ? "a pod waits" : count_of(owner.without_room, "pod") + " wait",
                  format_whole_seconds(owner.longest_without_room));
  text += before == Duration::zero() ? "; with the slowest setting none does"
                                     : "; with the slowest setting up to " + format_whole_seconds(before);
  return {Objection::Kind::room, owner.owner, std::move(text)};
}

bool is_faster(const FleetFigures& one, const FleetFigures& other) {
  return one.took && (!other.took || *one.took + *one.took / time_share < *other.took);
}

}  // namespace

bool is_harmed(const BudgetCourse& budget) {
  return budget.least_healthy < std::min(budget.desired, budget.healthy);
}

bool had_worse_moment(const OwnerCourse& owner) {
  return owner.is_replaced && owner.replicas > 1 && owner.least_ready < owner.ready;
}

bool is_harmed(const OwnerCourse& owner) {
  return had_worse_moment(owner) && !owner.has_budget && owner.least_ready == 0;
}

double per_pod(std::size_t evictions, std::size_t pods) {
  return pods == 0 ? 0.0 : static_cast<double>(evictions) / static_cast<double>(pods);
}

Evictions evictions_of(const std::vector<OwnerCourse>& owners) {
  Evictions sum;
  for (const OwnerCourse& owner : owners) {
    sum.pods += owner.pods;
    sum.evictions += owner.evictions;
    if (owner.evictions == 0) continue;
    const double share = per_pod(owner.evictions, owner.pods);
    const double known = sum.most ? per_pod(sum.most->evictions, sum.most->pods) : -1.0;
    if (share > known || (share == known && owner.owner < sum.most->owner)) sum.most = &owner;
  }
  return sum;
}

FleetFigures figures_of(const FleetRehearsal& rehearsal) {
  FleetFigures figures;
  figures.began = rehearsal.began;
  figures.end = rehearsal.end;
  figures.most_out = rehearsal.most_out;
  figures.owners = rehearsal.owners;
  for (const FleetNode& node : rehearsal.nodes) {
    if (!node.left_out.empty()) {
      figures.left_out.push_back(fmt::format("{} ({})", node.name, node.left_out));
      continue;
    }
    ++figures.nodes;
    if (is_complete(node))
      figures.took =
          std::max<Duration>(figures.took.value_or(Duration::zero()),
                             node.phases.empty() ? Duration::zero() : node.phases.back().from - rehearsal.began);
    else
      figures.unfinished.push_back(node.name);
  }
  std::ranges::sort(figures.unfinished);
  for (const OwnerCourse& owner : figures.owners) {
    figures.without_room += owner.without_room;
    figures.longest_without_room = std::max(figures.longest_without_room, owner.longest_without_room);
  }
  std::ranges::sort(figures.owners, {}, [](const OwnerCourse& owner) {
    return std::tuple(!is_harmed(owner), !had_worse_moment(owner), least_share(owner), owner.owner);
  });
  for (const BudgetCourse& budget : rehearsal.budgets)
    if (is_harmed(budget)) figures.harmed_budgets.push_back(budget);
  return figures;
}

std::string_view to_string(Objection::Kind kind) {
  switch (kind) {
    case Objection::Kind::unfinished: return "unfinished";
    case Objection::Kind::budget: return "budget";
    case Objection::Kind::owner: return "owner";
    case Objection::Kind::room: return "capacity";
  }
  return "";
}

std::vector<Objection> objections(const FleetFigures& figures, const FleetFigures& reference) {
  std::vector<Objection> found;
  if (auto unfinished = unfinished_objection(figures, reference)) found.push_back(*std::move(unfinished));
  for (const BudgetCourse& budget : figures.harmed_budgets)
    found.push_back({Objection::Kind::budget, budget.budget,
                     fmt::format("PodDisruptionBudget {} has {} {}, but must keep {}", budget.budget,
                                 count_of(static_cast<std::size_t>(budget.least_healthy), "healthy pod"),
                                 after(budget.least_at, figures.began), budget.desired)});
  std::map<std::string, Duration> waited;
  for (const OwnerCourse& owner : reference.owners) waited[owner.owner] = owner.longest_without_room;
  for (const OwnerCourse& owner : figures.owners)
    if (is_harmed(owner))
      found.push_back({Objection::Kind::owner, owner.owner,
                       fmt::format("{} has no budget, and none of its {} replicas is Ready {}", owner.owner,
                                   owner.replicas, after(owner.least_at, figures.began))});
  for (const OwnerCourse& owner : figures.owners)
    if (waits_longer(owner.longest_without_room, waited[owner.owner]))
      found.push_back(room_objection(owner, waited[owner.owner]));
  return found;
}

Choice choice_of(const std::vector<FleetFigures>& settings) {
  Choice choice;
  const auto gentleness = [&](std::size_t index) {
    const FleetFigures& figures = settings[index];
    return std::pair(figures.unfinished.size(), -figures.took.value_or(Duration::zero()));
  };
  for (std::size_t i = 1; i < settings.size(); ++i)
    if (gentleness(i) < gentleness(choice.reference)) choice.reference = i;
  std::vector<std::size_t> good;
  for (std::size_t i = 0; i < settings.size(); ++i)
    if (settings[i].took && objections(settings[i], settings[choice.reference]).empty()) good.push_back(i);
  if (good.empty()) return choice;
  const std::size_t fastest =
      *std::ranges::min_element(good, {}, [&](std::size_t index) { return *settings[index].took; });
  choice.best = *std::ranges::find_if(good, [&](std::size_t i) { return !is_faster(settings[fastest], settings[i]); });
  for (std::size_t i = 0; i < settings.size(); ++i)
    if (is_faster(settings[i], settings[*choice.best]) &&
        (!choice.next_faster || *settings[i].took > *settings[*choice.next_faster].took))
      choice.next_faster = i;
  return choice;
}

std::optional<std::size_t> next_limit(const std::map<std::size_t, bool>& tried, std::size_t least, std::size_t most) {
  constexpr std::size_t fine = 10;
  if (tried.empty()) return least;
  std::optional<std::size_t> good, bad;
  for (const auto& [limit, qualifies] : tried)
    if (qualifies) good = limit;
  if (!good) return std::nullopt;
  for (const auto& [limit, qualifies] : tried)
    if (!qualifies && limit > *good && !bad) bad = limit;
  if (!bad) return *good < most ? std::optional(std::min(2 * *good, most)) : std::nullopt;
  if (*bad - *good <= 1 || (*bad - *good) * fine < *good) return std::nullopt;
  return *good + (*bad - *good) / 2;
}

}  // namespace haulout::rehearse
