// A machine of the simulated fleet: what outlives its agents (boot id, installed version, what the OS wants), the port
// implementations on it, and a supervisor that starts an agent whenever the machine is up, as the kubelet would.
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
#include "sim/cluster.hpp"
#include "tests/fleet/delay_lock.hpp"

namespace haulout::fleet {

// How a machine takes its reboot; the defaults are a machine that works.
struct MachinePlan {
  std::string version = "1.0";
  std::string target = "1.1";  // empty: no update is wanted
  std::vector<std::string> reasons{"linux-image"};
  Duration down = std::chrono::seconds(50);
  Duration agent_starts = std::chrono::seconds(15);  // after the boot, and after a crash
  std::vector<std::string> methods{"logind", "systemd"};
  unsigned ignored_reboots = 0;  // accepted, and nothing happens
  unsigned refused_reboots = 0;
  unsigned silent_reboots = 0;  // no answer, and nothing happens
  unsigned lost_answers = 0;    // goes down a moment later, and the bus before it
  Duration reboot_takes{};      // before the machine goes down; past its deadline the way is cut short
  Duration late_by{};           // accepted, and the machine goes down so much later
  bool rolls_back = false;      // comes back with the old version
  std::string lands_on{};       // not empty: boots this version instead of the target
  Duration boot_takes{};        // the operating system says only so long after the boot that it is complete
  bool must_apply = false;      // boots the new version only when the agent has had it put in place
  unsigned failing_applies = 0;
  Duration apply_takes{};
  bool stays_down = false;         // never comes back
  bool still_wanted = false;       // wants the same reboot again after it
  bool unknown = false;            // the back end cannot tell
  bool version_unknown = false;    // nor which version runs
  std::size_t agents = 1;          // how many run at a time
  bool agents_differ = false;      // each by an authority of its own
  Duration delays_shutdown{};      // for how long it waits when somebody shuts it down; 0: there is no logind
  std::string no_delay{};          // why logind refuses a delay lock; empty: it does not
  bool others_delay = false;       // it waits so long whether an agent holds it up or not
  bool blocks_when_asked = false;  // somebody wants it to stay up at the very moment: logind refuses
  bool same_boot_id = false;       // in a container: the agent reads the host's, whatever boots
  bool kubelet_knows = false;      // there, the kubelet reads the machine's own
  bool start_hidden = false;       // nobody can tell when the first process began
  Duration kubelet_late{};         // the kubelet is Ready at once, and tells of the boot so much later
  // Lies, for the tests that show that they are found out.
  bool claims_a_boot = false;        // another boot id once a reboot was asked for, without a boot
  bool keeps_ready_file = false;     // the ready file is never removed
  bool ready_file_fails = false;     // the ready file can be neither written nor removed
  std::vector<std::string> hooks{};  // executables: "before-drain/10-a"
  std::set<std::string> failing_hooks{};
  Duration hook_takes = std::chrono::seconds(3);
};

// Kills the agent at one of its requests: before the server sees it, or when it has carried it out.
struct CrashPoint {
  std::size_t request = SIZE_MAX;  // counted over all lives of the machine's agents
  bool after = false;
};

class Machine;

// Sees what the agents of all machines do, at the very moment.
class MachineObserver {
 public:
  virtual ~MachineObserver() = default;
  virtual void life_began(Machine&) {}
  virtual void before_request(Machine&, const sim::Call&) {}
  // `answer`: nothing when it was lost on the way.
  virtual void after_request(Machine&, const sim::Call&, TimePoint /*sent*/, const http::Response* /*answer*/) {}
  virtual void reboot_asked(Machine&, const std::string& /*method*/) {}
  virtual void going_down(Machine&, bool /*by_agent*/) {}
  virtual void ready_shown(Machine&) {}
};

class Machine final : public agent::Host, public agent::Backend, public agent::HookPrograms {
 public:
  struct Surroundings {
    sim::Cluster& cluster;
    Clock& clock;
    Rng& rng;
    boost::asio::any_io_executor executor;
    drain::DrainObserver& drain_observer;
    MachineObserver& observer;
    agent::LeaseSlotsOptions slots;
    agent::AgentOptions agent;
    // A machine's gates, as each life of its agent has them.
    std::function<std::unique_ptr<agent::GateKeeper>(k8s::Client&, const std::string& node)> gates;
    std::function<void(const std::string&)> trace;
    // Between the agents and the API server; null: nothing.
    http::Transport* way = nullptr;
    // Stands in front of the agents' slots, when set.
    std::function<std::unique_ptr<agent::Slots>(agent::Slots&)> decorate_slots{};
  };
  Machine(std::string name, MachinePlan plan, Surroundings surroundings);

  // Agents come and go; until cancelled.
  boost::asio::awaitable<void> live();
  void crash_at(CrashPoint point) { crashes_.push_back(point); }
  // Ends the agent as SIGKILL would, and the kubelet starts another one.
  void kill_agent();
  // A person reboots it.
  void power_cycle();
  // A person types `reboot`; called off: it stays up after all.
  void shut_down();
  void call_shutdown_off();
  bool shutting_down() const { return delay_.preparing(); }
  TimePoint shut_down_last{};  // by a person
  // Another machine takes its place under its name: a new Node, another boot.
  void replace();
  // A person repairs it: what did not work does from now on, and what was down comes up.
  void repair();
  // Somebody holds a block inhibitor; empty: nobody does any more.
  void block(std::string who) { blocked_by_ = std::move(who); }
  // The operating system changes its mind.
  void want(std::string target);
  // /run/haulout/ready
  bool shows_ready() const { return shows_ready_; }

  const std::string& node() const { return node_; }
  MachinePlan& plan() { return plan_; }
  const MachinePlan& plan() const { return plan_; }
  // How the next agent takes turns.
  agent::LeaseSlotsOptions& slots() { return world_.slots; }
  const std::string& version() const { return plan_.version; }
  // The version that the agent has had put in place.
  const std::string& applied() const { return applied_; }
  std::size_t boots() const { return boots_; }
  std::size_t requests() const { return requests_; }
  // When they were sent.
  const std::vector<TimePoint>& request_times() const { return request_times_; }
  bool powered() const { return powered_; }
  // As the kubelet reads it.
  std::string kubelet_boot_id() const;
  // The last request for a reboot that was accepted, or got no answer, and the boot id under which it was made.
  struct Accepted {
    TimePoint at{};
    std::string method, boot_id;
    std::string node_uid;  // whose record tells of it
    bool operator==(const Accepted&) const = default;
  };
  const std::optional<Accepted>& accepted() const { return accepted_; }
  const agent::Status& status() const { return status_; }
  bool wants_update() const { return !plan_.target.empty() && plan_.version != plan_.target; }

  std::string name() const override { return "fake"; }
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

  bool replaced = false;  // by another machine of the same name; this one is nobody's any more
  std::function<void(const agent::Status&)> on_told = [](const agent::Status&) {};
  std::function<void()> on_marks = [] {};  // when its start is asked for, between the proof and the request
  std::function<void()> on_asked = [] {};  // for a reboot, before anything happens
  std::function<void()> on_ready = [] {};  // when the ready file has appeared
  std::vector<std::string> asked;          // the methods by which a reboot was asked for
  std::vector<std::string> hooks_run;
  std::function<void(const std::string& hook)> on_hook = [](const std::string&) {};

 private:
  class Wire;  // between an agent and its API server
  boost::asio::awaitable<void> one_life(std::size_t number);
  boost::asio::awaitable<void> until_killed();
  void expect_shown(const agent::Status& status) const;
  void go_down(bool by_agent);
  void boot();
  void tell_kubelet();
  std::string own_boot_id() const { return node_ + "-boot-" + std::to_string(boots_); }
  void go_down_later(Duration delay);
  void power_cycle_when_shut_down();

  std::string node_;
  MachinePlan plan_;
  Surroundings world_;
  Notifier power_;
  Notifier news_;
  DelayLock delay_;
  bool powered_ = true;
  bool killed_ = false;
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
