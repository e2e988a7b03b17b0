// A fleet from one seed. Plays its incidents, checks it when nothing changes any more, repairs everything, and checks
// it again. No I/O.
#pragma once

#include "tests/fleet/fleet.hpp"
#include "tests/fleet/fleet_plan.hpp"
#include "tests/fleet/scripted_gates.hpp"

namespace haulout::fleet {

struct SeededOutcome {
  std::uint64_t seed = 0;
  std::string setting;
  std::vector<std::string> violations, trace;
  Duration took{};  // in virtual time
  std::size_t requests = 0, faults_struck = 0, reboots = 0, evictions = 0, degraded = 0, updated = 0;
};

class SeededFleet : public Fleet {
 public:
  explicit SeededFleet(FleetPlan plan, bool traces_requests = false);
  void TestBody() override {}
  SeededOutcome play();

 protected:
  // The transport between all agents and the API server.
  virtual http::Transport& wire() { return faulty_; }

 private:
  boost::asio::awaitable<void> play_through();
  boost::asio::awaitable<void> until_nothing_moves();
  boost::asio::awaitable<void> until_all_is_well();
  boost::asio::awaitable<void> somebody_reboots(Machine& machine, Duration looks);
  // A machine outside of the cluster takes its slot, updates itself, and gives the slot back.
  boost::asio::awaitable<void> outsider_updates(PlannedOutsider planned);
  // Asks a new server until it answers 200.
  boost::asio::awaitable<void> ask_server_until_granted(PlannedOutsider planned, std::string path);
  Task<bool> ask_server(PlannedOutsider planned, std::string path);
  // P6: checks how many hold a slot of the pool when the machine gets one.
  void check_holders(const PlannedOutsider& planned);
  void stage();
  void perform(const Incident& incident);
  void perform_on_server(const Incident& incident);
  void perform_on_node(const Incident& incident);
  void change_condition(const std::string& name, const std::string& type, const std::string& status);
  void change_taint(const std::string& name, std::size_t number);
  void delete_some_pod(std::size_t number);
  void see_to_workload(const std::string& app, bool it_goes);
  void look_at(const PlannedMachine& planned, const Machine& machine);
  // Returns true if a node that is down, degraded or cordoned counts against the limit of this pool. A node whose pool
  // is not known counts in each pool.
  bool something_holds_turns(const std::string& pool) const;
  std::string pool_of(const std::string& node) const;
  void repair();
  bool all_is_well() const;
  void look_at_the_end();

  FleetPlan plan_;
  SeededRng fault_rng_;
  sim::FaultTransport faulty_;
  std::set<std::string> paused_;
  std::set<std::string> rebooted_by_hand_;
  GateNews pauses_;
  SeededRng outsider_rng_;
  k8s::Client outsider_client_{faulty_, clock, {}};
  bool outsider_holds_ = false, outsider_done_ = true;
  TimePoint news_at_{};  // when an agent last reported a new reason
  SeededOutcome outcome_;
};

SeededOutcome play_seed(std::uint64_t seed, bool traces_requests = false,
                        unsigned generation = newest_fleet_generation);

}  // namespace haulout::fleet
