// Port: the gates of a node's update. Each gate is a row that says whether it is open, with a message. The agent
// evaluates the gates before it tries to take a slot, again when it has the slot, and during a drain. It borrows the
// GateKeeper.
#pragma once

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>
#include <vector>

#include "agent/node/record.hpp"
#include "agent/ports/backend.hpp"
#include "k8s/objects.hpp"

namespace haulout::agent {

struct Gate {
  enum class Verdict {
    open,
    closed,     // also if the gate cannot be evaluated
    off,        // not configured, or the credential lacks the permission to evaluate it
    not_asked,  // not evaluated: another gate is closed, or what the gate depends on could not be read
  };
  // What a closed gate does in addition to keeping an update from beginning.
  enum class Effect {
    waits,     // nothing: a current drain continues
    gives_up,  // the agent gives up a current drain and leaves the state `ready`
    degrades,  // the node becomes degraded: a person has to look
  };

  // One of window, pause-node, pause-pool, pause-cluster, cordon, reboot-brake, pin, blocking-pods, prometheus, fleet
  std::string name{};
  Verdict verdict = Verdict::open;
  std::string reason{};                  // of a closed gate, in CamelCase for the label: OutsideWindow, Paused, …
  std::string message{};                 // one sentence, whether the gate is open or closed
  std::optional<WallTime> look_again{};  // when the gate may open or close without an event, by this machine's clock
  Effect effect = Effect::waits;
  // Of a closed gate: the time before which it does not open, as the schedule or the person says it, by the server's
  // clock. Nothing if no such time is known.
  std::optional<WallTime> opens{};
  bool closed() const { return verdict == Verdict::closed; }
  bool operator==(const Gate&) const = default;
};

// The answer of all gates to one question.
struct GateAnswer {
  std::vector<Gate> gates{};  // one row per gate, the closed ones first

  bool open() const { return first_closed() == nullptr; }
  const Gate* first_closed() const {
    return find([](const Gate& gate) { return gate.closed(); });
  }
  // Returns the first closed gate with this effect; null if there is none.
  const Gate* closed_with(Gate::Effect effect) const {
    return find([&](const Gate& gate) { return gate.closed() && gate.effect == effect; });
  }
  // Return the reason of the first closed gate, and the messages of all closed gates.
  std::string reason() const { return open() ? std::string() : first_closed()->reason; }
  std::string message() const {
    std::string all;
    for (const Gate& gate : gates)
      if (gate.closed()) all += (all.empty() ? "" : "; ") + gate.message;
    return all;
  }
  // Returns the earliest time at which a closed gate may open without an event.
  std::optional<WallTime> look_again() const {
    std::optional<WallTime> earliest;
    for (const Gate& gate : gates)
      if (gate.closed() && gate.look_again && (!earliest || *gate.look_again < *earliest)) earliest = gate.look_again;
    return earliest;
  }
  // Returns the time before which not all of the gates are open; nothing if no such time is known.
  std::optional<WallTime> opens() const {
    std::optional<WallTime> latest;
    for (const Gate& gate : gates)
      if (gate.closed() && gate.opens && (!latest || *gate.opens > *latest)) latest = gate.opens;
    return latest;
  }

 private:
  template <class Predicate>
  const Gate* find(Predicate holds) const {
    const auto found = std::find_if(gates.begin(), gates.end(), holds);
    return found == gates.end() ? nullptr : &*found;
  }
};

// What the gates are asked: whether this node may begin, or continue, its update.
struct GateQuestion {
  enum class When {
    before_turn,  // the node has no slot yet; the answer of Prometheus may be some seconds old
    with_turn,    // the node has a slot; everything is asked anew
    // The update is under way: from the drain until the reboot. Only gates that can end it are evaluated: when closed,
    // they have the effect `gives_up`. A closed row with another effect means that a gate could not be evaluated; it
    // prevents the reboot, but does not end the update.
    under_way,
    any_time,  // for people; every gate, even if others are closed
  };
  k8s::Node node{};
  Record record{};
  Pending pending{};
  bool requested = false;           // a person has requested this reboot
  bool versions_are_shared = true;  // the version of `pending` means the same on other nodes (Backend)
  When when = When::before_turn;
};

class GateKeeper {
 public:
  virtual ~GateKeeper() = default;
  // Evaluates the gates. Never fails: a gate that cannot be evaluated is closed, and its message says so. Cancellable.
  virtual boost::asio::awaitable<GateAnswer> ask(GateQuestion question, TimePoint deadline) = 0;
  // Returns when a gate that was closed in the last ask() may have opened, or when a pause may have begun; changes of
  // the Node do not count. May return without cause. Only one call at a time; ask() may be called meanwhile.
  // Cancellable.
  virtual boost::asio::awaitable<void> changed() = 0;
};

}  // namespace haulout::agent
