// A machine of the simulated fleet. Keeps what outlives its agents: boot id, installed version, and the version that
// the operating system wants. Implements the agent's ports, and starts an agent whenever the machine is up, as the
// kubelet would. No I/O. Coroutines can be cancelled. Borrows everything in `Surroundings`.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/lifecycle/agent.hpp"
#include "agent/slots/lease_slots.hpp"
#include "sim/call.hpp"
#include "tests/fleet/delay_lock.hpp"
#include "tests/fleet/fake_updates.hpp"
#include "tests/support/test_cluster.hpp"

namespace haulout::fleet {

// How a machine behaves, including its faults. The defaults describe a machine that works.
struct MachinePlan {
  std::string version = "1.0";
  std::string target = "1.1";  // empty means that no update is wanted
  std::vector<std::string> reasons{"linux-image"};
  Duration down = std::chrono::seconds(50);
  Duration agent_starts =
      std::chrono::seconds(15);  // at least this long from the end of one agent to the start of the next
  std::vector<std::string> methods{"logind", "systemd"};
  unsigned ignored_reboots = 0;  // number of requests that are accepted without effect
  unsigned refused_reboots = 0;
  unsigned silent_reboots = 0;  // number of requests without an answer and without effect
  unsigned lost_answers = 0;    // number of requests whose answer is lost; the machine goes down a moment later
  Duration reboot_takes{};      // reboot() takes this long before the machine goes down; no reboot after its deadline
  Duration late_by{};           // delay from the accepted request until the machine goes down
  bool rolls_back = false;      // boots the old version again
  bool own_versions = false;    // its versions mean nothing on other machines
  std::string lands_on{};       // boots this version instead of the target; empty boots the target
  Duration boot_takes{};        // time from the boot until the operating system reports it complete
  bool must_apply = false;      // boots the new version only after the agent has called apply()
  unsigned failing_applies = 0;
  Duration apply_takes{};
  bool stays_down = false;         // never boots again
  bool still_wanted = false;       // needs the same reboot again after each reboot
  bool unknown = false;            // the back end cannot find out whether it needs a reboot
  bool version_unknown = false;    // the back end cannot find out which version runs
  std::size_t agents = 1;          // number of agents that run at the same time
  bool agents_differ = false;      // each agent has an authority of its own
  Duration delays_shutdown{};      // logind delays a shutdown no longer than this; 0 means that there is no logind
  std::string no_delay{};          // why logind refuses a delay lock; empty means that it grants it
  bool others_delay = false;       // others delay a shutdown, too, for all of `delays_shutdown`
  bool blocks_when_asked = false;  // another program blocks the reboot at this moment: logind refuses
  bool same_boot_id = false;       // a container: the agent always reads the host's boot id
  bool kubelet_knows = false;      // with `same_boot_id`: the kubelet reads the machine's own boot id
  bool start_hidden = false;       // the start time of the first process cannot be read
  Duration kubelet_late{};         // the Node is Ready at once after a boot, and shows the new boot id this much later
  // After each boot the Node gets a taint readiness.k8s.io/* so much later, and keeps it for so long.
  Duration readiness_late{};
  Duration readiness_takes{};
  // False reports to the agent, and faults of the ready file.
  bool claims_a_boot = false;        // reports a new boot id after a reboot request, without a boot
  bool keeps_ready_file = false;     // the ready file is never removed
  bool ready_file_fails = false;     // the ready file can be neither written nor removed
  std::vector<std::string> hooks{};  // executables, for example "before-drain/10-a"
  std::set<std::string> failing_hooks{};
  Duration hook_takes = std::chrono::seconds(3);
  UpdatesPlan updates{};
};

// The taint of MachinePlan::readiness_takes. node-readiness-controller names its taints like this.
inline constexpr const char* readiness_taint = "readiness.k8s.io/NetworkReady";
// Another one, for Nodes that have it all the time.
inline constexpr const char* old_readiness_taint = "readiness.k8s.io/GPUReady";

// Kills the agent at one of its requests: before the server receives it, or with `after`, when the server has carried
// it out. A watch is always killed before.
struct CrashPoint {
  std::size_t request = SIZE_MAX;  // counted over all agents that the machine has had
  bool after = false;
};

class Machine;

// Called at the moment at which an agent of any machine does something.
class MachineObserver {
 public:
  virtual ~MachineObserver() = default;
  virtual void life_began(Machine&) {}
  virtual void before_request(Machine&, const sim::Call&) {}
  // `answer` is null if the answer was lost.
  virtual void after_request(Machine&, const sim::Call&, TimePoint /*sent*/, const http::Response* /*answer*/) {}
  virtual void reboot_asked(Machine&, const std::string& /*method*/) {}
  virtual void going_down(Machine&, bool /*by_agent*/) {}
  virtual void ready_shown(Machine&) {}
  virtual void installation_began(Machine&) {}
};

class Machine final : public agent::Host, public agent::Backend, public agent::HookPrograms {
 public:
  struct Surroundings {
    sim::TestCluster& cluster;
    Clock& clock;
    Rng& rng;
    boost::asio::any_io_executor executor;
    drain::DrainObserver& drain_observer;
    MachineObserver& observer;
    agent::LeaseSlotsOptions slots;
    agent::AgentOptions agent;
    // Creates the gates of an agent. Called each time an agent starts.
    std::function<std::unique_ptr<agent::GateKeeper>(k8s::Client&, const std::string& node)> gates;
    std::function<void(const std::string&)> trace;
    // Transport between the agents and the API server; null connects them directly.
    http::Transport* way = nullptr;
    // If set, wraps the agents' slots.
    std::function<std::unique_ptr<agent::Slots>(agent::Slots&)> decorate_slots{};
  };
  Machine(std::string name, MachinePlan plan, Surroundings surroundings);

  // Starts an agent whenever the machine is up and the last agent has ended. Runs until it is cancelled.
  boost::asio::awaitable<void> live();
  void crash_at(CrashPoint point) { crashes_.push_back(point); }
  // Ends the agent like SIGKILL. The supervisor then starts another one.
  void kill_agent();
  // A person reboots the machine without a shutdown.
  void power_cycle();
  // A person runs `reboot`. The second function calls it off, and the machine stays up.
  void shut_down();
  void call_shutdown_off();
  bool shutting_down() const { return delay_.preparing(); }
  TimePoint shut_down_last{};  // when a person last ran `reboot`
  // Replaces the machine by another one of the same name, with a new Node and another boot id.
  void replace();
  // A person repairs the machine: its faults end, and it boots if it is down.
  void repair();
  // Another program of this name blocks reboots; an empty name ends the block.
  void block(std::string who) { blocked_by_ = std::move(who); }
  // From now on the operating system wants this version; empty means that it wants no update.
  void want(std::string target);
  // Returns true if /run/haulout/ready exists.
  bool shows_ready() const { return shows_ready_; }

  const std::string& node() const { return node_; }
  MachinePlan& plan() { return plan_; }
  const MachinePlan& plan() const { return plan_; }
  // Options of the slots for the agents that start from now on.
  agent::LeaseSlotsOptions& slots() { return world_.slots; }
  // Likewise, all other options.
  agent::AgentOptions& options() { return world_.agent; }
  const std::string& version() const { return plan_.version; }
  // The version that the agent has put in place with apply().
  const std::string& applied() const { return applied_; }
  std::size_t boots() const { return boots_; }
  std::size_t requests() const { return requests_; }
  // When each request was sent.
  const std::vector<TimePoint>& request_times() const { return request_times_; }
  bool powered() const { return powered_; }
  // Returns true while an agent of this machine runs.
  bool lives() const { return lives_ && !killed_; }
  // The boot id that the kubelet reports.
  std::string kubelet_boot_id() const;
  // The last reboot request that was accepted or got no answer, and the boot id at that time.
  struct Accepted {
    TimePoint at{};
    std::string method, boot_id;
    std::string node_uid;  // UID of the Node whose record notes the request
    bool operator==(const Accepted&) const = default;
  };
  const std::optional<Accepted>& accepted() const { return accepted_; }
  const agent::Status& status() const { return status_; }
  bool wants_update() const { return (!plan_.target.empty() && plan_.version != plan_.target) || updates_.wanted(); }
  FakeUpdates& updates() { return updates_; }
  const FakeUpdates& updates() const { return updates_; }

  std::string name() const override { return "fake"; }
  bool versions_are_shared() const override { return !plan_.own_versions; }
  boost::asio::awaitable<agent::Pending> pending(TimePoint deadline) override;
  Task<std::string> booted(TimePoint deadline) override;
  Task<> apply(std::string target, TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;
  Result<std::string> boot_id() override;
  Task<agent::MachineStart> started(TimePoint deadline) override;
  std::vector<std::string> reboot_methods() const override { return plan_.methods; }
  Task<> can_reboot(TimePoint deadline) override;
  Task<std::string> blocked_by(TimePoint deadline) override;
  Task<> reboot(std::size_t method, TimePoint deadline) override;
  Task<bool> boot_complete(TimePoint deadline) override;
  Result<> show_ready(bool ready) override;
  Result<agent::HookFiles> list(agent::HookPoint point) override;
  Task<> run(agent::HookPoint point, std::string name, agent::HookEnvironment environment, TimePoint deadline) override;

  bool replaced = false;  // another machine has its name; this one has no Node any more
  std::function<void(const agent::Status&)> on_told = [](const agent::Status&) {};
  // Called when the agent reads the machine's start: after it has proved that the node may be rebooted, and before it
  // requests the reboot.
  std::function<void()> on_marks = [] {};
  std::function<void()> on_asked = [] {};  // called on a reboot request, before it has any effect
  std::function<void()> on_ready = [] {};  // called after the ready file has appeared
  std::vector<std::string> asked;          // methods of all reboot requests
  std::vector<std::string> hooks_run;
  std::function<void(const std::string& hook)> on_hook = [](const std::string&) {};

 private:
  class Wire;  // the transport between an agent and its API server
  boost::asio::awaitable<void> one_life(std::size_t number);
  boost::asio::awaitable<void> until_killed();
  void expect_shown(const agent::Status& status) const;
  void go_down(bool by_agent);
  void boot();
  void tell_kubelet();
  void set_readiness_taint();
  std::string own_boot_id() const { return node_ + "-boot-" + std::to_string(boots_); }
  void go_down_later(Duration delay);
  void power_cycle_when_shut_down();

  std::string node_;
  MachinePlan plan_;
  Surroundings world_;
  Notifier power_;
  Notifier news_;
  DelayLock delay_;
  FakeUpdates updates_;
  bool powered_ = true;
  bool killed_ = false;
  bool lives_ = false;
  bool shows_ready_ = false;
  std::string applied_;
  std::string blocked_by_;
  std::size_t boots_ = 0;
  TimePoint booted_at_{};
  std::size_t requests_ = 0;
  std::size_t lie_ = 0;
  std::vector<TimePoint> request_times_;
  std::vector<CrashPoint> crashes_;
  std::optional<Accepted> accepted_;
  agent::OwnNode own_;
  agent::Status status_;
};

}  // namespace haulout::fleet
