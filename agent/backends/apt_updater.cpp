#include "agent/backends/apt_updater.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/backends/old_services.hpp"
#include "agent/hosts/system_files.hpp"
#include "base/plain_text.hpp"
#include "base/scope_exit.hpp"
#include "base/text.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// Time limit of a program that changes nothing, such as apt-get --simulate. It reads only files, which takes some
// seconds on a slow machine.
constexpr Duration look_limit = std::chrono::minutes(2);
// Time limit of a fetch of the lists.
constexpr Duration lists_limit = std::chrono::minutes(10);
// How long apt-get waits for a lock that another program has taken since blocked_by().
constexpr int lock_seconds = 60;
// Interval at which change() checks whether the agent's other program has ended.
constexpr Duration busy_pause = std::chrono::seconds(1);
// Shell: runs the program in its arguments, and does nothing if the program does not exist.
constexpr const char* if_executable = R"([ ! -x "$1" ] || exec "$@")";
// Shell: demands a reboot as packages of Debian and Ubuntu do. The arguments are the reasons; one that is in the file
// already is not written again.
constexpr const char* demand_reboot = R"(for reason; do
  grep -qxF -- "$reason" /run/reboot-required.pkgs 2>/dev/null ||
    printf '%s\n' "$reason" >>/run/reboot-required.pkgs || exit 1
done
echo 'System restart required' >/run/reboot-required)";

}  // namespace

AptUpdater::AptUpdater(HostRoot root, HostPrograms& programs, Clock& clock, Rng& rng, Options options)
    : root_(std::move(root)), programs_(programs), clock_(clock), rng_(rng), options_(std::move(options)) {}

HostProgram AptUpdater::apt_get(std::vector<std::string> args, const std::string& description) const {
  HostProgram program{.program = options_.apt_get, .unit = update_unit, .description = description};
  // These options override the files in /etc/apt, so that no setting there permits what the agent must never do.
  for (const char* option :
       {"APT::Get::AllowUnauthenticated=false", "APT::Get::allow-downgrades=false",
        "APT::Get::allow-remove-essential=false", "APT::Get::allow-change-held-packages=false",
        "APT::Get::force-yes=false", "APT::Get::AutomaticRemove=false", "APT::Get::Remove=false", "Dpkg::Use-Pty=false",
        "Dpkg::Options::=--force-confdef", "Dpkg::Options::=--force-confold"})
    program.args.insert(program.args.end(), {"-o", option});
  program.args.insert(program.args.end(), {"-o", fmt::format("DPkg::Lock::Timeout={}", lock_seconds), "-q", "-y"});
  program.args.insert(program.args.end(), args.begin(), args.end());
  // UCF_FORCE_CONFFOLD and the variables of needrestart are for programs that apt and package scripts call. ucf keeps
  // the administrator's files. needrestart is suspended, because restart_services() runs it. A version of needrestart
  // that does not know NEEDRESTART_SUSPEND restarts the services from apt's hook, without a question.
  program.env = {
      {"DEBIAN_FRONTEND", "noninteractive"}, {"APT_LISTCHANGES_FRONTEND", "none"}, {"LC_ALL", "C"},
      {"UCF_FORCE_CONFFOLD", "1"},           {"NEEDRESTART_SUSPEND", "1"},         {"NEEDRESTART_MODE", "a"}};
  program.env.insert(program.env.end(), options_.env.begin(), options_.env.end());
  return program;
}

std::vector<std::string> AptUpdater::upgrade(const AptPlan& plan) const {
  if (!options_.security_only) return {"upgrade", "--with-new-pkgs"};
  std::vector<std::string> args{"install", "--only-upgrade"};
  for (const AptUpdate& update : plan.updates) args.push_back(update.package + "=" + update.to);
  return args;
}

HostProgram AptUpdater::look_only(HostProgram program) {
  // Each run has a unit name of its own: if the name were that of a unit that an earlier agent has started, the output
  // would be lost.
  program.unit =
      fmt::format("haulout-update-look-{:x}-{}.service", clock_.wall_now().time_since_epoch().count(), ++looks_);
  program.keeps_output = true;
  return program;
}

Task<std::string> AptUpdater::output_of(HostProgram program, TimePoint deadline) {
  CO_TRY(ProgramEnd end,
         co_await programs_.run(look_only(program), std::min(deadline, saturating_add(clock_.now(), look_limit))));
  if (end.success && end.ours) co_return std::move(end.output);
  co_return Error(Errc::unavailable, fmt::format("{}: {}", program.description, end.how));
}

Task<AptPlan> AptUpdater::plan(TimePoint deadline) {
  CO_TRY(const std::string output,
         co_await output_of(apt_get({"--simulate", "-o", "Debug::NoLocking=true", "upgrade", "--with-new-pkgs"},
                                    "apt-get --simulate upgrade"),
                            deadline));
  CO_TRY(AptPlan found, parse_simulation(output));
  co_return options_.security_only ? only_security(std::move(found)) : std::move(found);
}

HostProgram AptUpdater::apt_mark(std::vector<std::string> args, const std::string& description) const {
  HostProgram program = apt_get({}, description);
  program.program = options_.apt_mark;
  program.args = std::move(args);
  return program;
}

asio::awaitable<Updates> AptUpdater::look(TimePoint deadline) {
  const auto found = co_await plan(deadline);
  if (!found)
    co_return Updates{.need = Need::unknown,
                      .problem = "it is unknown whether updates wait: " + found.error().message()};
  co_return updates_of(*found);
}

Task<> AptUpdater::refresh(TimePoint deadline) {
  return change(apt_get({"update"}, "Haulout fetches the lists of available packages"), deadline);
}

// changed() fetches the lists of available packages, because look() must change nothing. If the fetch fails, apt's own
// job may do it; the agent tries again with the next look.
asio::awaitable<void> AptUpdater::changed() {
  if (clock_.now() >= next_lists_) {
    const auto done = co_await refresh(saturating_add(clock_.now(), lists_limit));
    if (done) {
      next_lists_ = next_recheck(clock_, rng_, options_.list_interval);
      co_return;
    }
  }
  co_await clock_.sleep_until(next_recheck(clock_, rng_, options_.look_interval));
}

Task<> AptUpdater::download(TimePoint deadline) {
  CO_TRY(const AptPlan found, co_await plan(deadline));
  if (found.updates.empty()) co_return Result<>();
  std::vector<std::string> args = upgrade(found);
  args.insert(args.begin(), "--download-only");
  co_return co_await change(apt_get(std::move(args), "Haulout downloads updates"), deadline);
}

Task<std::string> AptUpdater::blocked_by(TimePoint deadline) {
  // A program of this updater that runs holds the locks itself. That blocks nothing, because change() waits for it.
  if (changing_) co_return std::string();
  // In a container, the lock of dpkg may not be visible. So ask systemd whether the unit of an earlier agent runs.
  CO_TRY(const bool runs, co_await programs_.runs(update_unit, deadline));
  if (runs) co_return fmt::format("{}, which an earlier agent has started, still runs", update_unit);
  CO_TRY(const std::string holder, dpkg_locked_by(root_));
  co_return holder.empty() ? holder : holder + ", so no package can be installed now";
}

Task<> AptUpdater::repair(TimePoint deadline) {
  HostProgram program = apt_get({}, "Haulout finishes an interrupted installation");
  program.program = options_.dpkg;
  program.args = {"--force-confdef", "--force-confold"};
  program.args.insert(program.args.end(), options_.dpkg_options.begin(), options_.dpkg_options.end());
  program.args.insert(program.args.end(), {"--configure", "-a"});
  return change(std::move(program), deadline);
}

Task<> AptUpdater::install(TimePoint deadline) {
  CO_CHECK(co_await repair(deadline));
  CO_TRY(const AptPlan wanted, co_await plan(deadline));
  if (!wanted.removed.empty())
    co_return Error(Errc::unavailable, fmt::format("apt-get would remove {} for these updates, so the agent does not "
                                                   "install them: install them on the machine yourself",
                                                   some_of(wanted.removed)));
  if (!wanted.updates.empty()) {
    auto done = co_await install(wanted, deadline);
    if (!done) {
      // The installation failed. Configure what was unpacked, because pods may run again soon.
      static_cast<void>(co_await repair(deadline));
      co_return std::move(done).error();
    }
  }
  CO_TRY(const AptPlan after, co_await plan(deadline));
  const std::string waiting = still_waiting(wanted, after);
  if (waiting.empty()) co_return Result<>();
  co_return Error(Errc::unavailable, "apt-get reported success, but these updates still wait: " + waiting);
}

Task<> AptUpdater::install(const AptPlan& wanted, TimePoint deadline) {
  HostProgram program = apt_get(upgrade(wanted), "Haulout installs updates");
  if (!options_.security_only) co_return co_await change(std::move(program), deadline);
  // apt-get install marks each package that it is given as installed by a person. So remember which packages were
  // marked as installed automatically, and mark them again afterwards.
  CO_TRY(const std::string marked, co_await output_of(apt_mark({"showauto"}, "apt-mark showauto"), deadline));
  std::vector<std::string> args = automatic(wanted, marked);
  auto done = co_await change(std::move(program), deadline);
  if (args.empty()) co_return done;
  args.insert(args.begin(), "auto");
  const auto restored =
      co_await change(apt_mark(std::move(args), "Haulout marks packages as automatically installed"), deadline);
  co_return done ? restored : done;
}

HostProgram AptUpdater::shell(std::string script, std::vector<std::string> args, const std::string& description) const {
  HostProgram program = apt_get({}, description);
  program.program = "/bin/sh";
  args.insert(args.begin(), {"-c", std::move(script), "sh"});
  program.args = std::move(args);
  return program;
}

// A container does not see the programs of the host, so a shell on the host checks whether needrestart is there. If it
// is not, the output is empty.
Task<std::vector<std::string>> AptUpdater::old_services(TimePoint deadline) {
  CO_TRY(const std::string output,
         co_await output_of(shell(if_executable, {options_.needrestart, "-b", "-l"}, "needrestart -b"), deadline));
  if (!output.empty()) co_return parse_needrestart(output);
  if (!options_.reboot_for_services) co_return std::vector<std::string>();
  co_return Error(Errc::unavailable,
                  "needrestart is not installed on this machine: install it, or set update-services to report");
}

// needrestart restarts all services with one call of systemctl, in no order of its own. Among them may be the agent:
// then needrestart goes on, and the next agent waits for its end.
Task<> AptUpdater::restart_services(TimePoint deadline) {
  HostProgram restart = apt_get({}, "Haulout restarts services that use replaced files");
  restart.program = options_.needrestart;
  restart.args = {"-m", "a", "-r", "a", "-l"};
  return change(std::move(restart), deadline);
}

// needrestart ignores whether a service comes up again. If the host has no systemctl, the output is empty, and nothing
// is known to have failed.
Task<std::vector<std::string>> AptUpdater::failed_services(std::vector<std::string> services, TimePoint deadline) {
  if (services.empty()) co_return services;
  std::vector<std::string> args{options_.systemctl, "show", "--property=SubState", "--value", "--"};
  args.insert(args.end(), services.begin(), services.end());
  CO_TRY(const std::string output,
         co_await output_of(shell(if_executable, std::move(args), "systemctl show"), deadline));
  if (output.empty()) co_return std::vector<std::string>();
  co_return parse_states(services, output);
}

Task<bool> AptUpdater::need_reboot_for(std::vector<std::string> services, TimePoint deadline) {
  if (!options_.reboot_for_services) co_return false;
  CO_CHECK(co_await change(shell(demand_reboot, std::move(services), "Haulout notes that services need a reboot"),
                           deadline));
  co_return true;
}

Task<> AptUpdater::change(HostProgram program, TimePoint deadline) {
  while (changing_) {
    if (clock_.now() >= deadline)
      co_return Error(Errc::timeout, program.program + " did not run: an earlier command of the agent has not ended");
    co_await clock_.sleep_until(std::min(deadline, clock_.now() + busy_pause));
  }
  changing_ = true;
  const ScopeExit done([this] { changing_ = false; });
  co_return co_await run_update_program(programs_, clock_, std::move(program), {}, deadline);
}

}  // namespace haulout::agent
