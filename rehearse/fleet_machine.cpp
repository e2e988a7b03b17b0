#include "rehearse/fleet_machine.hpp"

#include "agent/lifecycle/agent.hpp"
#include "agent/service/make_slots.hpp"
#include "agent/service/options_of_config.hpp"
#include "drain/reasons.hpp"
#include "retry/task_group.hpp"

namespace haulout::rehearse {
namespace asio = boost::asio;

namespace {
// The agent tells that it is idle before it has written the last of its marks. It ends this much later.
constexpr Duration last_writes = std::chrono::minutes(1);
// How often an agent of a large fleet polls while it waits for its slot. The Leases show it all that matters; the poll
// only keeps its message up to date.
constexpr Duration rare_look = std::chrono::minutes(30);

Task<std::vector<agent::ListedNode>> nodes_of_table(NodeTable& nodes, std::string selector) {
  co_return nodes.list(selector);
}
}  // namespace

FleetMachine::FleetMachine(k8s::Node node, agent::NodeGatesOptions gates, Surroundings around)
    : node_(std::move(node)),
      gates_(std::move(gates)),
      around_(std::move(around)),
      own_{node_.name, node_.uid},
      boot_id_(node_.boot_id),
      power_(around_.executor) {
  story_.name = node_.name;
}

asio::awaitable<void> FleetMachine::live() {
  while (!awake_) co_await power_.wait_until(around_.clock, TimePoint::max());
  for (bool booted = false; !over_; booted = true) {
    while (!powered_) co_await power_.wait_until(around_.clock, TimePoint::max());
    if (booted) co_await around_.clock.sleep_until(around_.clock.now() + agent_start);
    co_await with_task_group([this](TaskGroup& group) {
      group.spawn(one_life());
      return until_down();
    });
  }
}

asio::awaitable<void> FleetMachine::until_down() {
  while (powered_ && !over_) co_await power_.wait_until(around_.clock, TimePoint::max());
}

void FleetMachine::wake(bool one_of_many) {
  awake_ = true;
  one_of_many_ = one_of_many;
  power_.notify();
}

void FleetMachine::wait_for_turn(WallTime since, const std::string& pool) {
  if (around_.input.config.pool_label.empty())
    around_.cluster.patch("nodes", "", node_.name,
                          {{"metadata", {{"labels", {{std::string(agent::pool_label), pool}}}}}});
  story_.state = agent::State::waiting;
  story_.phases.push_back({agent::State::waiting, since, std::nullopt});
}

void FleetMachine::tell_as(const FleetNode& other) {
  story_.state = other.state;
  story_.reason = other.reason;
  story_.message = other.message;
}

asio::awaitable<void> FleetMachine::one_life() {
  const agent::AgentConfig& config = around_.input.config;
  k8s::Client client(around_.cluster.api(), around_.clock, {k8s::FieldValidation::strict, drain::Options{}.page_size});
  const agent::HostRoot root(config.host_root);
  agent::SlotsAccess access{around_.executor, client, around_.rng, root, own_};
  if (one_of_many_) {
    access.nodes = [&nodes = around_.nodes](std::string selector, TimePoint) {
      return nodes_of_table(nodes, std::move(selector));
    };
    access.look_every = rare_look;
  }
  auto slots = make_slots(config, access);
  if (!slots) {
    tell({agent::State::unknown, reason::slots_unavailable, slots.error().message(), around_.clock.wall_now()});
    co_return;
  }
  agent::NodeGates gates(client, around_.rng, nullptr, gates_);
  agent::AgentOptions options = agent_options_of(config);
  options.node = node_.name;
  agent::Agent agent({.client = client,
                      .rng = around_.rng,
                      .host = *this,
                      .backend = *this,
                      .slots = *slots->slots,
                      .gates = gates,
                      .drain_observer = around_.drains,
                      .tell = [this](const agent::Status& status) { tell(status); }},
                     std::move(options));
  co_await agent.run();
}

void FleetMachine::tell(const agent::Status& status) {
  const WallTime now = around_.clock.wall_now();
  story_.reason = status.reason;
  story_.message = status.message;
  if (!story_.phases.empty() && story_.state == status.state) return;
  if (!story_.phases.empty()) story_.phases.back().until = now;
  story_.state = status.state;
  story_.phases.push_back({status.state, now, std::nullopt});
  if (status.state == agent::State::ready || finished()) around_.moved();
  if (one_of_many_ && finished() && status.state == agent::State::idle)
    around_.cluster.after(last_writes, [this] {
      over_ = finished();
      power_.notify();
    });
}

bool FleetMachine::finished() const {
  return (story_.updated && story_.state == agent::State::idle) || story_.state == agent::State::degraded;
}

asio::awaitable<agent::Pending> FleetMachine::pending(TimePoint) {
  if (story_.updated) co_return agent::Pending{.need = agent::Need::no};
  co_return agent::Pending{.need = agent::Need::yes, .reasons = {"the rehearsed update"}, .target = version()};
}

// Only a version is rolled out in waves, or halted.
std::string FleetMachine::version() const {
  const agent::AgentConfig& config = around_.input.config;
  return config.ramp.empty() && config.halt_after == 0 ? std::string() : "rehearsed";
}

Task<std::string> FleetMachine::booted(TimePoint) {
  co_return story_.updated ? version() : std::string();
}

Task<> FleetMachine::apply(std::string, TimePoint) {
  co_return Result<>();
}

asio::awaitable<void> FleetMachine::changed() {
  co_await around_.clock.sleep_until(TimePoint::max());
}

Task<agent::MachineStart> FleetMachine::started(TimePoint) {
  co_return agent::MachineStart{};
}

Task<> FleetMachine::can_reboot(TimePoint) {
  co_return Result<>();
}

Task<std::string> FleetMachine::blocked_by(TimePoint) {
  co_return std::string();
}

Task<> FleetMachine::reboot(std::size_t, TimePoint) {
  around_.going_down();
  powered_ = false;
  power_.notify();
  around_.cluster.node_down(node_.name);
  around_.cluster.after(around_.input.reboot_time, [this] { boot(); });
  // The agent stops with its machine: until_down() returns, which cancels this coroutine.
  co_await around_.clock.sleep_until(TimePoint::max());
  co_return Result<>();
}

void FleetMachine::boot() {
  story_.updated = true;
  boot_id_ += "-rehearsed";
  around_.cluster.node_up(node_.name, boot_id_);
  powered_ = true;
  power_.notify();
  around_.moved();
}

Task<bool> FleetMachine::boot_complete(TimePoint) {
  co_return true;
}

}  // namespace haulout::rehearse
