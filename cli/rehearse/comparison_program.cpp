#include "cli/rehearse/comparison_program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/duration.hpp"
#include "cli/rehearse/rehearsal_text.hpp"
#include "cli/rehearse/snapshot_source.hpp"
#include "rehearse/stage.hpp"

namespace haulout::cli {
namespace {

constexpr const char* planned_option = "max-unavailable";

std::vector<rehearse::FleetFigures> figures_of(const Comparison& comparison) {
  std::vector<rehearse::FleetFigures> figures;
  figures.reserve(comparison.settings.size());
  for (const ComparedSetting& setting : comparison.settings) figures.push_back(setting.figures);
  return figures;
}

// Rehearses one setting after the other on the objects of one snapshot.
class Plays {
 public:
  Plays(Console& console, Comparison& comparison, const rehearse::SnapshotObjects& objects)
      : console_(console), comparison_(comparison), objects_(objects) {}

  // Adds the setting to the comparison, at this place.
  Result<> play(const SettingToPlay& setting, std::size_t place) {
    rehearse::FleetInput input = comparison_.input;
    input.config = setting.config;
    auto rehearsal = rehearse::rehearse_fleet(std::move(input), objects_);
    if (!rehearsal) return std::move(rehearsal).error();
    ComparedSetting compared{setting.value, rehearse::figures_of(*rehearsal), exit_code(*rehearsal)};
    console_.warn(fmt::format("rehearsed {}={}: {}", comparison_.option, setting.value,
                              format_whole_seconds(rehearsal->ended - rehearsal->began)));
    largest_pool_ = rehearsal->largest_pool;
    for (std::string& phrase : rehearsal->assumed)
      if (std::ranges::find(comparison_.assumed, phrase) == comparison_.assumed.end())
        comparison_.assumed.push_back(std::move(phrase));
    comparison_.settings.insert(comparison_.settings.begin() + static_cast<std::ptrdiff_t>(place), std::move(compared));
    return {};
  }

  // Rehearses values of max-unavailable, the first of which is `first`, until next_limit() has enough.
  Result<> search(SettingToPlay setting, std::size_t first) {
    std::vector<std::size_t> limits;  // of comparison_.settings, ascending
    for (std::optional<std::size_t> limit = first; limit;) {
      setting.config.max_unavailable = setting.value = std::to_string(*limit);
      const auto place = std::ranges::lower_bound(limits, *limit) - limits.begin();
      if (auto played = play(setting, static_cast<std::size_t>(place)); !played) return played;
      limits.insert(limits.begin() + place, *limit);
      limit = rehearse::next_limit(qualified(limits), first, largest_pool_);
    }
    return {};
  }

 private:
  std::map<std::size_t, bool> qualified(const std::vector<std::size_t>& limits) const {
    const auto figures = figures_of(comparison_);
    const auto& reference = figures[rehearse::choice_of(figures).reference];
    std::map<std::size_t, bool> result;
    for (std::size_t i = 0; i < limits.size(); ++i) result[limits[i]] = objections(figures[i], reference).empty();
    return result;
  }

  Console& console_;
  Comparison& comparison_;
  const rehearse::SnapshotObjects& objects_;
  std::size_t largest_pool_ = 0;
};

// Returns the smallest limit with which a roll-out that halts after several failed nodes can go on until then.
std::size_t first_limit(const agent::AgentConfig& config) {
  return std::max<std::size_t>(config.halt_after, 1);
}

}  // namespace

std::vector<SettingToPlay> settings_to_play(Console& console, const RehearseSettings& settings) {
  const bool compares = !settings.compared_option.empty();
  // Without slots, max-unavailable has no effect; then another value than the default is refused.
  const std::vector<std::string> values = compares ? settings.compared_values : std::vector<std::string>{"2"};
  std::vector<SettingToPlay> result;
  for (const std::string& value : values) {
    auto config = config_of(console, settings, {{compares ? settings.compared_option : planned_option, value}});
    if (!config) return {};
    result.push_back({value, *std::move(config)});
  }
  return result;
}

Result<Comparison> compare_fleets(Console& console, const RehearseSettings& settings,
                                  std::vector<SettingToPlay> to_play, rehearse::FleetInput input) {
  auto objects = rehearse::read_for_fleet(input.snapshot, input.on_progress);
  if (!objects) return std::move(objects).error();
  if (settings.plan)
    if (auto any = rehearse::check_controllers(objects->all); !any)
      return std::move(any).error().with_context("a plan is not possible");
  const bool compares = !settings.compared_option.empty();
  Comparison comparison{
      .option = compares ? settings.compared_option : planned_option, .settings = {}, .input = std::move(input)};
  Plays plays(console, comparison, *objects);
  if (compares) {
    for (const SettingToPlay& setting : to_play)
      if (auto played = plays.play(setting, comparison.settings.size()); !played) return std::move(played).error();
  } else {
    const std::size_t first = first_limit(to_play.front().config);
    if (auto played = plays.search(std::move(to_play.front()), first); !played) return std::move(played).error();
  }
  if (settings.plan) comparison.choice = rehearse::choice_of(figures_of(comparison));
  return comparison;
}

}  // namespace haulout::cli
