// The states of a node during an update, their events and their transitions, as one table. Pure.
//
// A state says what is true in the cluster and on the machine, not which step the program executes. Its duties say what
// must be in force during the state. An agent that enters a state, also after a restart, establishes its duties first.
// Therefore a crash between any two instructions costs only time.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace haulout::agent {

enum class State {
  unknown,    // the back end has not answered yet
  idle,       // no reboot is needed
  pending,    // a reboot is needed; the agent waits for the gates, or for its backoff
  waiting,    // all gates are open; the agent waits for a slot
  draining,   // the node holds a slot; its pods are evicted
  updating,   // the node is drained; the agent installs the updates of its operating system (--update)
  ready,      // the node is drained and may be rebooted
  rebooting,  // the reboot is due: about to be requested, or requested
  // The machine has booted, or was updated without a reboot; the agent checks that the node is Ready and runs the
  // expected version.
  verifying,
  uncordoning,  // the node is healthy; the agent uncordons it
  soaking,      // the agent observes the node for a while before it releases the slot
  degraded,     // the update failed; a person ends the state, or the cause is resolved
};
inline constexpr std::array all_states{State::unknown,   State::idle,        State::pending, State::waiting,
                                       State::draining,  State::updating,    State::ready,   State::rebooting,
                                       State::verifying, State::uncordoning, State::soaking, State::degraded};

inline constexpr std::string_view state_label = "haulout.dev/state";
std::string_view to_string(State state);  // as in the label
std::optional<State> state_of(std::string_view name);

enum class Event {
  answered,     // the back end has answered yes or no, or a person requested a reboot
  needed,       // a reboot or an update is needed, or a person requested a reboot
  not_needed,   // neither is needed any more
  gates_open,   // all gates are open
  gate_closed,  // at least one gate is closed
  brake,        // the reboot limit forbids another reboot now (RebootLoop or TooManyReboots)
  turn_taken,   // the slot is taken and confirmed
  turn_lost,    // the node does not hold its slot any more
  drained,      // every pod that must leave is deleted
  update_due,   // every pod that must leave is deleted, and the agent installs updates before it asks for a reboot
  // The drain ended as blocked, refused or failed, or a hook failed.
  drain_ended,
  installed,          // the updates are installed, and the machine has to be rebooted
  reboot_not_needed,  // the updates are installed, and no reboot is needed
  update_failed,      // the updates were not installed, for now; the agent tries again later
  update_given_up,    // the updates were not installed, so often that a person has to look
  cordon_lost,        // another client made the node schedulable
  emptiness_lost,     // a pod that must leave has appeared
  reboot_due,         // the last proof found nothing against the reboot
  boot_changed,       // the machine has booted since the last transition
  // The reboot is blocked for now, or the configuration leaves it to another program.
  reboot_blocked,
  reboot_overdue,  // the machine did not go down before the deadline; the next method follows
  // The agent must not request another reboot: no method is left, or the reboot limit forbids it.
  reboot_impossible,
  // The machine has rebooted, and its boot id has not changed: the agent cannot distinguish its boots.
  boot_unknown,
  verified,
  not_verified,  // rolled back, past the deadline, or a hook failed
  uncordoned,    // the agent has uncordoned the node
  soaked,
  hook_failed,  // a hook failed before the release of the slot
  healed,       // the cause of the degradation is resolved
};
std::string_view to_string(Event event);

// Whether a slot or a cordon must be in force during a state. `keep`: the agent leaves it as it is.
enum class Duty { no, yes, keep };

// What must be in force during a state.
struct Duties {
  Duty turn = Duty::no;
  Duty cordon = Duty::no;    // `yes`: in force, set by the drain; `no`: the agent uncordons
  bool shows_ready = false;  // the ready file exists during this state
};
Duties duties_of(State state);

// A transition: the state `from` and the event lead to the state `to`.
struct Row {
  State from;
  Event event;
  State to;
};
std::span<const Row> transitions();
// Returns the state after the event. Returns nothing if the event is not possible in that state; that would be a bug.
std::optional<State> next_state(State from, Event event);

}  // namespace haulout::agent
