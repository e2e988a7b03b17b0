// The states of a node on its way through an update, what can happen in them, and where it leads: one table, pure.
//
// A state is a promise about the world, not a step of a program: its duties say what holds while it lasts, and whoever
// enters it (also a restarted agent) establishes them first. So a crash between any two instructions costs nothing but
// time.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace haulout::agent {

enum class State {
  unknown,      // the back end has not answered yet
  idle,         // no reboot is needed
  pending,      // needed; a gate is closed
  waiting,      // gates open; waiting for a turn
  draining,     // turn taken; the pods leave
  ready,        // empty: ready for reboot
  rebooting,    // the reboot has been asked for
  verifying,    // booted; whether the node is Ready with the expected version
  uncordoning,  // well: the own cordon is taken back
  soaking,      // watched for a while before the next node may go
  degraded,     // stopped; a human, or its cause healed
};
inline constexpr std::array all_states{State::unknown,     State::idle,    State::pending,   State::waiting,
                                       State::draining,    State::ready,   State::rebooting, State::verifying,
                                       State::uncordoning, State::soaking, State::degraded};

std::string_view to_string(State state);  // as the label haulout.dev/state has it
std::optional<State> state_of(std::string_view name);

enum class Event {
  answered,           // the back end said yes or no
  needed,             // a reboot is needed or was requested
  not_needed,         // no longer
  gates_open,         // every gate
  gate_closed,        // one of them
  brake,              // a reboot now would be a loop
  turn_taken,         // and confirmed
  turn_lost,          // it is no longer ours
  drained,            // every pod that must leave has vanished
  drain_ended,        // without having drained: blocked, refused, failed
  cordon_lost,        // somebody made the node schedulable
  emptiness_lost,     // a pod that must leave has appeared
  reboot_due,         // proved once more: nothing stands against the reboot
  boot_changed,       // the machine has booted since
  reboot_blocked,     // for now: somebody wants the machine to stay up, or is to reboot it in our place
  reboot_overdue,     // it has not, in time
  reboot_impossible,  // nor by the last method
  boot_unknown,       // it has, and its boot id is the same: no boot of it can be told from the next
  verified,
  not_verified,  // rolled back, not in time, or a hook failed
  uncordoned,    // our cordon is taken back
  soaked,
  hook_failed,  // before the turn would have been given back
  healed,       // the cause of the degradation is gone
};
std::string_view to_string(Event event);

// Whether something of ours is in force during a state. `keep`: as it was found.
enum class Duty { no, yes, keep };

struct Duties {
  Duty turn = Duty::no;
  Duty cordon = Duty::no;    // `yes`: the drain of this state sets it; `no`: taken back
  bool shows_ready = false;  // the ready file
};
Duties duties_of(State state);

struct Row {
  State from;
  Event event;
  State to;
};
std::span<const Row> transitions();
// Nothing: the event has no meaning in that state, and the program has a bug.
std::optional<State> next_state(State from, Event event);

}  // namespace haulout::agent
