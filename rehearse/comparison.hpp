// Compares rehearsals of a fleet that differ in one setting of the agents, and finds the fastest setting that harms no
// workload. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rehearse/fleet_rehearsal.hpp"

namespace haulout::rehearse {

// What people compare of a rehearsal.
struct FleetFigures {
  WallTime began{};
  FleetEnd end = FleetEnd::over;
  // Time until the last of the nodes that are updated was complete; unset: none is.
  std::optional<Duration> took;
  std::size_t nodes = 0;                  // with an agent
  std::vector<std::string> left_out{};    // the others: "n4 (it is not Ready)"
  std::vector<std::string> unfinished{};  // nodes with an agent whose update does not complete; sorted
  std::size_t most_out = 0;
  std::size_t without_room = 0;  // pods
  Duration longest_without_room{};
  // Owners, the worst moment first: harmed ones, then by the share of replicas that were Ready.
  std::vector<OwnerCourse> owners{};
  std::vector<BudgetCourse> harmed_budgets{};
  bool operator==(const FleetFigures&) const = default;
};
FleetFigures figures_of(const FleetRehearsal& rehearsal);

// Returns true if the budget had fewer healthy pods than it must keep, and than it had at the begin.
bool is_harmed(const BudgetCourse& budget);
// Returns true if an owner with several replicas and without a budget lost all its Ready pods. An owner whose pods the
// rehearsal does not replace does not count.
bool is_harmed(const OwnerCourse& owner);
// Returns true if an owner with several replicas, which are replaced, had fewer Ready pods than at the begin.
bool had_worse_moment(const OwnerCourse& owner);

double per_pod(std::size_t evictions, std::size_t pods);

struct Evictions {
  std::size_t evictions = 0;
  std::size_t pods = 0;  // at the begin
  // The owner with the most evictions per pod, the first by name of equals; null if there were no evictions. Points
  // into the given list.
  const OwnerCourse* most = nullptr;
};
Evictions evictions_of(const std::vector<OwnerCourse>& owners);

// Why a setting does not qualify.
struct Objection {
  enum class Kind { unfinished, budget, owner, room };
  Kind kind = Kind::unfinished;
  std::string subject;  // the node, "shop/web" of a budget, or the owner
  std::string text;     // a sentence that begins with the subject
  bool operator==(const Objection&) const = default;
};
std::string_view to_string(Objection::Kind kind);  // "unfinished", "budget", "owner", "capacity"

// Returns what the setting harms. More nodes than with the reference do not finish, a workload is harmed, or a pod
// waits for capacity longer than the pods of its owner do with the reference: by more than ten seconds and a tenth,
// because the moment of a drain is never exactly the same.
std::vector<Objection> objections(const FleetFigures& figures, const FleetFigures& reference);

// The result for several settings, as indexes of their figures.
struct Choice {
  // The gentlest of them: of those with the fewest unfinished nodes, the slowest.
  std::size_t reference = 0;
  // The fastest setting without an objection. A setting that is less than a hundredth faster does not count as faster:
  // then the one that comes first is taken. Unset: there is none that updates a node.
  std::optional<std::size_t> best;
  std::optional<std::size_t> next_faster;  // of the settings faster than `best`, the slowest. Each has an objection
};
Choice choice_of(const std::vector<FleetFigures>& settings);

// The search for the best max-unavailable: returns the limit that is to be rehearsed next; nullopt if the search is
// over. `tried` has the limits that were rehearsed, and whether they qualify. First the limit is doubled, from `least`
// to at most `most`, until one does not qualify; then the gap is halved until it is one node, or less than a tenth.
std::optional<std::size_t> next_limit(const std::map<std::size_t, bool>& tried, std::size_t least, std::size_t most);

}  // namespace haulout::rehearse
