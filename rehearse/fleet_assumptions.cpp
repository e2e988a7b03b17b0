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
               "the turns of a FleetLock server cannot be rehearsed: only the server knows whom it lets go; rehearse "
               "with a copy of the configuration that has slots: lease, and max-unavailable as the server has it");
}

std::vector<std::string> assumed_of_fleet(const FleetInput& input, const Forgotten& forgotten) {
  const agent::AgentConfig& config = input.config;
  std::vector<std::string> assumed;
  assumed.push_back(
      fmt::format("every node that is Ready wants one reboot; a machine is down for {}, and its agent "
                  "starts {} after that",
                  format_duration(input.reboot_time), format_duration(agent_start)));
  if (config.reboot_methods == std::vector{agent::RebootMethod::none})
    assumed.emplace_back("whoever reboots the machines does so as soon as a node is ready");
  if (config.slots == agent::SlotsChoice::none)
    assumed.emplace_back("as the configuration says (slots: none), no node waits for another");
  if (!config.prometheus_url.empty()) assumed.emplace_back("no alert is firing: Prometheus is not asked");
  if (names_hooks(config) || !forgotten.hooks.empty()) {
    assumed.push_back("hooks are not run, and take no time");
    if (!forgotten.hooks.empty()) assumed.back() += " (nodes have others' hooks: " + some_of(forgotten.hooks) + ")";
  }
  if (!forgotten.pauses.empty()) assumed.push_back("what is paused is resumed: " + some_of(forgotten.pauses));
  if (!forgotten.half_done.empty())
    assumed.push_back("what an agent has begun begins anew, with its cordon taken back: " +
                      some_of(forgotten.half_done));
  return assumed;
}

}  // namespace haulout::rehearse
