#include <fmt/format.h>

#include <algorithm>

#include "agent/process/process.hpp"
#include "base/duration.hpp"
#include "base/text.hpp"
#include "cli/rehearse/comparison_report.hpp"
#include "cli/rehearse/rehearsal_text.hpp"

namespace haulout::cli {
namespace {

using rehearse::FleetFigures;
using rehearse::OwnerCourse;

// Largest number of owners, and of reasons, that are named for a setting. -o json has all.
constexpr std::size_t most_named = 3;
constexpr std::string_view gap = "  ";

using Cells = std::vector<std::string>;

std::string time_of(const FleetFigures& figures) {
  return figures.took ? format_whole_seconds(*figures.took) : "-";
}

std::string moment_of(const OwnerCourse& owner) {
  return fmt::format("{} {} of {} Ready", owner.owner, owner.least_ready, owner.replicas);
}

std::string room_of(std::size_t pods, Duration longest) {
  return pods == 0 ? "-" : fmt::format("{}, up to {}", count_of(pods, "pod"), format_whole_seconds(longest));
}

std::string evictions_of(const FleetFigures& figures) {
  const rehearse::Evictions sum = rehearse::evictions_of(figures.owners);
  const std::string average = fmt::format("{:.2f}", rehearse::per_pod(sum.evictions, sum.pods));
  return sum.most ? fmt::format("{}, worst {:.2f}", average, rehearse::per_pod(sum.most->evictions, sum.most->pods))
                  : average;
}

std::string worst_of(const FleetFigures& figures) {
  return !figures.owners.empty() && had_worse_moment(figures.owners.front()) ? moment_of(figures.owners.front()) : "-";
}

Cells titles_of(const Comparison& comparison) {
  std::string option = comparison.option;
  for (char& letter : option)
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  return {option, "TIME", "NOT-UPDATED", "OUT-AT-A-TIME", "EVICTIONS-PER-POD", "WITHOUT-CAPACITY", "WORST-MOMENT"};
}

Cells cells_of(const ComparedSetting& setting) {
  const FleetFigures& figures = setting.figures;
  return {setting.value,
          time_of(figures),
          fmt::format("{} of {}", figures.unfinished.size(), figures.nodes),
          std::to_string(figures.most_out),
          evictions_of(figures),
          room_of(figures.without_room, figures.longest_without_room),
          worst_of(figures)};
}

void add_table(std::vector<std::string>& lines, const Comparison& comparison) {
  std::vector<Cells> rows{titles_of(comparison)};
  for (const ComparedSetting& setting : comparison.settings) rows.push_back(cells_of(setting));
  std::vector<std::size_t> widths(rows.front().size());
  for (const Cells& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  for (const Cells& row : rows) {
    std::string line;
    for (std::size_t i = 0; i + 1 < row.size(); ++i) line += padded(row[i], widths[i]).append(gap);
    lines.push_back(line + row.back());
  }
}

// Returns the first of the texts, and the number of the others.
std::string some_texts(const std::vector<std::string>& texts, std::string_view separator) {
  const std::vector<std::string> first(texts.begin(),
                                       texts.begin() + static_cast<std::ptrdiff_t>(std::min(texts.size(), most_named)));
  return joined(first, separator) +
         (texts.size() > most_named ? fmt::format("{}and {} more", separator, texts.size() - most_named) : "");
}

// Appends a line about all owners for which `text` returns one.
template <class Text>
void add_owners(std::vector<std::string>& lines, const FleetFigures& figures, std::string_view title, Text text) {
  std::vector<std::string> texts;
  for (const OwnerCourse& owner : figures.owners)
    if (std::string each = text(owner); !each.empty()) texts.push_back(std::move(each));
  if (!texts.empty()) lines.push_back(fmt::format("  {}: {}", title, some_texts(texts, "; ")));
}

void add_objections(std::vector<std::string>& lines, const std::vector<rehearse::Objection>& objections) {
  for (std::size_t i = 0; i < std::min(objections.size(), most_named); ++i)
    lines.push_back("  " + printable(objections[i].text));
  if (objections.size() > most_named) lines.push_back(fmt::format("  … and {} more", objections.size() - most_named));
}

void add_details(std::vector<std::string>& lines, const std::string& name, const FleetFigures& figures) {
  std::vector<std::string> details;
  add_objections(details, objections(figures, figures));
  add_owners(details, figures, "worst moments", [&](const OwnerCourse& owner) {
    return had_worse_moment(owner) ? moment_of(owner) + " after " + format_whole_seconds(owner.least_at - figures.began)
                                   : "";
  });
  add_owners(details, figures, "without capacity", [](const OwnerCourse& owner) {
    return owner.without_room > 0 ? owner.owner + " " + room_of(owner.without_room, owner.longest_without_room) : "";
  });
  if (!figures.unfinished.empty()) details.push_back("  not updated: " + some_of(figures.unfinished));
  if (details.empty()) return;
  lines.push_back(name + ":");
  for (std::string& detail : details) lines.push_back(std::move(detail));
}

std::string name_of(const Comparison& comparison, std::size_t index) {
  return comparison.option + "=" + comparison.settings[index].value;
}

std::string name_and_time(const Comparison& comparison, std::size_t index) {
  return fmt::format("{} ({})", name_of(comparison, index), time_of(comparison.settings[index].figures));
}

void add_choice(std::vector<std::string>& lines, const Comparison& comparison) {
  const rehearse::Choice& choice = *comparison.choice;
  const auto objections_to = [&](std::size_t index) {
    return objections(comparison.settings[index].figures, comparison.settings[choice.reference].figures);
  };
  if (!choice.best) {
    const auto harms = objections_to(choice.reference);
    if (harms.empty()) {
      lines.emplace_back("plan: no setting qualifies, because none updates a node");
      return;
    }
    lines.push_back(fmt::format("plan: no setting qualifies. Even {}, the slowest, does harm:",
                                name_and_time(comparison, choice.reference)));
    add_objections(lines, harms);
    return;
  }
  lines.push_back(fmt::format("plan: {} is the fastest setting that harms no workload and leaves capacity for all pods",
                              name_and_time(comparison, *choice.best)));
  if (!choice.next_faster) {
    lines.emplace_back("no rehearsed setting is faster");
    return;
  }
  lines.push_back(
      fmt::format("the next faster one, {}, does not qualify:", name_and_time(comparison, *choice.next_faster)));
  add_objections(lines, objections_to(*choice.next_faster));
}

}  // namespace

int exit_code(const Comparison& comparison) {
  if (comparison.choice)
    return comparison.choice->best ? comparison.settings[*comparison.choice->best].exit_code : agent::exit_not_done;
  int code = agent::exit_done;
  for (const ComparedSetting& setting : comparison.settings) code = std::max(code, setting.exit_code);
  return code;
}

std::vector<std::string> comparison_lines(const Comparison& comparison) {
  std::vector<std::string> lines;
  add_table(lines, comparison);
  for (std::size_t i = 0; i < comparison.settings.size(); ++i)
    add_details(lines, name_of(comparison, i), comparison.settings[i].figures);
  if (const auto& left_out = comparison.settings.front().figures.left_out; !left_out.empty())
    lines.push_back("left out of every rehearsal: " + some_of(left_out));
  if (comparison.choice) add_choice(lines, comparison);
  add_assumed(lines, comparison.assumed);
  return lines;
}

}  // namespace haulout::cli
