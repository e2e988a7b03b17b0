// Port: what may hold a node's update back, each as a row that says why. Asked before a turn is sought, again once it
// is taken, and while a drain is under way.
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
    closed,     // also when nobody can judge it
    off,        // not configured, or not permitted to be judged
    not_asked,  // others are closed, or it has no say now
  };
  // What a closed gate does beyond keeping an update from beginning.
  enum class Effect {
    waits,     // nothing: a drain under way goes on
    gives_up,  // a drain under way is given up, and `ready` is withdrawn
    degrades,  // only a person may go on
  };

  // window, pause-node, pause-pool, pause-cluster, cordon, reboot-brake, blocking-pods, prometheus, fleet
  std::string name{};
  Verdict verdict = Verdict::open;
  std::string reason{};                  // of a closed gate, CamelCase for the label: OutsideWindow, Paused, …
  std::string message{};                 // a sentence for people, whatever the verdict
  std::optional<WallTime> look_again{};  // by the own clock: when time alone may change the answer
  Effect effect = Effect::waits;
  bool closed() const { return verdict == Verdict::closed; }
  bool operator==(const Gate&) const = default;
};

struct GateAnswer {
  std::vector<Gate> gates{};  // one row each, the closed ones first

  bool open() const { return first_closed() == nullptr; }
  const Gate* first_closed() const {
    return find([](const Gate& gate) { return gate.closed(); });
  }
  // A closed gate that does more than wait.
  const Gate* closed_with(Gate::Effect effect) const {
    return find([&](const Gate& gate) { return gate.closed() && gate.effect == effect; });
  }
  // The reason of the first closed gate, and the messages of all of them.
  std::string reason() const { return open() ? std::string() : first_closed()->reason; }
  std::string message() const {
    std::string all;
    for (const Gate& gate : gates)
      if (gate.closed()) all += (all.empty() ? "" : "; ") + gate.message;
    return all;
  }
  // The earliest time at which a closed gate may open by itself.
  std::optional<WallTime> look_again() const {
    std::optional<WallTime> earliest;
    for (const Gate& gate : gates)
      if (gate.closed() && gate.look_again && (!earliest || *gate.look_again < *earliest)) earliest = gate.look_again;
    return earliest;
  }

 private:
  template <class Predicate>
  const Gate* find(Predicate holds) const {
    const auto found = std::find_if(gates.begin(), gates.end(), holds);
    return found == gates.end() ? nullptr : &*found;
  }
};

struct GateQuestion {
  enum class When {
    before_turn,  // answers of other servers may be some seconds old
    with_turn,    // everything anew
    under_way,    // only the gates that give a drain up
    any_time,     // every gate, whatever the others say: for people
  };
  k8s::Node node{};
  Record record{};
  Pending pending{};
  bool requested = false;  // a person has asked for this reboot
  When when = When::before_turn;
};

class GateKeeper {
 public:
  virtual ~GateKeeper() = default;
  // Never fails: a gate that nobody can judge is a closed one that says so. Cancellable.
  virtual boost::asio::awaitable<GateAnswer> ask(GateQuestion question, TimePoint deadline) = 0;
  // Returns when what ask() looked at last, the Node apart, may have changed; may return without cause. One at a time;
  // ask() may be called meanwhile. Cancellable.
  virtual boost::asio::awaitable<void> changed() = 0;
};

}  // namespace haulout::agent
