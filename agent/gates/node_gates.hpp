// All gates of one node: window and black-outs, pauses, a person's cordon, reboot limit, blocking pods, alerts and
// fleet health. Windows and pauses use the API server's clock if it is known, because the node's clock may be wrong.
//
// ask() evaluates the gates that need no request first. It asks servers only if none of these gates is closed, so that
// a node outside its window sends no requests. There are two exceptions: a question for people (`any_time`) asks all
// servers, and ask() reads the Node if the two clocks differ by more than a minute and a gate depends on time. During a
// drain only the pauses count, and a person's cordon that is older than the drain. Borrows all arguments but the
// options. Single-threaded.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/gates/alerts.hpp"
#include "agent/gates/blocking_pods.hpp"
#include "agent/gates/fleet_health.hpp"
#include "agent/gates/gate_keeper.hpp"
#include "agent/gates/pause_source.hpp"
#include "agent/gates/prometheus.hpp"
#include "agent/gates/reboot_brake.hpp"
#include "agent/gates/window.hpp"
#include "agent/node/node_cordon.hpp"
#include "agent/node/own_pool.hpp"
#include "http/transport.hpp"
#include "k8s/client.hpp"
#include "retry/notifier.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

struct NodeGatesOptions {
  std::string node;
  std::string ns = "haulout";
  // Called by each ask(), because the pool of a node may change while the agent runs.
  std::function<OwnPool(const k8s::Node&)> own_pool = [](const k8s::Node&) { return OwnPool{"default"}; };
  Schedule schedule{};
  CordonedNodes cordoned_nodes = CordonedNodes::wait;
  std::size_t reboots_per_day = default_reboots_per_day;  // 0 disables the limit
  std::vector<std::string> blocking_pod_selectors{};
  AlertOptions alerts{};
};

class NodeGates final : public GateKeeper {
 public:
  // If `prometheus` is null, the alert gate is off.
  NodeGates(k8s::Client& client, Rng& rng, http::Transport* prometheus, NodeGatesOptions options);

  boost::asio::awaitable<GateAnswer> ask(GateQuestion question, TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;
  // The rows of the last ask() that was not `under_way`, for metrics; empty before the first.
  const std::vector<Gate>& last() const { return last_; }

 private:
  // The objects that the last answer depends on. changed() watches them.
  struct Scope {
    bool pauses = false, pods = false, fleet = false;
    bool operator==(const Scope&) const = default;
  };

  // Sets the pool for all later requests and watches. A running changed() starts its watches again.
  void belong_to(OwnPool pool);
  // The gates that open and close by time and need no request: the window and the pause of the node.
  std::vector<Gate> timed_gates(const GateQuestion& question, WallTime now) const;
  boost::asio::awaitable<void> ask_others(const GateQuestion& question, TimePoint deadline, std::vector<Gate>& rows,
                                          Scope& scope);

  k8s::Client& client_;
  Clock& clock_;
  NodeGatesOptions options_;
  OwnPool pool_;
  PauseSource pauses_;
  BlockingPods pods_;
  std::unique_ptr<PrometheusAlerts> alerts_;
  FleetHealth fleet_;
  Scope scope_;
  Notifier* rescoped_ = nullptr;  // borrowed from a running changed(), which restarts its watches; else null
  std::vector<Gate> last_;
};

}  // namespace haulout::agent
