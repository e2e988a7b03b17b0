#include "cli/rehearse/rehearse_program.hpp"

#include "agent/process/process.hpp"
#include "base/text.hpp"
#include "cli/rehearse/comparison_program.hpp"
#include "cli/rehearse/rehearsal_text.hpp"
#include "cli/terminal/progress_bar.hpp"
#include "rehearse/charts.hpp"
#include "rehearse/fleet_rehearsal.hpp"
#include "rehearse/snapshot.hpp"

namespace haulout::cli {
namespace {

int not_played(Console& console, const Error& error) {
  return failed(console, error, error.code() == Errc::decode ? agent::exit_connection : agent::exit_not_done);
}

std::string title_of(const rehearse::Rehearsal& rehearsal) {
  std::vector<std::string> nodes;
  nodes.reserve(rehearsal.drains.size());
  for (const drain::Report& report : rehearsal.drains) nodes.push_back(report.node);
  return "Rehearsal: drain of " + joined(nodes, ", ");
}

// Prints the result of a rehearsal of drains or of a fleet, and writes its chart. Returns the exit code: `code`, or
// failure if the chart cannot be written.
int report(Console& console, agent::Sink& out, const Settings& settings, int code, const std::string& json,
           const std::vector<std::string>& lines, const std::function<Result<>()>& draw) {
  if (settings.output == OutputFormat::json) out.write(json);
  if (settings.output == OutputFormat::text)
    for (const std::string& line : lines) console.say(line);
  if (const auto drawn = draw(); !drawn) return failed(console, drawn.error(), agent::exit_not_done);
  return code;
}

// Returns a callback that shows the progress of a rehearsal. Borrows the bar.
rehearse::OnProgress shown_by(ProgressBar& bar) {
  return [&bar](const rehearse::StepProgress& progress) {
    const bool reads = progress.step == rehearse::StepProgress::Step::reading;
    bar.show(
        {reads ? "reading the snapshot" : "rehearsing", progress.done, progress.total, reads ? "objects" : "nodes"});
  };
}

int play_drains(agent::Process& process, Console& console, const Settings& settings, rehearse::Snapshot snapshot) {
  ProgressBar bar(process);
  const rehearse::Assumptions& assumptions = settings.rehearse.assumptions;
  const auto rehearsal = rehearse::rehearse({.snapshot = std::move(snapshot),
                                             .nodes = settings.nodes,
                                             .selector = settings.selector,
                                             .drain = settings.drain,
                                             .assumptions = assumptions,
                                             .on_progress = shown_by(bar)});
  bar.clear();
  if (!rehearsal) return not_played(console, rehearsal.error());
  return report(console, process.out, settings, exit_code(*rehearsal), rehearsal_json(*rehearsal, assumptions),
                rehearsal_lines(*rehearsal),
                [&] { return write_timeline(settings.timeline, rehearsal->timeline, title_of(*rehearsal)); });
}

rehearse::FleetInput fleet_input(const Settings& settings, agent::AgentConfig config) {
  rehearse::FleetInput input{.snapshot = {}, .config = std::move(config), .assumptions = settings.rehearse.assumptions};
  if (settings.rehearse.reboot_time) input.reboot_time = *settings.rehearse.reboot_time;
  return input;
}

int play_fleet(agent::Process& process, Console& console, const Settings& settings, agent::AgentConfig config,
               rehearse::Snapshot snapshot) {
  ProgressBar bar(process);
  rehearse::FleetInput input = fleet_input(settings, std::move(config));
  rehearse::FleetInput played = input;
  played.snapshot = std::move(snapshot);
  played.on_progress = shown_by(bar);
  const auto rehearsal = rehearse_fleet(std::move(played));
  bar.clear();
  if (!rehearsal) return not_played(console, rehearsal.error());
  return report(console, process.out, settings, exit_code(*rehearsal), fleet_json(*rehearsal, input),
                fleet_lines(*rehearsal), [&] {
                  return rehearse::write_picture(settings.timeline,
                                                 fleet_svg(*rehearsal, "Rehearsal: update of the fleet"));
                });
}

int play_several(agent::Process& process, Console& console, const Settings& settings,
                 std::vector<SettingToPlay> to_play, rehearse::Snapshot snapshot) {
  ProgressBar bar(process);
  rehearse::FleetInput input = fleet_input(settings, to_play.front().config);
  input.snapshot = std::move(snapshot);
  input.on_progress = shown_by(bar);
  const auto comparison = compare_fleets(console, settings.rehearse, std::move(to_play), std::move(input));
  bar.clear();
  if (!comparison) return not_played(console, comparison.error());
  return report(console, process.out, settings, exit_code(*comparison), comparison_json(*comparison),
                comparison_lines(*comparison), [] { return Result<>(); });
}

// The validated input other than the snapshot: with --all the configuration of the agents, one for each setting that is
// given by --compare or --plan. Empty without --all.
struct Wanted {
  std::vector<SettingToPlay> fleets;
  bool several = false;
};

// Validates the input. If it is invalid, prints the error and returns nullopt; the command then exits with the
// usage-error code.
std::optional<Wanted> wanted_of(Console& console, const Settings& settings) {
  Wanted wanted;
  if (const auto possible = rehearse::can_write_timeline(settings.timeline); !possible) {
    failed(console, possible.error(), agent::exit_usage);
    return std::nullopt;
  }
  if (!settings.rehearse.all) return wanted;
  auto config = config_of(console, settings.rehearse);
  if (!config) return std::nullopt;
  if (const auto problem = rehearse::unplayable(*config)) {
    failed(console, *problem, agent::exit_usage);
    return std::nullopt;
  }
  wanted.several = settings.rehearse.plan || !settings.rehearse.compared_option.empty();
  if (wanted.several)
    wanted.fleets = settings_to_play(console, settings.rehearse);
  else
    wanted.fleets.push_back({{}, *std::move(config)});
  if (wanted.fleets.empty()) return std::nullopt;
  return wanted;
}

int play(agent::Process& process, Console& console, const Settings& settings, Wanted wanted,
         rehearse::Snapshot snapshot) {
  if (wanted.fleets.empty()) return play_drains(process, console, settings, std::move(snapshot));
  return wanted.several
             ? play_several(process, console, settings, std::move(wanted.fleets), std::move(snapshot))
             : play_fleet(process, console, settings, std::move(wanted.fleets.front().config), std::move(snapshot));
}

// Validates the input, reads the snapshot and runs the simulation. Returns the exit code.
int rehearse(agent::Process& process, Console& console, const Settings& settings, const RunToEnd& run) {
  auto wanted = wanted_of(console, settings);
  if (!wanted) return agent::exit_usage;
  SnapshotGot got = get_snapshot(process, console, settings, run);
  if (!got.snapshot) return got.exit_code;
  const int played = play(process, console, settings, *std::move(wanted), *std::move(got.snapshot));
  // With --warnings-as-errors the read fails although there is a snapshot.
  return played == agent::exit_done ? got.exit_code : played;
}

}  // namespace

int rehearse(agent::Process& process, const Settings& settings, const RunToEnd& run) {
  agent::Sink& text = settings.output == OutputFormat::json ? process.err : static_cast<agent::Sink&>(process.out);
  Console console(text, process.err);
  return finish_output(process.out, process.err, is_run_for_its_output(settings),
                       rehearse(process, console, settings, run), -1);
}

}  // namespace haulout::cli
