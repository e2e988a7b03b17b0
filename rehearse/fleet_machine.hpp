// A simulated machine in the rehearsal of a fleet update. It needs one reboot, is down for the assumed time, and runs
// the agent of its Node while it is up, as a kubelet would. Borrows the references in Surroundings.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>

#include "agent/gates/node_gates.hpp"
#include "agent/node/node_status.hpp"
#include "agent/node/pool.hpp"
#include "agent/ports/backend.hpp"
#include "agent/ports/host.hpp"
#include "rehearse/fleet_rehearsal.hpp"
#include "rehearse/node_table.hpp"
#include "retry/notifier.hpp"
#include "sim/cluster.hpp"

namespace haulout::rehearse {

// Time from the boot of a machine to the start of its agent.
inline constexpr Duration agent_start = std::chrono::seconds(15);

class FleetMachine final : public agent::Host, public agent::Backend {
 public:
  struct Surroundings {
    boost::asio::any_io_executor executor;
    sim::Cluster& cluster;
    Clock& clock;
    Rng& rng;
    const FleetInput& input;
    drain::DrainObserver& drains;
    // Called when the node has been drained, has booted, has finished its update or is degraded.
    std::function<void()> moved;
    std::function<void()> going_down;  // called before the drained node reboots
    NodeTable& nodes;
  };
  // `gates` are the options of the gates of this node, the conditions that must be open before its update may begin.
  FleetMachine(k8s::Node node, agent::NodeGatesOptions gates, Surroundings around);

  // Runs the machine from wake() on, and its agent while the machine is up. Returns when the update of one of many
  // nodes is over; otherwise runs until cancelled.
  boost::asio::awaitable<void> live();
  // `one_of_many`: the node is one of a large fleet, of which not all agents run.
  void wake(bool one_of_many);
  // The node waits for its slot from this time on, but its agent is not simulated before wake(). Labels the Node as one
  // of the pool, as its agent would: otherwise it would not count for a limit that is a percentage of the pool.
  void wait_for_turn(WallTime since, const std::string& pool);
  // The node waits as the other one does, for the same reason.
  void tell_as(const FleetNode& other);
  // Returns true if the update of the node has ended: the node is updated and idle, or degraded.
  bool finished() const;
  const FleetNode& story() const { return story_; }

  std::string name() const override { return "rehearsal"; }
  boost::asio::awaitable<agent::Pending> pending(TimePoint deadline) override;
  Task<std::string> booted(TimePoint deadline) override;
  Task<> apply(std::string target, TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;
  Result<std::string> boot_id() override { return boot_id_; }
  Task<agent::MachineStart> started(TimePoint deadline) override;
  std::vector<std::string> reboot_methods() const override { return {"rehearsal"}; }
  Task<> can_reboot(TimePoint deadline) override;
  Task<std::string> blocked_by(TimePoint deadline) override;
  Task<> reboot(std::size_t method, TimePoint deadline) override;
  Task<bool> boot_complete(TimePoint deadline) override;
  Result<> show_ready(bool) override { return {}; }

 private:
  boost::asio::awaitable<void> one_life();
  boost::asio::awaitable<void> until_down();
  void boot();
  std::string version() const;  // to which the rehearsed update leads
  void tell(const agent::Status& status);

  k8s::Node node_;
  agent::NodeGatesOptions gates_;
  Surroundings around_;
  agent::OwnNode own_;
  std::string boot_id_;
  bool awake_ = false;
  bool one_of_many_ = false;
  bool over_ = false;  // the update has ended, and the agent is not needed any more
  bool powered_ = true;
  Notifier power_;
  FleetNode story_;
};

}  // namespace haulout::rehearse
