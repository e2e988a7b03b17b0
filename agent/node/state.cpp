#include "agent/node/state.hpp"

#include <algorithm>

namespace haulout::agent {

namespace {

struct StateRow {
  State state;
  std::string_view name;
  Duties duties;
};

constexpr std::array states{
    StateRow{State::unknown, "unknown", {Duty::no, Duty::no}},
    StateRow{State::idle, "idle", {Duty::no, Duty::no}},
    StateRow{State::pending, "pending", {Duty::no, Duty::no}},
    StateRow{State::waiting, "waiting", {Duty::keep, Duty::no}},
    StateRow{State::draining, "draining", {Duty::yes, Duty::yes}},
    StateRow{State::updating, "updating", {Duty::yes, Duty::yes}},
    StateRow{State::ready, "ready", {Duty::yes, Duty::yes, true}},
    StateRow{State::rebooting, "rebooting", {Duty::yes, Duty::yes}},
    StateRow{State::verifying, "verifying", {Duty::yes, Duty::yes}},
    StateRow{State::uncordoning, "uncordoning", {Duty::yes, Duty::no}},
    StateRow{State::soaking, "soaking", {Duty::yes, Duty::no}},
    // A degraded node keeps its slot, so that the fleet does not continue with other updates. If the machine may be
    // unhealthy, it also keeps its cordon. If only the reboot failed, the agent has uncordoned the node.
    StateRow{State::degraded, "degraded", {Duty::keep, Duty::keep}},
};

constexpr std::array rows{
    Row{State::unknown, Event::answered, State::idle},

    Row{State::idle, Event::needed, State::pending},

    Row{State::pending, Event::not_needed, State::idle},
    Row{State::pending, Event::gates_open, State::waiting},
    Row{State::pending, Event::brake, State::degraded},
    // With --update=before-drain the agent writes the image in the state `pending`. Both events mean that this failed.
    Row{State::pending, Event::update_failed, State::pending},
    Row{State::pending, Event::update_given_up, State::degraded},

    Row{State::waiting, Event::not_needed, State::pending},
    Row{State::waiting, Event::gate_closed, State::pending},
    Row{State::waiting, Event::turn_taken, State::draining},

    Row{State::draining, Event::drained, State::ready},
    Row{State::draining, Event::update_due, State::updating},
    Row{State::draining, Event::drain_ended, State::pending},
    Row{State::draining, Event::cordon_lost, State::pending},
    Row{State::draining, Event::gate_closed, State::pending},
    Row{State::draining, Event::turn_lost, State::pending},
    Row{State::draining, Event::boot_changed, State::verifying},
    // The back end could not put the new version in place, which comes before the first eviction.
    Row{State::draining, Event::update_failed, State::pending},
    Row{State::draining, Event::update_given_up, State::degraded},

    Row{State::updating, Event::installed, State::ready},
    Row{State::updating, Event::reboot_not_needed, State::verifying},
    Row{State::updating, Event::update_failed, State::pending},
    Row{State::updating, Event::update_given_up, State::degraded},
    // The machine went down during the installation. Pods must not run beside packages that are installed in part, so
    // the agent finishes the installation first.
    Row{State::updating, Event::boot_changed, State::updating},
    // The following four events occur only before the installation begins, when the agent proves that the node is
    // drained.
    Row{State::updating, Event::emptiness_lost, State::draining},
    Row{State::updating, Event::cordon_lost, State::pending},
    Row{State::updating, Event::turn_lost, State::pending},
    Row{State::updating, Event::gate_closed, State::pending},

    Row{State::ready, Event::reboot_due, State::rebooting},
    Row{State::ready, Event::emptiness_lost, State::draining},
    Row{State::ready, Event::cordon_lost, State::pending},
    Row{State::ready, Event::turn_lost, State::pending},
    Row{State::ready, Event::gate_closed, State::pending},
    Row{State::ready, Event::not_needed, State::pending},
    Row{State::ready, Event::boot_changed, State::verifying},
    // Another program rebooted the machine, and the boot id did not change, so the agent cannot verify the update. The
    // other program would reboot the machine each time that the node becomes ready. So a person has to look.
    Row{State::ready, Event::boot_unknown, State::degraded},

    Row{State::rebooting, Event::boot_changed, State::verifying},
    // A blocked reboot waits in `ready`: there the agent watches everything that matters, so it can wait for hours at
    // little cost.
    Row{State::rebooting, Event::reboot_blocked, State::ready},
    Row{State::rebooting, Event::reboot_overdue, State::rebooting},
    Row{State::rebooting, Event::reboot_impossible, State::degraded},
    Row{State::rebooting, Event::boot_unknown, State::degraded},
    // The following four events occur only before the reboot is requested, when the agent proves once more that the
    // node is ready.
    Row{State::rebooting, Event::emptiness_lost, State::draining},
    Row{State::rebooting, Event::cordon_lost, State::pending},
    Row{State::rebooting, Event::turn_lost, State::pending},
    Row{State::rebooting, Event::gate_closed, State::pending},

    Row{State::verifying, Event::verified, State::uncordoning},
    Row{State::verifying, Event::not_verified, State::degraded},

    Row{State::uncordoning, Event::uncordoned, State::soaking},
    Row{State::uncordoning, Event::boot_changed, State::verifying},

    Row{State::soaking, Event::soaked, State::idle},
    Row{State::soaking, Event::hook_failed, State::degraded},
    // The machine has rebooted again, so the node has not run well for the whole soak time.
    Row{State::soaking, Event::boot_changed, State::verifying},

    // After another boot, or when the node turns out to be healthy, the agent starts the verification again.
    Row{State::degraded, Event::boot_changed, State::verifying},
    Row{State::degraded, Event::healed, State::verifying},
    Row{State::degraded, Event::needed, State::pending},
    Row{State::degraded, Event::not_needed, State::idle},
};

constexpr std::array event_names{
    std::pair{Event::answered, std::string_view("answered")},
    std::pair{Event::needed, std::string_view("needed")},
    std::pair{Event::not_needed, std::string_view("not-needed")},
    std::pair{Event::gates_open, std::string_view("gates-open")},
    std::pair{Event::gate_closed, std::string_view("gate-closed")},
    std::pair{Event::brake, std::string_view("brake")},
    std::pair{Event::turn_taken, std::string_view("turn-taken")},
    std::pair{Event::turn_lost, std::string_view("turn-lost")},
    std::pair{Event::drained, std::string_view("drained")},
    std::pair{Event::update_due, std::string_view("update-due")},
    std::pair{Event::drain_ended, std::string_view("drain-ended")},
    std::pair{Event::installed, std::string_view("installed")},
    std::pair{Event::reboot_not_needed, std::string_view("reboot-not-needed")},
    std::pair{Event::update_failed, std::string_view("update-failed")},
    std::pair{Event::update_given_up, std::string_view("update-given-up")},
    std::pair{Event::cordon_lost, std::string_view("cordon-lost")},
    std::pair{Event::emptiness_lost, std::string_view("emptiness-lost")},
    std::pair{Event::reboot_due, std::string_view("reboot-due")},
    std::pair{Event::boot_changed, std::string_view("boot-changed")},
    std::pair{Event::reboot_blocked, std::string_view("reboot-blocked")},
    std::pair{Event::reboot_overdue, std::string_view("reboot-overdue")},
    std::pair{Event::reboot_impossible, std::string_view("reboot-impossible")},
    std::pair{Event::boot_unknown, std::string_view("boot-unknown")},
    std::pair{Event::verified, std::string_view("verified")},
    std::pair{Event::not_verified, std::string_view("not-verified")},
    std::pair{Event::uncordoned, std::string_view("uncordoned")},
    std::pair{Event::soaked, std::string_view("soaked")},
    std::pair{Event::hook_failed, std::string_view("hook-failed")},
    std::pair{Event::healed, std::string_view("healed")},
};

const StateRow& row_of(State state) {
  return *std::find_if(states.begin(), states.end(), [&](const StateRow& row) { return row.state == state; });
}

}  // namespace

std::string_view to_string(State state) {
  return row_of(state).name;
}

std::optional<State> state_of(std::string_view name) {
  for (const StateRow& row : states)
    if (row.name == name) return row.state;
  return std::nullopt;
}

std::string_view to_string(Event event) {
  return std::find_if(event_names.begin(), event_names.end(), [&](const auto& row) { return row.first == event; })
      ->second;
}

Duties duties_of(State state) {
  return row_of(state).duties;
}

std::span<const Row> transitions() {
  return rows;
}

std::optional<State> next_state(State from, Event event) {
  for (const Row& row : rows)
    if (row.from == from && row.event == event) return row.to;
  return std::nullopt;
}

}  // namespace haulout::agent
