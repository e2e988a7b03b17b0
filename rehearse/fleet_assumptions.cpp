#include "rehearse/fleet_assumptions.hpp"

#include <fmt/format.h>

#include "base/duration.hpp"
#include "base/text.hpp"
#include "rehearse/fleet_machine.hpp"

namespace haulout::rehearse {
namespace {

bool names_hooks(const agent::AgentConfig& config) {
  const agent::AgentConfig defaults;
  return config.hooks_dir != defaults.hooks_dir || config.hook_limit != defaults.hook_limit ||
         config.hook_failure != defaults.hook_failure;
}

}  // namespace

std::optional<Error> unplayable(const agent::AgentConfig& config) {
  if (config.slots != agent::SlotsChoice::fleetlock) return std::nullopt;
  return Error(Errc::invalid,
               "a rehearsal cannot use a FleetLock server, because only the server knows which node gets a slot; "
               "rehearse with a copy of the configuration that has slots: lease, and max-unavailable as on the server");
}

std::vector<std::string> assumed_of_fleet(const FleetInput& input, const Forgotten& forgotten) {
  const agent::AgentConfig& config = input.config;
  std::vector<std::string> assumed;
  assumed.push_back(
      fmt::format("every Ready node needs one reboot; a machine is down for {}, and its agent starts {} after that",
                  format_duration(input.reboot_time), format_duration(agent_start)));
  if (config.reboot_methods == std::vector{agent::RebootMethod::none})
    assumed.emplace_back("another program reboots each machine as soon as its node is ready");
  if (config.slots == agent::SlotsChoice::none)
    assumed.emplace_back("according to the configuration (slots: none), no node waits for another");
  if (!config.prometheus_url.empty()) assumed.emplace_back("no alert fires: Prometheus is not queried");
  if (names_hooks(config) || !forgotten.hooks.empty()) {
    assumed.push_back("hooks do not run, and take no time");
    if (!forgotten.hooks.empty()) assumed.back() += " (nodes have annotation hooks: " + some_of(forgotten.hooks) + ")";
  }
  if (!forgotten.pauses.empty()) assumed.push_back("all pauses are ended: " + some_of(forgotten.pauses));
  if (!forgotten.half_done.empty())
    assumed.push_back("updates in progress start again, with the node uncordoned: " + some_of(forgotten.half_done));
  return assumed;
}

}  // namespace haulout::rehearse
