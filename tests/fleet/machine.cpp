#include "tests/fleet/machine.hpp"

#include "retry/task_group.hpp"
#include "sim/call.hpp"

namespace haulout::fleet {
using namespace std::chrono_literals;
namespace asio = boost::asio;

class Machine::Wire final : public http::Transport {
 public:
  explicit Wire(Machine& machine) : machine_(machine) {}

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override {
    const bool last = counts();
    if (last && !machine_.crash_.after) co_await die();
    auto answer = co_await machine_.world_.cluster.api().round_trip(std::move(request), deadline);
    if (last) co_await die();
    co_return answer;
  }
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override {
    if (counts()) co_await die();
    co_return co_await machine_.world_.cluster.api().open(std::move(request), deadline);
  }

 private:
  bool counts() { return ++machine_.requests_ == machine_.crash_.request; }
  asio::awaitable<void> die() {
    machine_.kill_agent();
    co_await machine_.world_.clock.sleep_until(TimePoint::max());
  }

  Machine& machine_;
};

Machine::Machine(std::string name, MachinePlan plan, Surroundings surroundings)
    : node_(std::move(name)),
      plan_(std::move(plan)),
      world_(std::move(surroundings)),
      power_(world_.executor),
      news_(world_.executor) {}

asio::awaitable<void> Machine::live() {
  for (;;) {
    while (!powered_) co_await power_.wait_until(world_.clock, TimePoint::max());
    killed_ = false;
    co_await with_task_group([this](TaskGroup& group) {
      group.spawn(one_life());
      return until_killed();
    });
    co_await world_.clock.sleep_until(world_.clock.now() + plan_.agent_starts);
  }
}

asio::awaitable<void> Machine::until_killed() {
  while (!killed_) co_await power_.wait_until(world_.clock, TimePoint::max());
}

asio::awaitable<void> Machine::one_life() {
  Wire wire(*this);
  k8s::Client client(wire, world_.clock, {.validation = k8s::FieldValidation::strict});
  const auto node = world_.cluster.get("nodes", "", node_);
  own_ = {node_, node.is_null() ? std::string() : node["metadata"]["uid"].get<std::string>()};
  agent::LeaseSlots slots(client, world_.rng, own_, world_.slots);
  agent::AgentOptions options = world_.agent;
  options.node = node_;
  agent::Agent agent(
      {client, world_.rng, *this, *this, slots, world_.gates, world_.observer,
       [this](const agent::Status& status) {
         status_ = status;
         world_.trace(node_ + " " + std::string(to_string(status.state)) + " " + status.reason + " " + status.message);
       },
       this},
      options);
  co_await agent.run();
}

void Machine::kill_agent() {
  killed_ = true;
  power_.notify();
}

void Machine::want(std::string target) {
  plan_.target = std::move(target);
  news_.notify();
}

asio::awaitable<agent::Pending> Machine::pending(TimePoint) {
  if (plan_.unknown) co_return agent::Pending{.problem = "the package database is locked"};
  if (plan_.target.empty() || (plan_.target == plan_.version && !plan_.still_wanted))
    co_return agent::Pending{.need = agent::Need::no};
  co_return agent::Pending{agent::Need::yes, plan_.reasons, plan_.target};
}

Task<std::string> Machine::booted(TimePoint) {
  co_return plan_.version;
}

Task<> Machine::apply(std::string, TimePoint) {
  co_return Result<>();
}

asio::awaitable<void> Machine::changed() {
  co_await news_.wait_until(world_.clock, TimePoint::max());
}

Result<std::string> Machine::boot_id() {
  return node_ + "-boot-" + std::to_string(boots_);
}

Task<> Machine::can_reboot(TimePoint) {
  co_return Result<>();
}

Task<> Machine::reboot(std::size_t method, TimePoint) {
  asked.push_back(plan_.methods.at(method));
  if (plan_.refused_reboots > 0) {
    --plan_.refused_reboots;
    co_return Error(Errc::unavailable, "Access denied");
  }
  if (plan_.ignored_reboots > 0) {
    --plan_.ignored_reboots;
    co_return Result<>();
  }
  if (plan_.silent_reboots > 0) {
    --plan_.silent_reboots;
    co_return Error(Errc::timeout, "no answer before the deadline");
  }
  if (plan_.lost_answers > 0) {
    --plan_.lost_answers;
    world_.cluster.after(20s, [this] { go_down(); });
    co_return Error(Errc::reset, "the bus went away before the answer came");
  }
  go_down();
  co_await world_.clock.sleep_until(TimePoint::max());
  co_return Result<>();
}

void Machine::go_down() {
  world_.going_down(*this);
  powered_ = false;
  kill_agent();
  world_.cluster.node_down(node_);
  if (!plan_.stays_down) world_.cluster.after(plan_.down, [this] { boot(); });
}

void Machine::boot() {
  ++boots_;
  if (!plan_.rolls_back && !plan_.target.empty()) plan_.version = plan_.target;
  shows_ready = false;  // /run is empty after a boot
  world_.trace(node_ + " booted " + plan_.version);
  world_.cluster.node_up(node_, *boot_id());
  powered_ = true;
  power_.notify();
}

Task<bool> Machine::boot_complete(TimePoint) {
  co_return true;
}

Result<> Machine::show_ready(bool ready) {
  shows_ready = ready;
  return {};
}

Result<agent::HookFiles> Machine::list(agent::HookPoint point) {
  agent::HookFiles files;
  const std::string directory = std::string(to_string(point)) + "/";
  for (const std::string& hook : plan_.hooks)
    if (hook.starts_with(directory)) files.names.push_back(hook.substr(directory.size()));
  return files;
}

Task<> Machine::run(agent::HookPoint point, std::string name, agent::HookEnvironment, TimePoint deadline) {
  const std::string hook = std::string(to_string(point)) + "/" + name;
  on_hook(hook);
  co_await world_.clock.sleep_until(std::min(deadline, world_.clock.now() + plan_.hook_takes));
  hooks_run.push_back(hook);
  if (world_.clock.now() >= deadline) co_return Error(Errc::timeout, hook + ": did not end in time");
  if (plan_.failing_hooks.contains(hook)) co_return Error(Errc::unavailable, hook + ": exit status 1: no quorum");
  co_return Result<>();
}

}  // namespace haulout::fleet
