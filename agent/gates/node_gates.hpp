// The gates of one node, joined: window and black-outs, pauses, a person's cordon, reboot brake, blocking pods, alerts,
// fleet health. Windows and pauses are judged by the server's clock as far as it is known: the node's may be wrong.
//
// What costs nothing is judged first; servers are asked only while nothing of that is closed, so that a node outside
// its window asks nobody. While a drain is under way only the pauses have a say, and a person's cordon that was there
// before. Borrows all but the options. One
// thread.
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
  // Asked with each question: the pool of a node may change under the agent.
  std::function<OwnPool(const k8s::Node&)> own_pool = [](const k8s::Node&) { return OwnPool{"default"}; };
  Schedule schedule{};
  CordonedNodes cordoned_nodes = CordonedNodes::wait;
  std::size_t reboots_per_day = default_reboots_per_day;  // 0: no limit
  std::vector<std::string> blocking_pod_selectors{};
  AlertOptions alerts{};
};

class NodeGates final : public GateKeeper {
 public:
  // No `prometheus`: alerts hold nobody back.
  NodeGates(k8s::Client& client, Rng& rng, http::Transport* prometheus, NodeGatesOptions options);

  boost::asio::awaitable<GateAnswer> ask(GateQuestion question, TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;
  // The last answer that was about beginning an update, for metrics; empty before the first.
  const std::vector<Gate>& last() const { return last_; }

 private:
  // What an answer rests on: what changed() follows.
  struct Scope {
    bool pauses = false, pods = false, fleet = false;
    bool operator==(const Scope&) const = default;
  };

  // What is asked about the pool, and followed, is about this one from now on.
  void belong_to(OwnPool pool);
  // Those that the time of the day opens and closes, and that need no answer: window and pause of the node.
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
  Notifier* rescoped_ = nullptr;  // of changed(), while it waits
  std::vector<Gate> last_;
};

}  // namespace haulout::agent
