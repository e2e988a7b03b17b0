#include "cli/migrate/kured_migration.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/config/read_config.hpp"
#include "base/text.hpp"
#include "cli/migrate/config_draft.hpp"

namespace haulout::cli {
namespace {

// Columns of the table.
constexpr std::size_t widest_spelling = 60;
constexpr std::string_view held = "until you have decided on";

// Returns why kured does not start with this value; empty if it does.
std::string refused_by_kured(const KuredOption& option, const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    bool good = true;
    if (option.type == KuredType::boolean) good = parse_bool(value).has_value();
    if (option.type == KuredType::integer) good = parse_number<std::int32_t>(value).has_value();
    if (option.type == KuredType::duration) good = parse_duration(value).has_value();
    if (!good) return fmt::format("kured does not start with the value \"{}\"", printable(value));
  }
  return {};
}

Verdict judge(const KuredOption& option, const KuredGiven& given, const KuredSettings& settings, ConfigDraft& draft) {
  if (const std::string refused = refused_by_kured(option, given.passed); !refused.empty())
    return {.outcome = Outcome::decide, .why = refused, .refused = true};
  if (option.by_name) return option.judge(settings, option, draft);
  if (given.source)
    return {Outcome::decide, fmt::format("its value was not read: it is in {}", *given.source), option.protects};
  Verdict verdict = option.judge(settings, option, draft);
  if (verdict.outcome == Outcome::translated && !given.doubts.empty()) {
    verdict.outcome = Outcome::decide;
    verdict.why += "; " + joined(given.doubts, "; ");
  }
  verdict.protection_lost = verdict.protection_lost && option.protects;
  return verdict;
}

std::string option_name(const MigratedOption& option) {
  return option.name.empty() ? joined(option.spelled, " ") : "--" + option.name;
}

// Returns what the configuration does not have, as comments at its end.
std::string left_out(const Migration& migration) {
  std::string text;
  for (const MigratedOption& option : migration.options) {
    if (option.outcome == Outcome::translated || option.outcome == Outcome::not_needed) continue;
    text += comment_of(fmt::format("- {} ({}): {}", option_name(option), words_of(option.outcome), option.why));
  }
  return text.empty() ? text : "\n# These options of kured need a person, or have no counterpart:\n" + text;
}

std::string written(const Migration& migration, const ConfigDraft& draft) {
  return comment_of(fmt::format("The configuration of Haulout's agents, made by haulout migrate kured from {}. Above "
                                "each line stands the option of kured from which it comes.",
                                migration.from)) +
         yaml_of(draft.lines()) + left_out(migration);
}

}  // namespace

std::size_t Migration::count(Outcome outcome) const {
  return static_cast<std::size_t>(std::ranges::count(options, outcome, &MigratedOption::outcome));
}

bool Migration::is_complete() const {
  return count(Outcome::translated) + count(Outcome::not_needed) == options.size();
}

Result<Migration> migrate_kured(KuredCall call) {
  const KuredSettings settings(std::move(call));
  Migration migration{.from = settings.call().from};
  ConfigDraft draft;
  std::vector<std::string> lost;  // what may have kept kured from reboots, and is not in the configuration
  for (const KuredOption& option : kured_options()) {
    const KuredGiven* given = settings.given(option.name);
    if (given == nullptr && option.told_always) {
      Verdict verdict = option.judge(settings, option, draft);
      migration.options.push_back({std::string(option.name), {}, verdict.outcome, std::move(verdict.why)});
    }
    if (given == nullptr) continue;
    Verdict verdict = judge(option, *given, settings, draft);
    if (verdict.protection_lost || verdict.refused) lost.push_back("--" + std::string(option.name));
    migration.options.push_back({std::string(option.name), given->spelled, verdict.outcome, std::move(verdict.why)});
  }
  for (const KuredStray& stray : settings.strays()) {
    if (stray.holds_back) lost.push_back(stray.spelled);
    migration.options.push_back({"", {stray.spelled}, stray.outcome, stray.why});
  }
  for (const KuredStray& row : settings.call().placement) {
    lost.push_back(row.spelled.substr(0, row.spelled.find(' ')));
    migration.options.push_back({"", {row.spelled}, row.outcome, row.why});
  }
  if (!lost.empty()) {
    migration.held_back = true;
    draft.hold("max-unavailable", "0", fmt::format("no node is updated {} {}", held, joined(lost, ", ")));
  }
  migration.config = written(migration, draft);
  const auto read = agent::read_config({}, {}, agent::ConfigFile{"config.yaml", migration.config});
  if (const auto* problem = std::get_if<std::string>(&read))
    return Error(Errc::invalid, "the configuration would not be valid: " + *problem);
  return migration;
}

std::string_view words_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::translated: return "translated";
    case Outcome::not_needed: return "not needed";
    case Outcome::no_counterpart: return "no counterpart";
    case Outcome::decide: return "decide";
    case Outcome::unknown: return "unknown";
  }
  return {};
}

std::vector<std::string> migration_lines(const Migration& migration) {
  std::vector<std::string> lines;
  std::size_t first = std::string_view("OPTION").size();
  std::size_t second = std::string_view("RESULT").size();
  const auto spelled = [](const MigratedOption& option) {
    if (option.spelled.empty())
      return fmt::format("--{}={} (default)", option.name, find_kured_option(option.name)->fallback);
    return clipped(joined(option.spelled, " "), widest_spelling);
  };
  for (const MigratedOption& option : migration.options) {
    first = std::max(first, columns(spelled(option)));
    second = std::max(second, words_of(option.outcome).size());
  }
  const auto row = [&](std::string_view option, std::string_view result, std::string_view why) {
    lines.push_back(padded(option, first + 2) + padded(result, second + 2) + std::string(why));
  };
  row("OPTION", "RESULT", "HAULOUT");
  for (const MigratedOption& option : migration.options) row(spelled(option), words_of(option.outcome), option.why);
  const auto is_default = [](const MigratedOption& option) { return option.spelled.empty(); };
  if (std::ranges::all_of(migration.options, is_default))
    lines.push_back(migration.from + " gives kured no options: the defaults of Haulout are enough");
  std::vector<std::string> counts;
  for (const Outcome outcome :
       {Outcome::translated, Outcome::not_needed, Outcome::no_counterpart, Outcome::decide, Outcome::unknown})
    if (const std::size_t count = migration.count(outcome); count != 0)
      counts.push_back(fmt::format("{} {}", count, words_of(outcome)));
  lines.emplace_back();
  if (!counts.empty()) lines.push_back("options of kured: " + joined(counts, ", "));
  if (migration.held_back)
    lines.emplace_back(
        "the configuration has max-unavailable: 0, so that no node is updated until you have made the decisions: then "
        "remove that line");
  lines.emplace_back("next: haulout agent --check --config config.yaml, and docs/change-over/kured.md");
  return lines;
}

}  // namespace haulout::cli
