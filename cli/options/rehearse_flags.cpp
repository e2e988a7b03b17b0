#include "cli/options/rehearse_flags.hpp"

#include "agent/gates/max_unavailable.hpp"
#include "cli/options/flag_values.hpp"

namespace haulout::cli {
namespace {

using flag_values::boolean;
using flag_values::duration;
using flag_values::one_of;
using Kind = Flag::Kind;

// Makes a flag of a drain also record its name. With --all such a flag is an error, because the agents drain as their
// configuration says.
Flag of_a_drain(Flag flag) {
  flag.apply = [apply = std::move(flag.apply), name = flag.name](Settings& settings, const std::string& value) {
    settings.rehearse.drain_flags.push_back(name);
    return apply(settings, value);
  };
  return flag;
}

std::string apply_snapshot(Settings& settings, const std::string& file) {
  if (file.empty()) return "it names a file, or - for stdin";
  settings.rehearse.snapshots.push_back(file);
  return {};
}

std::string apply_config(Settings& settings, const std::string& file) {
  if (file.empty()) return "it names the configuration file of the agents";
  settings.rehearse.config_file = file;
  return {};
}

std::string apply_max_unavailable(Settings& settings, const std::string& value) {
  const auto limit = agent::parse_max_unavailable(value);
  if (!limit) return limit.error().message();
  settings.rehearse.max_unavailable = value;
  return {};
}

std::vector<Flag> fleet_flags() {
  return {
      {"all", 0, Kind::boolean, "false",
       "Simulate the update of the whole fleet by its agents, instead of drains of some nodes. Every node that is "
       "Ready is rebooted once.",
       boolean([](Settings& s, bool on) { s.rehearse.all = on; })},
      {"config", 0, Kind::value, "",
       "With --all: the configuration file of the agents. Without it the agents use their defaults. The configuration "
       "file and the HAULOUT_ variables of this machine are not read.",
       apply_config},
      {"max-unavailable", 0, Kind::value, "",
       "With --all: how many nodes of a pool may be unavailable at the same time, as a number (2) or a percentage "
       "(10%). Overrides the configuration.",
       apply_max_unavailable},
      {"reboot-time", 0, Kind::value, "3m", "With --all: assume that a machine is down for this long when it reboots.",
       duration([](Settings& s, Duration d) { s.rehearse.reboot_time = d; })},
  };
}

}  // namespace

std::vector<Flag> rehearse_flags(std::vector<Flag> drain_flags) {
  std::vector<Flag> flags = fleet_flags();
  for (Flag& flag : drain_flags) {
    if (flag.name == "dry-run" || flag.name == "chunk-size" || flag.name == "output") continue;
    const bool of_both = flag.name == "timeline" || flag.name == "selector";
    flags.push_back(of_both ? std::move(flag) : of_a_drain(std::move(flag)));
  }
  flags.push_back({"attach-within", 0, Kind::value, "15s",
                   "Assume that attaching a volume takes this long, from the time when a pod that uses it is bound to "
                   "the node, or when another node that had it exclusively has detached it. Then the pod starts.",
                   duration([](Settings& s, Duration d) { s.rehearse.attach_within = d; })});
  flags.push_back(
      {"detach-within", 0, Kind::value, "30s",
       "Assume that a volume is unmounted and detached this long after its last pod on the node was deleted.",
       duration([](Settings& s, Duration d) { s.rehearse.detach_within = d; })});
  flags.push_back({"output", 'o', Kind::value, "text", "Output format: text or json.",
                   one_of<OutputFormat>({{"text", OutputFormat::text}, {"json", OutputFormat::json}},
                                        [](Settings& s, OutputFormat format) { s.output = format; })});
  flags.push_back({"ready-after", 0, Kind::value, "30s",
                   "Assume that a new pod is Ready this long after it is scheduled and its volumes are attached.",
                   duration([](Settings& s, Duration d) { s.rehearse.ready_after = d; })});
  flags.push_back({"snapshot", 'f', Kind::value, "",
                   "A snapshot of the cluster: a file with objects as kubectl get -o json or yaml prints them, or - "
                   "for stdin. May be repeated. Without it the objects are read from the cluster.",
                   apply_snapshot});
  flags.push_back({"terminate-within", 0, Kind::value, "",
                   "Assume that no pod takes longer than this to terminate. Without it each pod takes its whole grace "
                   "period, which is the maximum.",
                   duration([](Settings& s, Duration d) { s.rehearse.terminate_within = d; })});
  return flags;
}

}  // namespace haulout::cli
