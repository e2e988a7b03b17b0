// A machine of the simulated fleet: what outlives its agents (boot id, installed version, what the OS wants), the port
// implementations on it, and a supervisor that starts an agent whenever the machine is up, as the kubelet would.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/lifecycle/agent.hpp"
#include "agent/slots/lease_slots.hpp"
#include "sim/cluster.hpp"

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
  unsigned silent_reboots = 0;       // no answer, and nothing happens
  unsigned lost_answers = 0;         // goes down a moment later, and the bus before it
  bool rolls_back = false;           // comes back with the old version
  bool stays_down = false;           // never comes back
  bool still_wanted = false;         // wants the same reboot again after it
  bool unknown = false;              // the back end cannot tell
  std::vector<std::string> hooks{};  // executables: "before-drain/10-a"
  std::set<std::string> failing_hooks{};
  Duration hook_takes = std::chrono::seconds(3);
};

// Kills the agent at one of its requests: before the server sees it, or when it has carried it out.
struct CrashPoint {
  std::size_t request = SIZE_MAX;  // counted over all lives of the machine's agents
  bool after = false;
};

class Machine final : public agent::Host, public agent::Backend, public agent::HookPrograms {
 public:
  struct Surroundings {
    sim::Cluster& cluster;
    Clock& clock;
    Rng& rng;
    boost::asio::any_io_executor executor;
    drain::DrainObserver& observer;
    agent::LeaseSlotsOptions slots;
    agent::AgentOptions agent;
    agent::CheckGates gates;
    // Called at the very moment at which the machine goes down.
    std::function<void(Machine&)> going_down;
    std::function<void(const std::string&)> trace;
  };
  Machine(std::string name, MachinePlan plan, Surroundings surroundings);

  // Agents come and go; until cancelled.
  boost::asio::awaitable<void> live();
  void crash_at(CrashPoint point) { crash_ = point; }
  // Ends the agent as SIGKILL would, and the kubelet starts another one.
  void kill_agent();
  // A person reboots it.
  void power_cycle() { go_down(); }
  // The operating system changes its mind.
  void want(std::string target);

  const std::string& node() const { return node_; }
  MachinePlan& plan() { return plan_; }
  const std::string& version() const { return plan_.version; }
  std::size_t boots() const { return boots_; }
  std::size_t requests() const { return requests_; }
  bool powered() const { return powered_; }
  const agent::Status& status() const { return status_; }

  std::string name() const override { return "fake"; }
  boost::asio::awaitable<agent::Pending> pending(TimePoint deadline) override;
  Task<std::string> booted(TimePoint deadline) override;
  Task<> apply(std::string target, TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;
  Result<std::string> boot_id() override;
  std::vector<std::string> reboot_methods() const override { return plan_.methods; }
  Task<> can_reboot(TimePoint deadline) override;
  Task<> reboot(std::size_t method, TimePoint deadline) override;
  Task<bool> boot_complete(TimePoint deadline) override;
  Result<> show_ready(bool ready) override;
  Result<agent::HookFiles> list(agent::HookPoint point) override;
  Task<> run(agent::HookPoint point, std::string name, agent::HookEnvironment environment, TimePoint deadline) override;

  bool shows_ready = false;
  bool replaced = false;           // by another machine of the same name; this one is nobody's any more
  std::vector<std::string> asked;  // the methods by which a reboot was asked for
  std::vector<std::string> hooks_run;
  std::function<void(const std::string& hook)> on_hook = [](const std::string&) {};

 private:
  class Wire;  // between an agent and its API server
  boost::asio::awaitable<void> one_life();
  boost::asio::awaitable<void> until_killed();
  void go_down();
  void boot();

  std::string node_;
  MachinePlan plan_;
  Surroundings world_;
  Notifier power_;
  Notifier news_;
  bool powered_ = true;
  bool killed_ = false;
  std::size_t boots_ = 0;
  std::size_t requests_ = 0;
  CrashPoint crash_;
  agent::OwnNode own_;
  agent::Status status_;
};

}  // namespace haulout::fleet
