#include "tests/fleet/machine.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "retry/task_group.hpp"

namespace haulout::fleet {
using namespace std::chrono_literals;
namespace asio = boost::asio;

class Machine::Wire final : public http::Transport {
 public:
  explicit Wire(Machine& machine) : machine_(machine) {}

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override {
    const auto crash = next_crash();
    if (crash && !crash->after) co_await die();
    const sim::Call call = sim::parse_call(request);
    machine_.world_.observer.before_request(machine_, call);
    const TimePoint sent = machine_.world_.clock.now();
    auto answer = co_await way().round_trip(std::move(request), deadline);
    if (crash) co_await die();
    machine_.world_.observer.after_request(machine_, call, sent, answer ? &*answer : nullptr);
    co_return answer;
  }
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override {
    if (next_crash()) co_await die();
    machine_.world_.observer.before_request(machine_, sim::parse_call(request));
    co_return co_await way().open(std::move(request), deadline);
  }

 private:
  http::Transport& way() { return machine_.world_.way ? *machine_.world_.way : machine_.world_.cluster.api(); }
  std::optional<CrashPoint> next_crash() {
    const std::size_t now = ++machine_.requests_;
    machine_.request_times_.push_back(machine_.world_.clock.now());
    for (const CrashPoint& point : machine_.crashes_)
      if (point.request == now) return point;
    return std::nullopt;
  }
  asio::awaitable<void> die() {
    machine_.world_.trace(machine_.node_ + " agent crashes");
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
      news_(world_.executor),
      delay_(world_.executor, world_.clock),
      updates_(
          plan_.updates,
          {world_.clock, world_.executor,
           [this](Duration delay, std::function<void()> action) { world_.cluster.after(delay, std::move(action)); },
           [this](const std::string& what) { world_.trace(node_ + ": " + what); },
           [this] { world_.observer.installation_began(*this); },
           [this] { want(plan_.updates.image.empty() ? "1.1" : plan_.updates.image); }, [this] { kill_agent(); }}) {
  delay_.longest = plan_.delays_shutdown;
  delay_.deny(plan_.no_delay);
  delay_.let_go = [this] {
    // Runs later, because the code that releases the lock (`let_go`) has to return first.
    if (delay_.preparing() && !plan_.others_delay)
      world_.cluster.after(Duration::zero(), [this] { power_cycle_when_shut_down(); });
  };
}

asio::awaitable<void> Machine::live() {
  for (;;) {
    while (!powered_) co_await power_.wait_until(world_.clock, TimePoint::max());
    killed_ = false;
    lives_ = true;
    co_await with_task_group([this](TaskGroup& group) {
      for (std::size_t i = 0; i < plan_.agents; ++i) group.spawn(one_life(i));
      return until_killed();
    });
    lives_ = false;
    co_await world_.clock.sleep_until(world_.clock.now() + plan_.agent_starts);
  }
}

asio::awaitable<void> Machine::until_killed() {
  while (!killed_) co_await power_.wait_until(world_.clock, TimePoint::max());
}

asio::awaitable<void> Machine::one_life(std::size_t number) {
  world_.observer.life_began(*this);
  world_.cluster.after(200ms, [this] { delay_.answer(); });
  Wire wire(*this);
  k8s::Client client(wire, world_.clock, {.validation = k8s::FieldValidation::strict});
  const auto node = world_.cluster.get("nodes", "", node_);
  own_ = {node_, node.is_null() ? std::string() : node["metadata"]["uid"].get<std::string>()};
  agent::LeaseSlots leases(client, world_.rng, own_, world_.slots);
  const auto decorated = world_.decorate_slots ? world_.decorate_slots(leases) : nullptr;
  agent::AgentOptions options = world_.agent;
  options.node = node_;
  options.stages_first = plan_.updates.before_drain;
  if (plan_.agents_differ) options.authority = "authority-" + std::to_string(number);
  const auto gates = world_.gates(client, node_);
  agent::Agent agent(
      {client, world_.rng, *this, *this, decorated ? *decorated : static_cast<agent::Slots&>(leases), *gates,
       world_.drain_observer,
       [this](const agent::Status& status) {
         status_ = status;
         on_told(status);
         expect_shown(status);
         world_.trace(node_ + " " + std::string(to_string(status.state)) + " " + status.reason + " " + status.message);
       },
       this,
       [this](const agent::Status& status) { world_.trace(node_ + " warns: " + status.reason + " " + status.message); },
       [this](const std::string& uid) { own_.uid = uid; }, plan_.delays_shutdown > Duration::zero() ? &delay_ : nullptr,
       plan_.updates.on ? &updates_ : nullptr},
      options);
  co_await agent.run();
}

// P8: when the agent reports a status, the Node already shows it.
void Machine::expect_shown(const agent::Status& status) const {
  const auto node = world_.cluster.get("nodes", "", node_);
  // The agent also reports why it cannot write the Node. The Node cannot show such a status.
  if (node.is_null() || status.reason == "ApiUnavailable" || status.reason == "NodeNotWritten") return;
  const auto labels = node["metadata"].value("labels", sim::Json::object());
  if (!labels.contains("haulout.dev/state")) return;  // the first agent of this Node has just started
  const auto annotations = node["metadata"].value("annotations", sim::Json::object());
  if (plan_.agents > 1) return;  // another agent may have written the Node since
  // The record is broken, or a person has removed it. The agent reports that before it repairs the record.
  if (!annotations.contains("haulout.dev/record")) return;
  if (agent::decode_record(annotations.value("haulout.dev/record", "")).cause == "RecordUnreadable") return;
  EXPECT_EQ(labels["haulout.dev/state"], std::string(to_string(status.state)));
  EXPECT_EQ(labels.value("haulout.dev/reason", ""), status.reason);
  EXPECT_EQ(annotations.value("haulout.dev/message", ""), status.message);
}

void Machine::kill_agent() {
  killed_ = true;
  delay_.forget();
  power_.notify();
}

void Machine::want(std::string target) {
  plan_.target = std::move(target);
  news_.notify();
}

void Machine::repair() {
  plan_.ignored_reboots = plan_.refused_reboots = 0;
  plan_.late_by = {};
  plan_.rolls_back = plan_.still_wanted = plan_.unknown = plan_.version_unknown = plan_.claims_a_boot = false;
  plan_.kubelet_late = {};
  plan_.updates.failing = 0;
  plan_.updates.blocked_by.clear();
  plan_.updates.unknown = false;
  if (std::exchange(plan_.same_boot_id, false) && powered_) {
    tell_kubelet();
    kill_agent();  // the next agent can read its boot id
  }
  if (std::exchange(plan_.stays_down, false) && !powered_) boot();
  news_.notify();
}

void Machine::replace() {
  if (powered_) world_.cluster.node_down(node_);
  powered_ = false;
  plan_.stays_down = false;
  ++boots_;  // cancels a boot that is already planned
  kill_agent();
  world_.trace(node_ + " is replaced by another machine");
  world_.cluster.after(1min, [this, boots = boots_] {
    if (powered_ || boots_ != boots) return;
    world_.cluster.replace_node(node_);
    boot();
  });
}

asio::awaitable<agent::Pending> Machine::pending(TimePoint) {
  if (plan_.unknown) co_return agent::Pending{.problem = "the package database is locked"};
  if (plan_.target.empty() || (plan_.target == plan_.version && !plan_.still_wanted))
    co_return agent::Pending{.need = agent::Need::no};
  co_return agent::Pending{agent::Need::yes, plan_.reasons, plan_.target};
}

Task<std::string> Machine::booted(TimePoint) {
  if (plan_.version_unknown) co_return Error(Errc::unavailable, "/usr/lib/os-release: no VERSION");
  co_return plan_.version;
}

Task<> Machine::apply(std::string target, TimePoint) {
  if (plan_.apply_takes > Duration::zero()) co_await world_.clock.sleep_until(world_.clock.now() + plan_.apply_takes);
  if (plan_.failing_applies > 0) {
    --plan_.failing_applies;
    co_return Error(Errc::unavailable, "no space left on the other partition");
  }
  applied_ = std::move(target);
  co_return Result<>();
}

asio::awaitable<void> Machine::changed() {
  co_await news_.wait_until(world_.clock, TimePoint::max());
}

Result<std::string> Machine::boot_id() {
  if (plan_.same_boot_id) return std::string("boot-of-the-host");
  return own_boot_id() + (lie_ > 0 ? "-" + std::to_string(lie_) : "");
}

std::string Machine::kubelet_boot_id() const {
  return plan_.same_boot_id && !plan_.kubelet_knows ? "boot-of-the-host" : own_boot_id();
}

Task<agent::MachineStart> Machine::started(TimePoint) {
  on_marks();
  if (plan_.start_hidden) co_return Error(Errc::unavailable, "/proc/1/stat does not exist");
  co_return agent::MachineStart{"fake", boots_ + 1};
}

Task<> Machine::can_reboot(TimePoint) {
  if (!blocked_by_.empty()) co_return Error(Errc::unavailable, "a reboot is blocked by " + blocked_by_);
  co_return Result<>();
}

Task<std::string> Machine::blocked_by(TimePoint) {
  co_return blocked_by_.empty() ? std::string() : "a reboot is blocked by " + blocked_by_;
}

Task<> Machine::reboot(std::size_t method, TimePoint deadline) {
  world_.observer.reboot_asked(*this, plan_.methods.at(method));
  EXPECT_FALSE(delay_.held()) << "an agent delays its own reboot";
  EXPECT_FALSE(method == 0 && shutting_down()) << "logind refuses a second shutdown";
  EXPECT_THAT(blocked_by_, ::testing::IsEmpty()) << "a reboot in the middle of something";
  on_asked();
  asked.push_back(plan_.methods.at(method));
  if (std::exchange(plan_.blocks_when_asked, false)) {
    blocked_by_ = "dpkg";
    co_return Error(Errc::unavailable, "Operation denied due to active block inhibitor");
  }
  if (plan_.refused_reboots > 0) {
    --plan_.refused_reboots;
    co_return Error(Errc::unavailable, "Access denied");
  }
  accepted_ = Accepted{world_.clock.now(), plan_.methods.at(method), *boot_id(),
                       sim::text(world_.cluster.get("nodes", "", node_), "/metadata/uid")};
  if (plan_.claims_a_boot) {
    ++lie_;
    kill_agent();
    co_return Result<>();
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
    world_.cluster.after(20s, [this] { go_down(true); });
    co_return Error(Errc::reset, "the bus went away before the answer came");
  }
  if (plan_.late_by > Duration::zero()) {
    if (plan_.delays_shutdown > Duration::zero()) delay_.announce(true);
    go_down_later(plan_.late_by);
    co_return Result<>();
  }
  co_await world_.clock.sleep_until(std::min(deadline, world_.clock.now() + plan_.reboot_takes));
  if (world_.clock.now() >= deadline) co_return Error(Errc::timeout, "killed at the deadline");
  go_down(true);
  co_await world_.clock.sleep_until(TimePoint::max());
  co_return Result<>();
}

void Machine::go_down_later(Duration delay) {
  world_.cluster.after(delay, [this, boots = boots_] {
    if (powered_ && boots_ == boots) go_down(true);
  });
}

void Machine::power_cycle() {
  if (powered_) go_down(false);
}

void Machine::shut_down() {
  world_.trace(node_ + " is told to reboot by hand");
  shut_down_last = world_.clock.now();
  delay_.announce(true);
  const Duration waits = delay_.held() || plan_.others_delay ? plan_.delays_shutdown : Duration::zero();
  world_.cluster.after(waits, [this] { power_cycle_when_shut_down(); });
}

void Machine::call_shutdown_off() {
  world_.trace(node_ + " stays up after all");
  delay_.announce(false);
}

void Machine::power_cycle_when_shut_down() {
  if (shutting_down()) power_cycle();
}

void Machine::go_down(bool by_agent) {
  world_.observer.going_down(*this, by_agent);
  world_.trace(node_ + (by_agent ? " goes down" : " is rebooted by hand"));
  powered_ = false;
  updates_.cut_short();
  kill_agent();
  delay_.announce(false);
  world_.cluster.node_down(node_);
  if (!plan_.stays_down)
    world_.cluster.after(plan_.down, [this, boots = boots_] {
      if (!powered_ && boots_ == boots) boot();
    });
}

void Machine::boot() {
  ++boots_;
  booted_at_ = world_.clock.now();
  lie_ = 0;
  const bool placed = !plan_.must_apply || applied_ == plan_.target;
  if (!plan_.rolls_back && placed && !plan_.target.empty())
    plan_.version = plan_.lands_on.empty() ? plan_.target : plan_.lands_on;
  if (plan_.updates.forgets) {
    plan_.target.clear();
    updates_.add({plan_.version + " to " + plan_.updates.image});
  }
  shows_ready_ = false;  // /run is empty after a boot
  world_.trace(node_ + " booted " + plan_.version);
  // The kubelet shows the old boot id until it has read the new one.
  world_.cluster.node_up(node_);
  if (plan_.kubelet_late == Duration::zero())
    tell_kubelet();
  else
    world_.cluster.after(plan_.kubelet_late, [this, boots = boots_] {
      if (powered_ && boots_ == boots) tell_kubelet();
    });
  if (plan_.readiness_takes > Duration::zero() && plan_.readiness_late == Duration::zero())
    set_readiness_taint();
  else if (plan_.readiness_takes > Duration::zero())
    world_.cluster.after(plan_.readiness_late, [this, boots = boots_] {
      if (powered_ && boots_ == boots) set_readiness_taint();
    });
  powered_ = true;
  power_.notify();
}

void Machine::set_readiness_taint() {
  world_.cluster.untaint(node_, readiness_taint);  // one of an earlier boot
  world_.cluster.taint(node_, readiness_taint);
  world_.cluster.after(plan_.readiness_takes, [this, boots = boots_] {
    if (boots_ == boots) world_.cluster.untaint(node_, readiness_taint);
  });
}

void Machine::tell_kubelet() {
  world_.cluster.node_up(node_, kubelet_boot_id());
}

Task<bool> Machine::boot_complete(TimePoint) {
  co_return boots_ == 0 || world_.clock.now() >= booted_at_ + plan_.boot_takes;
}

Result<> Machine::show_ready(bool ready) {
  if (plan_.ready_file_fails) return Error(Errc::unavailable, "/run/haulout/ready: Read-only file system");
  if (ready) world_.observer.ready_shown(*this);
  const bool appears = ready && !shows_ready_;
  shows_ready_ = ready || (shows_ready_ && plan_.keeps_ready_file);
  if (appears) world_.cluster.after(Duration::zero(), on_ready);
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
