#include "cli/migrate/migrate_program.hpp"

#include <fmt/format.h>

#include <iostream>
#include <system_error>

#include "agent/process/process.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "cli/migrate/kured_lock.hpp"
#include "cli/migrate/kured_manifest.hpp"
#include "cli/migrate/kured_migration.hpp"
#include "k8s/requests.hpp"
#include "k8s/status.hpp"

namespace haulout::cli {
namespace {

// Time for the whole command to reach the API server.
constexpr Duration migrate_limit = std::chrono::minutes(1);
// kured and the controller of DaemonSets write to the same object, but seldom.
constexpr int most_conflicts = 10;
// The limit of a manifest or of values, in bytes; a list of all DaemonSets of a large cluster is smaller.
constexpr std::size_t largest_file = std::size_t{64} << 20;

std::string namespace_of(const Settings& settings) {
  return settings.connection.ns.empty() ? std::string(default_kured_namespace) : settings.connection.ns;
}

Result<std::string> read_input(const std::string& path) {
  FileText file = path == "-" ? text_of(std::cin, largest_file) : file_text(path, largest_file);
  if (file.failure == 0) return std::move(file.text);
  return Error(Errc::invalid,
               fmt::format("--filename {} cannot be read: {}", path, std::generic_category().message(file.failure)));
}

int print(Console& console, agent::Sink& out, const Settings& settings, KuredCall call) {
  const auto migration = migrate_kured(std::move(call));
  if (!migration) return failed(console, migration.error(), agent::exit_not_done);
  if (settings.output == OutputFormat::json) {
    out.write(migration_json(*migration));
  } else {
    out.write(migration->config);
    for (const std::string& line : migration_lines(*migration)) console.warn(line);
  }
  return migration->is_complete() ? agent::exit_done : agent::exit_not_done;
}

int migrate_file(agent::Process& process, Console& console, const Settings& settings) {
  const auto text = read_input(settings.migrate.file);
  if (!text) return failed(console, text.error(), agent::exit_usage);
  auto call = read_kured_manifest(*text, settings.migrate.name);
  if (!call) return failed(console, std::move(call).error().with_context(settings.migrate.file), agent::exit_usage);
  return print(console, process.out, settings, *std::move(call));
}

class MigrateJob final : public Job {
 public:
  MigrateJob(Tools tools, const Settings& settings) : tools_(std::move(tools)), settings_(settings) {}

  boost::asio::awaitable<void> run() override {
    const TimePoint deadline = saturating_add(tools_.clock.now(), migrate_limit);
    if (settings_.migrate.hold_lock || settings_.migrate.release_lock)
      co_await change_lock(deadline);
    else if (const auto daemon_set = co_await read(own_place(), deadline))
      translate(*daemon_set);
  }

  int finish(std::optional<int> signal) override { return signal ? agent::exit_code_of_signal(*signal) : exit_code_; }

 private:
  LockPlace own_place() const { return {namespace_of(settings_), settings_.migrate.name}; }

  // Returns the DaemonSet as JSON. Prints a failure and returns nothing.
  boost::asio::awaitable<std::optional<std::string>> read(LockPlace place, TimePoint deadline) {
    const auto request = k8s::get<k8s::DaemonSet>(place.ns, place.name);
    const auto send = [this, &request](TimePoint until) { return tools_.client.send(*request, until); };
    auto response = co_await ask<http::Response>(tools_, deadline, send);
    if (response) co_return std::move(response->body);
    exit_code_ = k8s::is_gone(response.error()) ? not_there(place) : report_failure(tools_, response.error());
    co_return std::nullopt;
  }

  int not_there(const LockPlace& place) const {
    const std::string name = printable(place.ns + "/" + place.name);
    tools_.console.warn(
        place == own_place()
            ? fmt::format(
                  "error: there is no DaemonSet {}: name that of kured with -n NAMESPACE and --name NAME (kubectl "
                  "get daemonset -A lists all), or read its manifest with -f FILE",
                  name)
            : fmt::format("error: kured of this DaemonSet has its lock on the DaemonSet {}, by --ds-namespace and "
                          "--ds-name, which does not exist: without it kured cannot reboot any node",
                          name));
    return agent::exit_connection;
  }

  void translate(const std::string& daemon_set) {
    auto call = read_kured_daemon_set(daemon_set);
    exit_code_ = call ? print(tools_.console, tools_.out, settings_, *std::move(call))
                      : failed(tools_.console, call.error(), agent::exit_usage);
  }

  boost::asio::awaitable<void> change_lock(TimePoint deadline) {
    for (int conflicts = 0; conflicts < most_conflicts; ++conflicts) {
      const auto kured = co_await read(own_place(), deadline);
      if (!kured) co_return;
      const auto place = place_of_lock(*kured);
      if (!place) {
        exit_code_ = failed(tools_.console, place.error(), agent::exit_not_done);
        co_return;
      }
      const auto with_lock = *place == own_place() ? kured : co_await read(*place, deadline);
      if (!with_lock) co_return;
      const auto step = settings_.migrate.hold_lock ? step_to_hold(*kured, *with_lock, tools_.client.server_now())
                                                    : step_to_release(*kured, *with_lock);
      if (!step) {
        exit_code_ = failed(tools_.console, step.error(), agent::exit_not_done);
        co_return;
      }
      if (step->what != LockStep::What::write) co_return say(*step);
      const auto written = co_await tools_.client.patch<k8s::DaemonSet>(place->ns, place->name, step->patch, deadline);
      if (written) co_return say(*step);
      if (k8s::is_conflict(written.error())) continue;
      exit_code_ = report_failure(tools_, written.error());
      co_return;
    }
    exit_code_ = failed(tools_.console,
                        Error(Errc::unavailable,
                              "the DaemonSet of kured changes all the time, so its lock was not "
                              "changed: try again"),
                        agent::exit_not_done);
  }

  void say(const LockStep& step) {
    const bool done = step.what != LockStep::What::refused && step.complete;
    exit_code_ = done ? agent::exit_done : agent::exit_not_done;
    if (!done)
      tools_.console.warn("error: " + step.message);
    else
      tools_.console.say(step.message);
  }

  Tools tools_;
  Settings settings_;
  int exit_code_ = agent::exit_done;
};

}  // namespace

std::unique_ptr<Job> make_migrate_job(Tools tools, const Settings& settings) {
  return std::make_unique<MigrateJob>(std::move(tools), settings);
}

int migrate(agent::Process& process, const Settings& settings, const RunToEnd& run) {
  if (settings.migrate.file.empty()) {
    const auto make_job = [](agent::Process&, Tools tools, const Settings& connected) {
      return make_migrate_job(std::move(tools), connected);
    };
    return run(run_program(process, settings, make_job));
  }
  Console console(process.err, process.err);
  return finish_output(process.out, process.err, is_run_for_its_output(settings),
                       migrate_file(process, console, settings), -1);
}

}  // namespace haulout::cli
