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

std::optional<FoundBackend> by_release(const OsRelease& release) {
  const std::string os = "/etc/os-release names " + called(release);
  if (release.id == "bottlerocket") return FoundBackend{"bottlerocket", "", os};
  if (release.is_like("flatcar")) return FoundBackend{"flatcar", "", os};
  if (is_transactional_suse(release))
    return FoundBackend{"file", std::string(suse_sentinel), fmt::format("{}, which leaves {}", os, suse_sentinel)};
  if (DebianBackend::detect(release)) return FoundBackend{"debian", "", os};
  return std::nullopt;
}

Result<FoundBackend> found(const HostRoot& root) {
  auto ostree = root.exists("/run/ostree-booted");
  if (!ostree) return std::move(ostree).error();
  if (*ostree) return FoundBackend{"rpm-ostree", "", root.display("/run/ostree-booted") + " exists"};
  auto release = read_os_release(root);
  if (!release) return std::move(release).error();
  if (*release) {
    if (auto choice = by_release(**release)) return *std::move(choice);
  } else {
    // Some pods on Bottlerocket mount only the socket of its API from the host, so its presence suffices.
    auto socket = root.exists("/run/api.sock");
    if (!socket) return std::move(socket).error();
    if (*socket) return FoundBackend{"bottlerocket", "", root.display("/run/api.sock") + " exists"};
  }
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
  static const std::vector<std::string> names = {"bottlerocket", "command", "debian", "file", "flatcar", "rpm-ostree"};
  return names;
}

Result<FoundBackend> choose_backend(const BackendWish& wish, const HostRoot& root) {
  if (!wish.backend.empty()) return as_wished(wish);
  if (!wish.sentinel.empty() && !wish.sentinel_command.empty())
    return contradiction("--sentinel and --sentinel-command exclude each other; give one");
  if (!wish.sentinel.empty()) return FoundBackend{"file", wish.sentinel, "--sentinel says so"};
  if (!wish.sentinel_command.empty()) return FoundBackend{"command", "", "--sentinel-command says so"};
  return found(root);
}

}  // namespace haulout::agent
