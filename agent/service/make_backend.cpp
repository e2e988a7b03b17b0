#include "agent/service/make_backend.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/backends/bottlerocket_backend.hpp"
#include "agent/backends/command_backend.hpp"
#include "agent/backends/debian_backend.hpp"
#include "agent/backends/file_backend.hpp"
#include "agent/dbus/flatcar_backend.hpp"
#include "agent/dbus/rpm_ostree_backend.hpp"
#include "base/plain_text.hpp"

namespace haulout::agent {
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
  }
  return {};
}

MadeBackend alone(std::unique_ptr<Backend> backend) {
  return {nullptr, std::move(backend)};
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

// Returns how the agent detects a new kernel. Debian's base system has /boot. The directory is empty if the machine has
// no kernel of its own, and missing if the agent cannot see the host's directory.
Result<DebianBackend::Options> kernel_options(const HostRoot& root) {
  auto others = leaves_sentinels(root);
  if (!others) return std::move(others).error();
  auto names = root.list("/boot");
  if (!names) return std::move(names).error();
  if (*others) return DebianBackend::Options{};
  if (!*names)
    return DebianBackend::Options{.unseen_kernels =
                                      fmt::format("it is unknown whether a new kernel needs a reboot: neither {} nor "
                                                  "the programs of {} exist here; mount both from the host",
                                                  root.display("/boot"), root.display("/etc/kernel/postinst.d"))};
  const bool kernels = std::any_of((*names)->begin(), (*names)->end(),
                                   [](const std::string& name) { return name.starts_with("vmlinuz-"); });
  if (!kernels) return DebianBackend::Options{};
  auto release = root.read(running_release, line_limit);
  if (!release) return std::move(release).error();
  std::string running = first_line(release->value_or(""));
  if (running.empty())
    return DebianBackend::Options{
        .unseen_kernels = fmt::format("the running kernel is unknown: {} does not exist here; mount it from the host",
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
  return MadeBackend{*std::move(client), std::move(backend)};
}

}  // namespace

Result<FoundBackend> find_backend(const AgentConfig& config, const HostRoot& root) {
  BackendWish wish{.backend = name_of(config.backend), .sentinel = config.sentinel};
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
  return Error(Errc::invalid, "there is no back end for " + found.backend);
}

}  // namespace haulout::agent
