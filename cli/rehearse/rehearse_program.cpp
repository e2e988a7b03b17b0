#include "cli/rehearse/rehearse_program.hpp"

#include <iostream>
#include <iterator>

#include "agent/config/read_config.hpp"
#include "agent/process/process.hpp"
#include "base/files.hpp"
#include "base/option.hpp"
#include "base/text.hpp"
#include "cli/rehearse/rehearsal_text.hpp"
#include "rehearse/charts.hpp"
#include "rehearse/fleet_rehearsal.hpp"
#include "rehearse/snapshot.hpp"

namespace haulout::cli {
namespace {

// Long enough to list all objects of a large cluster in pages.
constexpr Duration snapshot_limit = std::chrono::minutes(5);

Result<rehearse::Document> read_document(const std::string& path) {
  if (path == "-") return rehearse::Document{text_of(std::cin).text, "the standard input"};
  auto text = read_whole_file(path);
  if (!text) return Error(Errc::invalid, "--snapshot " + text.error().message());
  return rehearse::Document{*std::move(text), path};
}

Result<rehearse::Snapshot> read_files(const std::vector<std::string>& paths, WallTime now) {
  rehearse::Snapshot snapshot{.read_at = now, .stored = true};
  for (const std::string& path : paths) {
    auto document = read_document(path);
    if (!document) return std::move(document).error();
    snapshot.documents.push_back(*std::move(document));
  }
  return snapshot;
}

int failed(Console& console, const Error& error, int code) {
  console.warn("error: " + printable(error.message()));
  return code;
}

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

int play_drains(Console& console, agent::Sink& out, const Settings& settings, rehearse::Snapshot snapshot) {
  const rehearse::Assumptions& assumptions = settings.rehearse.assumptions;
  const auto rehearsal = rehearse::rehearse({.snapshot = std::move(snapshot),
                                             .nodes = settings.nodes,
                                             .selector = settings.selector,
                                             .drain = settings.drain,
                                             .assumptions = assumptions});
  if (!rehearsal) return not_played(console, rehearsal.error());
  return report(console, out, settings, exit_code(*rehearsal), rehearsal_json(*rehearsal, assumptions),
                rehearsal_lines(*rehearsal),
                [&] { return write_timeline(settings.timeline, rehearsal->timeline, title_of(*rehearsal)); });
}

int play_fleet(Console& console, agent::Sink& out, const Settings& settings, agent::AgentConfig config,
               rehearse::Snapshot snapshot) {
  rehearse::FleetInput input{.snapshot = {}, .config = std::move(config), .assumptions = settings.rehearse.assumptions};
  if (settings.rehearse.reboot_time) input.reboot_time = *settings.rehearse.reboot_time;
  rehearse::FleetInput played = input;
  played.snapshot = std::move(snapshot);
  const auto rehearsal = rehearse_fleet(std::move(played));
  if (!rehearsal) return not_played(console, rehearsal.error());
  return report(
      console, out, settings, exit_code(*rehearsal), fleet_json(*rehearsal, input), fleet_lines(*rehearsal), [&] {
        return rehearse::write_picture(settings.timeline, fleet_svg(*rehearsal, "Rehearsal: update of the fleet"));
      });
}

// The validated input other than the snapshot: with --all the configuration of the agents. `fleet` is unset without
// --all.
struct Wanted {
  std::optional<agent::AgentConfig> fleet;
};

// Reads the agents' configuration from the given file, --max-unavailable and --ramp only. This machine's default file
// and environment do not apply to the agents. If it is invalid, prints the errors and returns nullopt.
std::optional<agent::AgentConfig> config_of(Console& console, const RehearseSettings& settings) {
  agent::FlagValues flags;
  if (!settings.max_unavailable.empty()) flags.emplace_back("max-unavailable", settings.max_unavailable);
  if (!settings.ramp.empty()) flags.emplace_back("ramp", settings.ramp);
  if (!settings.config_file.empty()) flags.emplace_back("config", settings.config_file);
  auto config =
      settings.config_file.empty() ? agent::read_config(flags, {}, std::nullopt) : agent::load_config(flags, {});
  if (auto* loaded = std::get_if<agent::AgentConfig>(&config)) return std::move(*loaded);
  for (const std::string& problem : split_at(std::get<std::string>(config), '\n'))
    console.warn("error: " + printable(problem));
  return std::nullopt;
}

// Validates the input. If it is invalid, prints the error and returns nullopt; the command then exits with the
// usage-error code.
std::optional<Wanted> wanted_of(Console& console, const Settings& settings) {
  Wanted wanted;
  if (const auto possible = rehearse::can_write_timeline(settings.timeline); !possible) {
    failed(console, possible.error(), agent::exit_usage);
    return std::nullopt;
  }
  if (!settings.rehearse.all) return wanted;
  wanted.fleet = config_of(console, settings.rehearse);
  if (!wanted.fleet) return std::nullopt;
  if (const auto problem = rehearse::unplayable(*wanted.fleet)) {
    failed(console, *problem, agent::exit_usage);
    return std::nullopt;
  }
  return wanted;
}

// Reads the snapshot from the API server into `into`, which it borrows. After a signal or a failure, `into` stays
// empty.
class SnapshotJob final : public Job {
 public:
  SnapshotJob(Tools tools, std::optional<rehearse::Snapshot>& into) : tools_(std::move(tools)), into_(into) {}

  boost::asio::awaitable<void> run() override {
    auto read = co_await rehearse::read_snapshot(tools_.client, saturating_add(tools_.clock.now(), snapshot_limit));
    if (!read) {
      exit_code_ = report_failure(tools_, read.error());
      co_return;
    }
    for (const std::string& left : read->left_out)
      tools_.console.warn("warning: the result may be wrong, because the rehearsal has no " + printable(left));
    snapshot_ = std::move(read->snapshot);
  }

  int finish(std::optional<int> signal) override {
    if (signal) return agent::exit_code_of_signal(*signal);
    into_ = std::move(snapshot_);
    return exit_code_;
  }

 private:
  Tools tools_;
  std::optional<rehearse::Snapshot>& into_;
  std::optional<rehearse::Snapshot> snapshot_;
  int exit_code_ = agent::exit_done;
};

// Validates the input, reads the snapshot and runs the simulation. Returns the exit code.
int rehearse(agent::Process& process, Console& console, const Settings& settings, const RunToEnd& run) {
  auto wanted = wanted_of(console, settings);
  if (!wanted) return agent::exit_usage;
  std::optional<rehearse::Snapshot> snapshot;
  int read = agent::exit_done;
  if (settings.rehearse.snapshots.empty()) {
    const auto make_job = [&snapshot](agent::Process&, Tools tools, const Settings&) {
      return std::make_unique<SnapshotJob>(std::move(tools), snapshot);
    };
    read = run(run_program(process, settings, make_job));
    if (!snapshot) return read;
  } else {
    auto files = read_files(settings.rehearse.snapshots, process.clock.wall_now());
    if (!files) return failed(console, files.error(), agent::exit_connection);
    snapshot = *std::move(files);
  }
  const int played = wanted->fleet
                         ? play_fleet(console, process.out, settings, *std::move(wanted->fleet), *std::move(snapshot))
                         : play_drains(console, process.out, settings, *std::move(snapshot));
  // With --warnings-as-errors the read fails although there is a snapshot.
  return played == agent::exit_done ? read : played;
}

}  // namespace

int rehearse(agent::Process& process, const Settings& settings, const RunToEnd& run) {
  agent::Sink& text = settings.output == OutputFormat::json ? process.err : static_cast<agent::Sink&>(process.out);
  Console console(text, process.err);
  return finish_output(process.out, process.err, is_run_for_its_output(settings),
                       rehearse(process, console, settings, run), -1);
}

}  // namespace haulout::cli
