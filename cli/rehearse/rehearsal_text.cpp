#include "cli/rehearse/rehearsal_text.hpp"

#include <fmt/format.h>

#include "agent/process/process.hpp"
#include "base/duration.hpp"
#include "base/text.hpp"
#include "cli/drain/wording.hpp"
#include "rehearse/comparison.hpp"

namespace haulout::cli {

namespace {

using drain::Outcome;
using drain::PodOutcome;

// Largest number of waiting pods in the text report, so that they do not hide more important lines. -o json has all.
constexpr std::size_t most_waits = 10;

std::size_t count(const drain::Report& report, PodOutcome outcome) {
  return static_cast<std::size_t>(
      std::count_if(report.pods.begin(), report.pods.end(), [&](const auto& pod) { return pod.outcome == outcome; }));
}

// Returns the number of pods that must leave and are not deleted yet.
std::size_t left_in(const drain::Report& report) {
  return static_cast<std::size_t>(std::count_if(report.pods.begin(), report.pods.end(), [](const auto& pod) {
    return pod.verdict != drain::Verdict::skip && !pod.vanished_at;
  }));
}

std::string verdict_line(const drain::Report& report, bool timeout_given) {
  const std::string took = format_whole_seconds(report.finished_at - report.started_at);
  switch (report.outcome) {
    case Outcome::drained:
      return fmt::format("node/{} would be drained in {}: {} evicted, {} skipped", report.node, took,
                         count_of(count(report, PodOutcome::evicted) + count(report, PodOutcome::gone), "pod"),
                         count(report, PodOutcome::skipped));
    case Outcome::refused:
      return fmt::format("the drain of node/{} would be refused before any change: {}", report.node,
                         printable(report.message));
    case Outcome::blocked:
      if (!timeout_given && left_in(report) > 0)
        return fmt::format(
            "node/{} would not be drained within {}: {} still there when the rehearsal stopped (no --timeout is given)",
            report.node, took, count_of(left_in(report), "pod"));
      [[fallthrough]];
    default:
      return fmt::format("node/{} would not be drained ({} after {}): {}", report.node,
                         drain::to_string(report.outcome), took, printable(report.message));
  }
}

// Appends the pods that fit on no other node, or for which that is unknown. The message of a refused drain names them
// already.
void add_fits(std::vector<std::string>& lines, const drain::Report& report) {
  if (report.outcome == Outcome::refused) return;
  for (const std::string& finding : fit_findings(report)) lines.push_back("  " + finding);
}

void add_stuck(std::vector<std::string>& lines, const drain::Report& report) {
  for (const drain::PodReport& pod : report.pods) {
    if (pod.outcome == PodOutcome::refused) {
      const std::string known = refusal_of(pod.reason);
      lines.push_back(fmt::format("  pod {}: {}", pod.key(), known.empty() ? printable(pod.message) : known));
    }
    if (pod.outcome == PodOutcome::waiting || pod.outcome == PodOutcome::terminating)
      lines.push_back(fmt::format("  pod {} would still be there: {}", pod.key(),
                                  pod.message.empty() ? "terminating" : printable(pod.message)));
  }
  for (const drain::Diagnosis& diagnosis : report.diagnoses)
    lines.push_back(fmt::format("  {}: {}", diagnosis.subject, printable(diagnosis.message)));
}

}  // namespace

void add_waits(std::vector<std::string>& lines, const rehearse::Timeline& timeline) {
  const WallTime end = timeline.last();
  std::vector<const rehearse::Timeline::Row*> rows;
  for (const rehearse::Timeline::Row& row : timeline.rows())
    if ((row.vanished || row.left) && waited(row, end) >= std::chrono::seconds(1)) rows.push_back(&row);
  if (rows.empty()) return;
  // Rows that waited equally long keep the order of their first events. That is the order of rows(), to whose elements
  // `a` and `b` point, so the lower address comes first.
  std::sort(rows.begin(), rows.end(), [&](const auto* a, const auto* b) {
    return std::tuple(waited(*b, end), a) < std::tuple(waited(*a, end), b);
  });
  lines.emplace_back("pods that were blocked, the longest first:");
  for (std::size_t i = 0; i < std::min(rows.size(), most_waits); ++i)
    lines.push_back(fmt::format("  pod {} for {}: {}", rows[i]->pod, format_whole_seconds(waited(*rows[i], end)),
                                printable(rows[i]->waits.back().message)));
  if (rows.size() > most_waits) lines.push_back(fmt::format("  … and {} more", rows.size() - most_waits));
}

void add_broken_gangs(std::vector<std::string>& lines, const rehearse::Timeline& timeline) {
  if (timeline.broken_gangs().empty()) return;
  lines.emplace_back("gangs that would be stopped (GangBroken):");
  for (const rehearse::Timeline::BrokenGang& broken : timeline.broken_gangs())
    lines.push_back(fmt::format("  node/{}: {}: {}", broken.node, printable(broken.gang), printable(broken.message)));
}

void add_no_room(std::vector<std::string>& lines, const std::vector<rehearse::NoRoom>& no_room) {
  if (no_room.empty()) return;
  lines.emplace_back("no capacity on other nodes:");
  for (const rehearse::NoRoom& pod : no_room)
    lines.push_back(fmt::format(
        "  pod {} ({}): {}{}", pod.pod, pod.controller, printable(pod.message),
        pod.preempts_on.empty() ? "" : " It fits only if it preempts pods of lower priority on " + pod.preempts_on));
}

void add_assumed(std::vector<std::string>& lines, const std::vector<std::string>& assumed) {
  lines.emplace_back("assumed:");
  for (const std::string& phrase : assumed) lines.push_back("  " + printable(phrase));
}

int exit_code(const rehearse::Rehearsal& rehearsal) {
  const int drains = agent::exit_code(rehearsal.drains);
  return drains == agent::exit_done && rehearsal.no_room.empty() ? agent::exit_done : agent::exit_not_done;
}

std::vector<std::string> rehearsal_lines(const rehearse::Rehearsal& rehearsal) {
  std::vector<std::string> lines;
  for (const drain::Report& report : rehearsal.drains) {
    lines.push_back(verdict_line(report, rehearsal.timeout_given));
    add_fits(lines, report);
    if (report.outcome != Outcome::drained) add_stuck(lines, report);
  }
  if (rehearsal.drains.size() > 1) lines.push_back("in all: " + format_whole_seconds(rehearsal.took));
  add_waits(lines, rehearsal.timeline);
  add_broken_gangs(lines, rehearsal.timeline);
  add_no_room(lines, rehearsal.no_room);
  if (!rehearsal.not_weighed.empty()) {
    lines.emplace_back(
        "the rehearsal does not apply all rules of the scheduler, so these pods may find less capacity than it "
        "assumes:");
    for (const std::string& pod : rehearsal.not_weighed) lines.push_back("  pod " + pod);
  }
  add_assumed(lines, rehearsal.assumed);
  return lines;
}

namespace {

// Largest number of pods in the text report for which the rehearsal does not apply all rules of the scheduler, so that
// they do not hide more important lines. -o json has all.
constexpr std::size_t most_not_weighed = 10;

bool is_done(const rehearse::FleetNode& node) {
  return node.left_out.empty() && node.updated && node.state == agent::State::idle;
}

// Returns the message of the agent after a colon; empty if the agent has none, because its state then explains enough.
std::string why(const rehearse::FleetNode& node) {
  return node.message.empty() ? std::string() : ": " + printable(node.message);
}

std::string fate_of(const rehearse::FleetNode& node, const rehearse::FleetRehearsal& rehearsal) {
  if (!node.left_out.empty()) return "left out: " + node.left_out;
  const auto turn = turn_of(node);
  if (is_done(node))
    return fmt::format("updated: got its slot after {}; drained in {}, unavailable for {}",
                       format_whole_seconds(turn.value_or(rehearsal.began) - rehearsal.began),
                       format_whole_seconds(drained_in(node, rehearsal.ended)),
                       format_whole_seconds(out_of_service(node, rehearsal.ended)));
  switch (node.state) {
    case agent::State::degraded: return "would be degraded and wait for a person" + why(node);
    case agent::State::unknown:
    case agent::State::idle:
    case agent::State::pending:
    case agent::State::waiting: return "would still wait" + why(node);
    default:
      return fmt::format("would still be {}, unavailable for {}{}", to_string(node.state),
                         format_whole_seconds(out_of_service(node, rehearsal.ended)), why(node));
  }
}

std::string end_of(const rehearse::FleetRehearsal& rehearsal) {
  switch (rehearsal.end) {
    case rehearse::FleetEnd::over: return {};
    case rehearse::FleetEnd::stuck:
      return fmt::format("the rehearsal stopped: no node has made progress for {}",
                         format_whole_seconds(rehearsal.given_up_after));
    case rehearse::FleetEnd::horizon: return "the rehearsal stopped: it simulates at most thirty days";
  }
  return {};
}

std::string sum_of(const rehearse::FleetRehearsal& rehearsal) {
  const auto done = static_cast<std::size_t>(std::count_if(rehearsal.nodes.begin(), rehearsal.nodes.end(), is_done));
  return fmt::format("in all: {} of {} updated in {}; at most {} unavailable at a time because of updates", done,
                     count_of(rehearsal.nodes.size(), "node"), format_whole_seconds(rehearsal.ended - rehearsal.began),
                     count_of(rehearsal.most_out, "node"));
}

// Appends how often pods are evicted: a pod that comes to a node that is not updated yet is evicted again.
void add_evictions(std::vector<std::string>& lines, const std::vector<rehearse::OwnerCourse>& owners) {
  const rehearse::Evictions sum = rehearse::evictions_of(owners);
  if (sum.most == nullptr) return;
  const rehearse::OwnerCourse& most = *sum.most;
  lines.push_back(fmt::format("evictions per pod: {:.2f} ({} of {}); the most: {:.2f}, {} ({} of {})",
                              rehearse::per_pod(sum.evictions, sum.pods), count_of(sum.evictions, "eviction"),
                              count_of(sum.pods, "pod"), rehearse::per_pod(most.evictions, most.pods), most.owner,
                              count_of(most.evictions, "eviction"), count_of(most.pods, "pod")));
}

void add_not_weighed(std::vector<std::string>& lines, const std::vector<std::string>& pods) {
  if (pods.empty()) return;
  lines.emplace_back(
      "the rehearsal does not apply all rules of the scheduler, so these pods may find less capacity than it assumes:");
  for (std::size_t i = 0; i < std::min(pods.size(), most_not_weighed); ++i) lines.push_back("  pod " + pods[i]);
  if (pods.size() > most_not_weighed) lines.push_back(fmt::format("  … and {} more", pods.size() - most_not_weighed));
}

}  // namespace

int exit_code(const rehearse::FleetRehearsal& rehearsal) {
  const bool all = std::all_of(rehearsal.nodes.begin(), rehearsal.nodes.end(), is_done);
  return all && rehearsal.no_room.empty() ? agent::exit_done : agent::exit_not_done;
}

std::vector<std::string> fleet_lines(const rehearse::FleetRehearsal& rehearsal) {
  std::vector<std::string> lines;
  for (const rehearse::FleetNode& node : rehearsal.nodes) {
    lines.push_back(fmt::format("node/{} {}", node.name, fate_of(node, rehearsal)));
    for (const std::string& pod : node.holds_up) lines.push_back("  pod " + printable(pod));
  }
  lines.push_back(sum_of(rehearsal));
  if (std::string end = end_of(rehearsal); !end.empty()) lines.push_back(std::move(end));
  add_evictions(lines, rehearsal.owners);
  add_waits(lines, rehearsal.timeline);
  add_broken_gangs(lines, rehearsal.timeline);
  add_no_room(lines, rehearsal.no_room);
  add_not_weighed(lines, rehearsal.not_weighed);
  add_assumed(lines, rehearsal.assumed);
  return lines;
}

}  // namespace haulout::cli
