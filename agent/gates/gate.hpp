// The gates that the agent can judge by itself: window, pauses and reboot brake, each as a row with its reason. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/gates/pause.hpp"
#include "agent/gates/reboot_brake.hpp"
#include "agent/gates/window.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

struct Gate {
  std::string name;  // window, pause-node, pause-pool, pause-cluster, reboot-brake
  bool open = true;
  std::string
      reason{};  // of a closed gate, CamelCase for the label: OutsideWindow, WindowTooShort, Paused, RebootLoop, …
  std::string message{};                 // a sentence for people, open or closed
  std::optional<WallTime> look_again{};  // when time alone may change the answer
  bool operator==(const Gate&) const = default;
};

struct GateInputs {
  WallTime now{};
  Schedule schedule{};
  Duration needed{};  // what an update of this node takes, see duration_history.hpp
  std::string pool = "default";
  std::optional<Pause> node_pause{};
  std::optional<Pause> pool_pause{};
  std::optional<Pause> cluster_pause{};
  std::vector<PastReboot> past{};
  Pending wanted{};
  std::size_t reboots_per_day = default_reboots_per_day;
};

// One row for each gate; the closed ones first, both in the order of their names above.
std::vector<Gate> gates(const GateInputs& inputs);

}  // namespace haulout::agent
