#include "agent/service/host_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/backends/apt_updater.hpp"
#include "agent/backends/bottlerocket_backend.hpp"
#include "agent/backends/command_backend.hpp"
#include "agent/backends/debian_backend.hpp"
#include "agent/backends/file_backend.hpp"
#include "agent/backends/image_backend.hpp"
#include "agent/dbus/flatcar_backend.hpp"
#include "agent/dbus/logind.hpp"
#include "agent/dbus/rpm_ostree_backend.hpp"
#include "agent/dbus/unit_hooks.hpp"
#include "agent/dbus/unit_programs.hpp"
#include "agent/hooks/hooks.hpp"
#include "agent/hosts/hosts.hpp"
#include "base/plain_text.hpp"

namespace haulout::agent {
namespace {

bool on_the_bus(RebootMethod method) {
  return method == RebootMethod::logind || method == RebootMethod::kexec || method == RebootMethod::systemd;
}

}  // namespace

std::unique_ptr<Host> make_host(const AgentConfig& config, const HostAccess& host) {
  std::vector<std::unique_ptr<Host>> hosts;
  std::vector<std::string> by_bus;
  const auto add_bus_host = [&] {
    if (by_bus.empty()) return;
    hosts.push_back(std::make_unique<LogindHost>(host.bus, host.root, std::exchange(by_bus, {})));
  };
  for (const RebootMethod method : config.reboot_methods) {
    if (method == RebootMethod::logind) by_bus.emplace_back("logind");
    if (method == RebootMethod::kexec) by_bus.emplace_back("kexec");
    if (method == RebootMethod::systemd) by_bus.emplace_back("systemd");
    if (on_the_bus(method)) continue;
    add_bus_host();
    if (method == RebootMethod::command)
      hosts.push_back(std::make_unique<CommandHost>(host.root, host.clock, host_command(config.reboot_command)));
  }
  add_bus_host();
  if (hosts.empty()) return std::make_unique<NoneHost>(host.root);
  if (hosts.size() == 1) return std::move(hosts.front());
  return std::make_unique<JoinedHost>(std::move(hosts));
}

Result<std::unique_ptr<HookPrograms>> make_hooks(const AgentConfig& config, const HostAccess& host) {
  auto units = systemd_booted(host.root);
  if (!units) return std::move(units).error();
  if (*units) return std::make_unique<UnitHooks>(host.root, host.bus, config.hooks_dir);
  return std::make_unique<ChildHooks>(host.root, host.clock, config.hooks_dir);
}

bool uses_bus(const AgentConfig& config, std::string_view backend, const HostRoot& root) {
  // Hooks run as systemd units. If it cannot be determined now whether the host runs systemd, use the bus: it may be
  // possible later.
  const auto units = systemd_booted(root);
  return !units || *units || backend == "flatcar" || backend == "rpm-ostree" ||
         std::any_of(config.reboot_methods.begin(), config.reboot_methods.end(), on_the_bus);
}

namespace {

std::string name_of(BackendChoice choice) {
  switch (choice) {
    case BackendChoice::automatic: return {};
    case BackendChoice::debian: return "debian";
    case BackendChoice::file: return "file";
    case BackendChoice::command: return "command";
    case BackendChoice::bottlerocket: return "bottlerocket";
    case BackendChoice::flatcar: return "flatcar";
    case BackendChoice::rpm_ostree: return "rpm-ostree";
    case BackendChoice::bootc: return "bootc";
    case BackendChoice::ostree: return "ostree";
    case BackendChoice::transactional_update: return "transactional-update";
    case BackendChoice::rauc: return "rauc";
    case BackendChoice::sysupdate: return "sysupdate";
  }
  return {};
}

MadeBackend alone(std::unique_ptr<Backend> backend) {
  return {nullptr, nullptr, std::move(backend)};
}

std::unique_ptr<Backend> make_command(const AgentConfig& config, const HostAccess& host) {
  ExitCodes codes{.yes = {}, .no = {}};
  for (const auto& [code, yes] : config.sentinel_exit_codes) (yes ? codes.yes : codes.no).push_back(code);
  return std::make_unique<CommandBackend>(
      host.clock, host.rng, host_command(config.sentinel_command),
      CommandBackend::Options{.codes = std::move(codes), .interval = config.sentinel_interval});
}

// Programs that create /run/reboot-required for each new kernel. No other program does so.
constexpr const char* kernel_hooks[] = {"/etc/kernel/postinst.d/unattended-upgrades",
                                        "/etc/kernel/postinst.d/update-notifier"};

constexpr const char* running_release = "/proc/sys/kernel/osrelease";

Result<bool> leaves_sentinels(const HostRoot& root) {
  for (const char* hook : kernel_hooks) {
    auto there = root.exists(hook);
    if (!there || *there) return there;
  }
  return false;
}

// Returns how the agent detects a new kernel. Debian's base system has the directory /boot. So if it is missing, the
// agent cannot see the host's directory. If it is empty, the machine has no kernel of its own.
Result<DebianBackend::Options> kernel_options(const HostRoot& root) {
  auto others = leaves_sentinels(root);
  if (!others) return std::move(others).error();
  auto names = root.list("/boot");
  if (!names) return std::move(names).error();
  if (*others) return DebianBackend::Options{};
  if (!*names)
    return DebianBackend::Options{
        .unseen_kernels = fmt::format("it is unknown whether a new kernel needs a reboot: {} does not exist, and no "
                                      "program in {} reports it; in a container, mount both from the host",
                                      root.display("/boot"), root.display("/etc/kernel/postinst.d"))};
  const bool kernels = std::any_of((*names)->begin(), (*names)->end(),
                                   [](const std::string& name) { return name.starts_with("vmlinuz-"); });
  if (!kernels) return DebianBackend::Options{};
  auto release = root.read(running_release, line_limit);
  if (!release) return std::move(release).error();
  std::string running = first_line(release->value_or(""));
  if (running.empty())
    return DebianBackend::Options{
        .unseen_kernels =
            fmt::format("the running kernel is unknown: {} does not exist; in a container, mount it from the host",
                        root.display(running_release))};
  return DebianBackend::Options{.running_kernel = std::move(running)};
}

Result<MadeBackend> make_debian(const HostAccess& host) {
  auto options = kernel_options(host.root);
  if (!options) return std::move(options).error();
  return alone(std::make_unique<DebianBackend>(host.root, host.clock, host.rng, *std::move(options)));
}

Result<MadeBackend> make_bottlerocket(const HostAccess& host) {
  auto client = bottlerocket_client(host.executor, host.clock, host.root);
  if (!client) return std::move(client).error();
  auto backend = std::make_unique<BottlerocketBackend>(**client, host.clock, host.rng);
  return MadeBackend{*std::move(client), nullptr, std::move(backend)};
}

Result<std::unique_ptr<HostPrograms>> make_programs(const HostAccess& host) {
  auto units = systemd_booted(host.root);
  if (!units) return std::move(units).error();
  if (*units) return std::make_unique<UnitPrograms>(host.bus);
  return std::make_unique<ChildPrograms>(host.clock, host.root.directory());
}

// Returns the image tool of the back end (image_tools.hpp), or nothing if the back end has none.
Result<std::optional<ImageTool>> tool_of(const AgentConfig& config, const FoundBackend& found, const HostRoot& root) {
  auto release = read_os_release(root);
  if (!release) return std::move(release).error();
  return image_tool(found.backend, release->value_or(OsRelease()), config.update_bundle);
}

}  // namespace

Result<FoundBackend> find_backend(const AgentConfig& config, const HostRoot& root) {
  BackendWish wish{
      .backend = name_of(config.backend), .sentinel = config.sentinel, .updates = config.update != UpdateChoice::off};
  if (!config.sentinel_command.empty()) wish.sentinel_command = config.sentinel_command.front();
  return choose_backend(wish, root);
}

Result<MadeBackend> make_backend(const AgentConfig& config, const FoundBackend& found, const HostAccess& host) {
  if (found.backend == "debian") return make_debian(host);
  if (found.backend == "bottlerocket") return make_bottlerocket(host);
  if (found.backend == "file")
    return alone(std::make_unique<FileBackend>(host.root, host.clock, host.rng, found.sentinel));
  if (found.backend == "command") return alone(make_command(config, host));
  if (found.backend == "flatcar") return alone(std::make_unique<FlatcarBackend>(host.bus, host.rng, host.root));
  if (found.backend == "rpm-ostree") return alone(std::make_unique<RpmOstreeBackend>(host.bus, host.rng));
  auto tool = tool_of(config, found, host.root);
  if (!tool) return std::move(tool).error();
  if (!*tool) return Error(Errc::invalid, "bug in Haulout: it cannot make the back end " + found.backend);
  auto programs = make_programs(host);
  if (!programs) return std::move(programs).error();
  auto backend = std::make_unique<ImageBackend>(**std::move(tool), host.root, **programs, host.clock, host.rng);
  return MadeBackend{nullptr, *std::move(programs), std::move(backend)};
}

namespace {

// Returns why this back end cannot do what the options about updates say; empty if it can.
std::string refused_update(const AgentConfig& config, const FoundBackend& found, bool stages) {
  const std::string here = fmt::format("with backend {} ({})", found.backend, found.why);
  if (found.backend == "bottlerocket")
    return fmt::format("update is set, but {} the agent installs the image before the drain anyway: set update to off",
                       here);
  if (found.backend != "debian" && !stages)
    return fmt::format("update is set, but {} the agent cannot install updates: set update to off", here);
  if (found.backend == "debian" && config.update == UpdateChoice::before_drain)
    return fmt::format(
        "update is before-drain, but {} that would install packages while pods run: set update to after-drain", here);
  if (found.backend != "debian" && config.update_packages != UpdatePackages::all)
    return fmt::format("update-packages is security, but {} an update is a whole image: remove update-packages", here);
  if (found.backend != "debian" && config.update_services != UpdateServices::report)
    return fmt::format("update-services is reboot, but {} the agent restarts no services: remove update-services",
                       here);
  if (!config.pin.empty() && (found.backend == "debian" || found.backend == "transactional-update"))
    return fmt::format("pin is set, but {} updates have no version: remove pin", here);
  if (found.backend == "rauc" && config.update_bundle.empty())
    return fmt::format("update is set, but {} no bundle is named: set update-bundle", here);
  return {};
}

}  // namespace

Result<MadeUpdater> make_updater(const AgentConfig& config, const FoundBackend& found, const HostAccess& host,
                                 Backend& backend) {
  MadeUpdater made;
  if (config.update == UpdateChoice::off) return made;
  auto tool = tool_of(config, found, host.root);
  if (!tool) return std::move(tool).error();
  const bool flatcar = found.backend == "flatcar";
  if (std::string refused = refused_update(config, found, *tool || flatcar); !refused.empty())
    return Error(Errc::invalid, std::move(refused));
  if (flatcar) {
    made.updater = std::make_unique<FlatcarUpdater>(host.bus, host.rng);
    return made;
  }
  auto programs = make_programs(host);
  if (!programs) return std::move(programs).error();
  made.programs = *std::move(programs);
  if (*tool) {
    made.updater = std::make_unique<ImageUpdater>(**std::move(tool), backend, *made.programs, host.clock, host.rng);
    return made;
  }
  AptUpdater::Options options{.security_only = config.update_packages == UpdatePackages::security,
                              .reboot_for_services = config.update_services == UpdateServices::reboot};
  made.updater = std::make_unique<AptUpdater>(host.root, *made.programs, host.clock, host.rng, std::move(options));
  return made;
}

}  // namespace haulout::agent
