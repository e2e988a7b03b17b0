// All gates of one node together (NodeGates), and the classes of two of them, which list and watch pods or other Nodes:
// blocking pods and fleet health.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/gates/alerts.hpp"
#include "agent/gates/gate.hpp"
#include "agent/gates/gate_keeper.hpp"
#include "agent/gates/pause.hpp"
#include "agent/gates/waiting.hpp"
#include "agent/gates/window.hpp"
#include "agent/node/node_cordon.hpp"
#include "agent/node/pool.hpp"
#include "http/transport.hpp"
#include "k8s/client.hpp"
#include "retry/notifier.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// The gate of --blocking-pod-selector. A node waits while it runs a pod that matches one of the selectors and has not
// finished. Borrows client and rng.
class BlockingPods {
 public:
  BlockingPods(k8s::Client& client, Rng& rng, std::string node, std::vector<std::string> selectors)
      : client_(client),
        rng_(rng),
        node_(std::move(node)),
        selectors_(std::move(selectors)),
        respite_(client.clock(), rng) {}

  // Evaluates the gate. It is closed with BlockedByPod, or with BlockingPodsUnknown if the pods cannot be listed. It is
  // off if there are no selectors. Cancellable.
  boost::asio::awaitable<Gate> judge(TimePoint deadline);
  // Returns when the matching pods differ from those that judge() saw; may return without cause. Cancellable.
  boost::asio::awaitable<void> changed();

 private:
  boost::asio::awaitable<void> changed(std::size_t selector);
  Task<std::vector<k8s::Pod>> list(std::string selector, TimePoint deadline);

  k8s::Client& client_;
  Rng& rng_;
  std::string node_;
  std::vector<std::string> selectors_;
  std::vector<std::set<std::string>> seen_;  // UIDs of matching pods, for each selector, at the last judge()
  Respite respite_;
};

// A rule of the gate "fleet". Pure. `degraded` holds the nodes of the pool whose state label is `degraded`; it may
// include `own`, this node. Closed (UpdateFailedElsewhere) if another node was rebooted for the update that `wanted`
// names and has been degraded since. Nodes that are degraded but healthy (Record::uncordon) do not count. Two updates
// are the same if they have the same version. Without versions, all reasons of `wanted` must be among the reasons of
// that reboot. Open if `wanted` needs no reboot, or names neither a version nor a reason. Open, too, while fewer than
// `halt_after` nodes have failed (--halt-after), if `wanted` names a version.
Gate fleet_gate(const std::vector<k8s::Node>& degraded, const std::string& own, const Pending& wanted,
                std::size_t halt_after = 1);

// A rule of the gate "fleet" that only agents that install updates have, in addition to fleet_gate(). Pure. `nodes`
// holds the nodes of the pool with the label haulout.dev/failed-version; it may include `own`, this node. Closed
// (VersionFailed) if the version that `wanted` names has failed on another node (Record::failed_versions) and has not
// run well there since. Open if it has failed on this node, too: then a person decides whether this node tries it
// again. Open if `wanted` needs nothing or names no version. Open, too, while fewer than `halt_after` nodes have
// failed.
Gate version_gate(const std::vector<k8s::Node>& nodes, const std::string& own, const Pending& wanted,
                  std::size_t halt_after = 1);

// The gate "fleet": this node does not begin an update that has failed on another node of the pool. Reads the other
// nodes and applies one rule to them: fleet_gate() or version_gate(). The slots, not this gate, limit how many nodes
// may be unavailable at a time. Borrows client and rng.
class FleetHealth {
 public:
  using Rule = Gate (*)(const std::vector<k8s::Node>&, const std::string&, const Pending&, std::size_t halt_after);
  // `labels` is the label selector of the nodes to which `rule` is applied.
  FleetHealth(k8s::Client& client, Rng& rng, std::string node, std::string labels, Rule rule)
      : client_(client),
        rng_(rng),
        node_(std::move(node)),
        labels_(std::move(labels)),
        rule_(rule),
        respite_(client.clock(), rng) {
    belong_to({});
  }

  // Sets this node's pool; the gate ignores nodes of other pools. The caller must call changed() again afterwards.
  void belong_to(OwnPool pool);

  // Returns the answer of the rule. If the Nodes cannot be listed, the gate is closed with FleetUnknown; but it is off
  // if the server forbids the list and this object has never been able to list Nodes. Cancellable.
  boost::asio::awaitable<Gate> judge(Pending wanted, std::size_t halt_after, TimePoint deadline);
  // Returns when the selected nodes differ from those that judge() saw; may return without cause. Cancellable.
  boost::asio::awaitable<void> changed();

 private:
  Task<std::vector<k8s::Node>> list(TimePoint deadline);

  k8s::Client& client_;
  Rng& rng_;
  std::string node_;
  std::string labels_;
  Rule rule_;
  OwnPool pool_;
  std::string selector_;
  std::set<std::string> seen_;  // UIDs and failed versions of the selected nodes at the last judge()
  bool was_readable_ = false;
  Respite respite_;
};

struct NodeGatesOptions {
  std::string node;
  std::string ns = "haulout";
  // Returns the pool of this node. Called by each ask(), because the pool may change while the agent runs.
  std::function<OwnPool(const k8s::Node&)> own_pool = [](const k8s::Node&) { return OwnPool{"default"}; };
  Schedule schedule{};
  CordonedNodes cordoned_nodes = CordonedNodes::wait;
  std::size_t reboots_per_day = default_reboots_per_day;  // 0 disables the limit
  bool installs = false;                                  // the agent installs updates (--update)
  // How many nodes must fail with a version until the gate "fleet" closes. An update without a version that nodes share
  // counts as one of its own on each node: it closes at the first failure.
  std::size_t halt_after = 1;
  std::string pin{};  // see pin_gate(); empty: no such gate
  std::vector<std::string> blocking_pod_selectors{};
  AlertOptions alerts{};
};

// All gates of one node: window and black-outs, pauses, a person's cordon, reboot limit, pin, blocking pods, alerts and
// fleet health. Windows and pauses use the API server's clock if it is known, because the node's clock may be wrong.
//
// ask() evaluates the gates that need no request first. It asks servers only if none of these gates is closed, so that
// a node outside its window sends no requests. There are three exceptions: a question for people (`any_time`) asks all
// servers; ask() reads the Node if the two clocks differ by more than a minute and a gate depends on time; and while an
// update is under way (`under_way`), an agent that installs updates also asks whether its version has failed on
// another node, unless a closed gate already gives the update up. Then only that answer, the pauses, a person's cordon
// that is older than the drain, and the pin count.
// Borrows all arguments except the options. Single-threaded.
class NodeGates final : public GateKeeper {
 public:
  // If `prometheus` is null, the alert gate is off.
  NodeGates(k8s::Client& client, Rng& rng, http::Transport* prometheus, NodeGatesOptions options);

  boost::asio::awaitable<GateAnswer> ask(GateQuestion question, TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;
  // Returns the rows of the last ask() that was not `under_way`, for metrics; empty before the first.
  const std::vector<Gate>& last() const { return last_; }

 private:
  // The objects of the API that the last answer depends on. changed() watches them.
  struct Scope {
    bool pauses = false, pods = false, fleet = false, versions = false;
    bool operator==(const Scope&) const = default;
  };

  // Sets the pool for all later requests and watches. A running changed() restarts its watches.
  void belong_to(OwnPool pool);
  // Returns the gates that open and close by time and need no request: the window and the pause of the node.
  std::vector<Gate> timed_gates(const GateQuestion& question, WallTime now) const;
  boost::asio::awaitable<void> ask_others(const GateQuestion& question, TimePoint deadline, std::vector<Gate>& rows,
                                          Scope& scope);

  // Returns how many nodes must fail with the update until the gate "fleet" closes.
  std::size_t halt_after(const GateQuestion& question) const;
  // Returns true if the agent installs updates, and an update waits whose version is known: then version_gate() counts.
  bool by_version(const GateQuestion& question) const;

  k8s::Client& client_;
  Clock& clock_;
  NodeGatesOptions options_;
  OwnPool pool_;
  PauseSource pauses_;
  BlockingPods pods_;
  std::unique_ptr<PrometheusAlerts> alerts_;
  FleetHealth fleet_, versions_;
  Scope scope_;
  Notifier* rescoped_ = nullptr;  // borrowed from a running changed(), which restarts its watches; else null
  std::vector<Gate> last_;
};

}  // namespace haulout::agent
