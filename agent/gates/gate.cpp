#include "agent/gates/gate.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "base/duration.hpp"
#include "base/text.hpp"
#include "drain/cordon.hpp"
#include "drain/reasons.hpp"
#include "k8s/codec.hpp"

namespace haulout::agent {

namespace {

using std::chrono::seconds;

constexpr std::chrono::minutes without_history(30);
// A longer duration comes from a clock that jumped, and counts as this one.
constexpr seconds longest_believable = std::chrono::days(7);

// Returns the last `remembered_updates` durations without impossible ones, the shortest first.
std::vector<seconds> by_length(const std::vector<seconds>& history) {
  const std::size_t forgotten = history.size() - std::min(history.size(), remembered_updates);
  std::vector<seconds> lengths;
  for (std::size_t i = forgotten; i < history.size(); ++i)
    if (history[i] > seconds(0)) lengths.push_back(std::min(history[i], longest_believable));
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

seconds and_a_fifth(seconds length) {
  return length + seconds((length.count() + 4) / 5);
}

}  // namespace

Duration estimated_update(const std::vector<seconds>& history) {
  const auto lengths = by_length(history);
  return lengths.empty() ? Duration(without_history) : and_a_fifth(lengths.back());
}

Duration ordinary_update(const std::vector<seconds>& history) {
  const auto lengths = by_length(history);
  return lengths.empty() ? Duration::zero() : and_a_fifth(lengths[(lengths.size() - 1) / 2]);
}

namespace {

constexpr std::chrono::hours a_day(24);

bool among(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string named(const Pending& wanted) {
  if (!wanted.target.empty()) return "to version " + printable(wanted.target);
  if (wanted.reasons.empty()) return "without giving reasons";
  return "for " + printable(joined(wanted.reasons, ", "));
}

std::optional<Brake> changes_nothing(const PastReboot& last, const Pending& wanted) {
  if (!same_need(last, wanted)) return std::nullopt;
  return Brake{reason::reboot_loop,
               fmt::format("the node was rebooted at {}, but the operating system still requires a reboot {}: another "
                           "reboot would change nothing; find out on the node why the update does not take effect",
                           k8s::format_time(last.at), named(wanted))};
}

std::optional<Brake> too_many(const std::vector<PastReboot>& past, WallTime now, std::size_t per_day) {
  std::vector<WallTime> recent;
  bool only_asked = false;
  for (const PastReboot& reboot : past) {
    // A time more than a day ahead comes from a clock that was wrong, so it says nothing about the last day.
    if (reboot.at <= now - a_day || reboot.at >= now + a_day) continue;
    recent.push_back(reboot.at);
    only_asked = only_asked || reboot.asked_only;
  }
  if (per_day == 0 || recent.size() < per_day) return std::nullopt;
  Brake brake{reason::too_many_reboots, fmt::format("the node was {} {} within 24 hours, and max-reboots-per-day "
                                                    "allows {}; find out why it needs so many reboots, or wait",
                                                    only_asked ? "rebooted, or requested to reboot," : "rebooted",
                                                    count_of(recent.size(), "time"), per_day)};
  // At `look_again`, only `per_day` - 1 of the reboots are younger than a day, so one more is allowed.
  std::sort(recent.begin(), recent.end());
  brake.look_again = recent[recent.size() - per_day] + a_day;
  return brake;
}

}  // namespace

bool same_need(const PastReboot& last, const Pending& wanted) {
  if (last.cleared) return false;
  if (!last.target.empty() || !wanted.target.empty()) return last.target == wanted.target;
  return std::all_of(wanted.reasons.begin(), wanted.reasons.end(),
                     [&](const std::string& reason) { return among(last.reasons, reason); });
}

std::optional<Brake> reboot_brake(const std::vector<PastReboot>& past, const Pending& wanted, WallTime now,
                                  std::size_t per_day) {
  if (wanted.need != Need::yes) return std::nullopt;
  const auto seen =
      std::find_if(past.rbegin(), past.rend(), [](const PastReboot& reboot) { return !reboot.asked_only; });
  if (seen != past.rend()) {
    if (auto brake = changes_nothing(*seen, wanted)) return brake;
  }
  return too_many(past, now, per_day);
}

namespace {

bool is_of_this_run(const k8s::Node& node, const Record& record) {
  const auto mark = drain::mark_of(node);
  return record.cordoned || (mark && !record.run.empty() && mark->run == record.run);
}

}  // namespace

Gate cordon_gate(const k8s::Node& node, const Record& record, CordonedNodes policy) {
  Gate gate{.name = "cordon", .message = "no person has cordoned this node", .effect = Gate::Effect::gives_up};
  if (policy == CordonedNodes::update) {
    gate.verdict = Gate::Verdict::off;
    gate.message = "a person's cordon does not block updates, because --cordoned-nodes is update";
    return gate;
  }
  const auto cordon = persons_cordon(node);
  // During the agent's own drain this gate is open, whoever set the cordon that the node has now. If a person uncordons
  // the node, the drain itself notices that and ends.
  if (!cordon || is_of_this_run(node, record)) return gate;
  gate.verdict = Gate::Verdict::closed;
  gate.reason = reason::cordoned_by_person;
  gate.message =
      fmt::format("this node is {}{}: the agent leaves it alone until it is uncordoned (kubectl uncordon {})",
                  words_of(*cordon), cordon->since ? " since " + k8s::format_time(*cordon->since) : "", node.name);
  return gate;
}

namespace {

using Verdict = Gate::Verdict;

// Time that a node may need to take its slot; an update must fit into the window after it.
constexpr Duration turn_takes = std::chrono::minutes(1);
// Added to the time that an update needs when the agent searches for a window that is long enough, because an update
// begins only a moment after its window opens.
constexpr Duration to_be_sure = 2 * turn_takes;

// Returns the time that an update needs within a window; see window_gate().
Duration room(const Schedule& schedule, const std::vector<std::chrono::seconds>& took, WallTime now) {
  const Duration longest = estimated_update(took);
  return schedule.next_fit(now, longest + to_be_sure) ? longest : ordinary_update(took);
}

Gate too_short(const Schedule& schedule, Duration needed, WallTime closes) {
  const auto next = schedule.next_fit(closes, needed + to_be_sure);
  return {.name = "window",
          .verdict = Verdict::closed,
          .reason = reason::window_too_short,
          .message = fmt::format(
              "{}, too early for an update of this node, which takes about {}; {}", schedule.closing(closes),
              format_duration(needed),
              next ? "the update may begin " + schedule.shown(*next)
                   : "no time within two years is long enough: configure longer windows or shorter blackouts"),
          .look_again = next,
          .opens = next};
}

}  // namespace

Gate window_gate(const Schedule& schedule, const std::vector<std::chrono::seconds>& took, bool with_turn,
                 WallTime now) {
  const Schedule::State state = schedule.at(now);
  if (state.open && state.until) {
    const Duration needed = room(schedule, took, now);
    if (!schedule.fits(now, with_turn ? needed : needed + turn_takes)) return too_short(schedule, needed, *state.until);
  }
  return {.name = "window",
          .verdict = state.open ? Verdict::open : Verdict::closed,
          .reason = state.open ? "" : reason::outside_window,
          .message = schedule.describe(now),
          .look_again = state.open ? state.until : state.next_open,
          .opens = state.open ? std::nullopt : state.next_open};
}

Gate pause_gate(std::string name, const std::string& whom, const std::optional<Pause>& pause, WallTime now) {
  Gate gate{.name = std::move(name), .message = whom + " is not paused", .effect = Gate::Effect::gives_up};
  if (!pause) return gate;
  if (!in_force(*pause, now)) {
    gate.message = "the pause of " + whom + " has ended";
    return gate;
  }
  gate.verdict = Verdict::closed;
  gate.reason = reason::paused;
  gate.message = fmt::format("{} is {}", whom, describe(*pause));
  gate.look_again = gate.opens = pause->until;
  return gate;
}

Gate brake_gate(const std::vector<PastReboot>& past, const Pending& wanted, bool requested, WallTime now,
                std::size_t per_day) {
  Gate gate{.name = "reboot-brake", .message = "the reboot limit blocks nothing now", .effect = Gate::Effect::degrades};
  auto brake = reboot_brake(past, wanted, now, per_day);
  if (!brake) return gate;
  if (requested) {
    gate.message =
        "a person has requested this reboot; without the request it would be refused (" + brake->reason + ")";
    return gate;
  }
  gate.verdict = Verdict::closed;
  gate.reason = std::move(brake->reason);
  gate.message = std::move(brake->message);
  gate.look_again = brake->look_again;
  return gate;
}

Gate pin_gate(const std::string& pin, const Pending& wanted) {
  Gate gate{.name = "pin",
            .message = fmt::format("pin allows only {}, and no other version waits", printable(pin)),
            .effect = Gate::Effect::gives_up};
  if (wanted.need != Need::yes || wanted.target == pin) return gate;
  gate.verdict = Verdict::closed;
  gate.reason = reason::version_pinned;
  gate.message = fmt::format(
      "{0} waits, but pin allows only {1}: the node waits until the update tool offers {1}, or pin is changed",
      wanted.target.empty() ? "an update without a version" : "version " + printable(wanted.target), printable(pin));
  return gate;
}

std::vector<Gate> closed_first(const std::vector<Gate>& rows) {
  std::vector<Gate> ordered;
  for (const bool closed : {true, false})
    for (const Gate& gate : rows)
      if (gate.closed() == closed) ordered.push_back(gate);
  return ordered;
}

}  // namespace haulout::agent
