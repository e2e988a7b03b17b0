#include "agent/backends/detect.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/backends/debian_backend.hpp"
#include "agent/backends/file_backend.hpp"
#include "agent/hosts/system_files.hpp"

namespace haulout::agent {
namespace {

Error contradiction(std::string text) {
  return Error(Errc::invalid, std::move(text));
}

Result<FoundBackend> as_wished(const BackendWish& wish) {
  const auto& names = backend_names();
  if (std::find(names.begin(), names.end(), wish.backend) == names.end())
    return contradiction(fmt::format("--backend \"{}\" is not a known back end; choose one of {}", wish.backend,
                                     fmt::join(names, ", ")));
  const bool file = wish.backend == "file";
  const bool command = wish.backend == "command";
  if (file && wish.sentinel.empty()) return contradiction("--backend=file needs --sentinel FILE");
  if (command && wish.sentinel_command.empty()) return contradiction("--backend=command needs --sentinel-command");
  if (!file && !wish.sentinel.empty())
    return contradiction(fmt::format("--sentinel needs --backend=file, not --backend={}", wish.backend));
  if (!command && !wish.sentinel_command.empty())
    return contradiction(fmt::format("--sentinel-command needs --backend=command, not --backend={}", wish.backend));
  return FoundBackend{wish.backend, wish.sentinel, "--backend says so"};
}

std::string called(const OsRelease& release) {
  return release.pretty_name.empty() ? release.id : fmt::format("{} ({})", release.pretty_name, release.id);
}

bool is_transactional_suse(const OsRelease& release) {
  const std::vector<std::string> ids = {"opensuse-microos", "opensuse-leap-micro", "opensuse-aeon", "sle-micro",
                                        "sl-micro"};
  return std::any_of(ids.begin(), ids.end(), [&](const std::string& id) { return release.is_like(id); });
}

std::optional<FoundBackend> by_release(const OsRelease& release, bool updates) {
  const std::string os = "/etc/os-release names " + called(release);
  if (release.id == "bottlerocket") return FoundBackend{"bottlerocket", "", os};
  if (release.is_like("flatcar")) return FoundBackend{"flatcar", "", os};
  // If the agent installs no updates, the back end `file` suffices: the sentinel of transactional-update shows whether
  // a reboot is needed, and the agent runs no program of the host.
  if (is_transactional_suse(release) && updates) return FoundBackend{"transactional-update", "", os};
  if (is_transactional_suse(release))
    return FoundBackend{"file", std::string(suse_sentinel),
                        fmt::format("{}, where the file {} means that a reboot is needed", os, suse_sentinel)};
  if (DebianBackend::detect(release)) return FoundBackend{"debian", "", os};
  return std::nullopt;
}

constexpr const char* rauc_files[] = {"/etc/rauc/system.conf", "/usr/lib/rauc/system.conf"};
constexpr const char* sysupdate_directories[] = {"/etc/sysupdate.d", "/usr/lib/sysupdate.d"};

// Finds RAUC and systemd-sysupdate by their configuration files, because os-release does not show that a system uses
// them. Called if os-release has determined no back end.
Result<std::optional<FoundBackend>> by_files(const HostRoot& root, const std::optional<OsRelease>& release) {
  for (const char* file : rauc_files) {
    auto there = root.exists(file);
    if (!there) return std::move(there).error();
    if (*there) return std::optional(FoundBackend{"rauc", "", root.display(file) + " exists"});
  }
  // Without IMAGE_VERSION the system as a whole is not an image, and the transfers of sysupdate update something else.
  if (!release || release->image_version.empty()) return std::optional<FoundBackend>();
  for (const char* directory : sysupdate_directories) {
    auto names = root.list(directory);
    if (!names) return std::move(names).error();
    for (const std::string& name : names->value_or(std::vector<std::string>()))
      if (name.ends_with(".transfer") || name.ends_with(".conf"))
        return std::optional(FoundBackend{"sysupdate", "", fmt::format("{}/{} exists", root.display(directory), name)});
  }
  return std::optional<FoundBackend>();
}

// Returns the back end of a machine with /run/ostree-booted: that of the first of these programs which the machine has.
// bootc and rpm-ostree manage deployments of ostree, and have its program, too. A container may see none of them; then
// the result is rpm-ostree.
Result<FoundBackend> of_ostree(const HostRoot& root) {
  std::string why = root.display("/run/ostree-booted") + " exists";
  for (const char* tool : {"rpm-ostree", "bootc", "ostree"}) {
    const std::string program = std::string("/usr/bin/") + tool;
    auto there = root.exists(program);
    if (!there) return std::move(there).error();
    if (*there) return FoundBackend{tool, "", fmt::format("{}, and so does {}", why, root.display(program))};
  }
  return FoundBackend{"rpm-ostree", "", std::move(why)};
}

Result<FoundBackend> found(const HostRoot& root, bool updates) {
  auto ostree = root.exists("/run/ostree-booted");
  if (!ostree) return std::move(ostree).error();
  if (*ostree) return of_ostree(root);
  auto release = read_os_release(root);
  if (!release) return std::move(release).error();
  if (*release) {
    if (auto choice = by_release(**release, updates)) return *std::move(choice);
  } else {
    // Some pods on Bottlerocket mount only the socket of its API from the host, so its presence suffices.
    auto socket = root.exists("/run/api.sock");
    if (!socket) return std::move(socket).error();
    if (*socket) return FoundBackend{"bottlerocket", "", root.display("/run/api.sock") + " exists"};
  }
  auto by_file = by_files(root, *release);
  if (!by_file) return std::move(by_file).error();
  if (*by_file) return **std::move(by_file);
  const std::string seen = *release ? "no back end supports " + called(**release)
                                    : fmt::format("{} does not exist", root.display("/etc/os-release"));
  return Error(
      Errc::unavailable,
      fmt::format(
          "no back end was detected: {}; choose one with --backend ({}), or give --sentinel FILE or --sentinel-command",
          seen, fmt::join(backend_names(), ", ")));
}

}  // namespace

const std::vector<std::string>& backend_names() {
  static const std::vector<std::string> names = {
      "bootc",     "bottlerocket",        "command", "debian", "file", "flatcar", "ostree", "rauc", "rpm-ostree",
      "sysupdate", "transactional-update"};
  return names;
}

Result<FoundBackend> choose_backend(const BackendWish& wish, const HostRoot& root) {
  if (!wish.backend.empty()) return as_wished(wish);
  if (!wish.sentinel.empty() && !wish.sentinel_command.empty())
    return contradiction("--sentinel and --sentinel-command exclude each other; give one");
  if (!wish.sentinel.empty()) return FoundBackend{"file", wish.sentinel, "--sentinel says so"};
  if (!wish.sentinel_command.empty()) return FoundBackend{"command", "", "--sentinel-command says so"};
  return found(root, wish.updates);
}

}  // namespace haulout::agent
