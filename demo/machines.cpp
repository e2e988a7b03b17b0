#include "demo/machines.hpp"

#include <filesystem>
#include <fstream>
#include <optional>

namespace haulout::demo {
namespace {

// Interval at which the files are read. It is short compared with anything that happens on a node, and each time only a
// few files per machine are read.
constexpr Duration look_every = std::chrono::milliseconds(20);

// Returns the boot id of a machine, or nullopt if the machine is off or was not set up.
std::optional<std::string> boot_id(const std::filesystem::path& root) {
  std::error_code ignored;
  if (std::filesystem::exists(root / "off", ignored)) return std::nullopt;
  std::ifstream file(root / "proc/sys/kernel/random/boot_id");
  std::string line;
  if (!std::getline(file, line) || line.empty()) return std::nullopt;
  return line;
}

}  // namespace

boost::asio::awaitable<void> follow_machines(Clock& clock, sim::Cluster& cluster, DemoJudge& judge,
                                             std::string directory) {
  std::map<std::string, std::optional<std::string>> seen;
  while (true) {
    for (const sim::Json& node : cluster.all("nodes")) {
      const std::string name = sim::name_of(node);
      const auto now = boot_id(std::filesystem::path(directory) / name);
      const auto [known, first] = seen.emplace(name, now);
      if (!first && known->second == now) continue;
      known->second = now;
      if (!now) {
        judge.machine_down(name, clock.now());
        cluster.node_down(name);
        continue;
      }
      if (!first) judge.machine_up(name);
      cluster.node_up(name, *now);
    }
    co_await clock.sleep_until(clock.now() + look_every);
  }
}

}  // namespace haulout::demo
