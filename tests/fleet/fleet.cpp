#include "tests/fleet/fleet.hpp"

#include <fmt/format.h>

namespace haulout::fleet {
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

// In these a node is out of service, or on its way.
const std::set<std::string> out_states{"draining", "ready", "rebooting", "verifying", "uncordoning"};

class OpenGates final : public agent::GateKeeper {
 public:
  explicit OpenGates(Clock& clock) : clock_(clock) {}
  asio::awaitable<agent::GateAnswer> ask(agent::GateQuestion, TimePoint) override { co_return agent::GateAnswer{}; }
  asio::awaitable<void> changed() override { co_await clock_.sleep_until(TimePoint::max()); }

 private:
  Clock& clock_;
};

bool must_leave(const Json& pod) {
  for (const Json& owner : pod["metadata"].value("ownerReferences", Json::array()))
    if (owner["kind"] == "DaemonSet") return false;
  const std::string phase = pod["status"].value("phase", "");
  return phase != "Succeeded" && phase != "Failed";
}

}  // namespace

Fleet::Fleet() {
  options.drain.review_access = false;
  slots.limit = [this](std::size_t) { return limit; };
  cluster.on_change([this](const sim::Change& change) { see(change); });
  add({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "haulout"}}}});
}

Machine& Fleet::machine(const std::string& name, MachinePlan plan) {
  add(a_node(name));
  machines.push_back(std::make_unique<Machine>(
      name, std::move(plan),
      Machine::Surroundings{cluster, clock, rng, context.get_executor(), told_, slots, options,
                            [this](k8s::Client& client, const std::string& node) {
                              return gates ? gates(client, node) : std::make_unique<OpenGates>(clock);
                            },
                            [this](Machine& which) { going_down(which); },
                            [this](const std::string& line) {
                              lines.push_back(
                                  fmt::format("{:8.1f} s  {}", std::chrono::duration<double>(elapsed()).count(), line));
                            }}));
  return *machines.back();
}

void Fleet::add(Json object) {
  const auto loaded = cluster.load(object.dump());
  if (!loaded) throw std::runtime_error(loaded.error().message());
}

void Fleet::after(Duration delay, std::function<void()> action) {
  later_.emplace_back(delay, std::move(action));
}

// P3, P6: at the very moment of a reboot.
void Fleet::going_down(Machine& machine) {
  const std::string& name = machine.node();
  if (!unschedulable(name)) violations.push_back(name + " rebooted without a cordon");
  for (const Json& pod : cluster.all("pods"))
    if (pod["spec"].value("nodeName", "") == name && must_leave(pod))
      violations.push_back(name + " rebooted under pod " + pod["metadata"]["name"].get<std::string>());
  const std::string holder = name + "/" + node(name)["metadata"]["uid"].get<std::string>();
  const auto leases = cluster.all("leases");
  if (std::none_of(leases.begin(), leases.end(),
                   [&](const Json& lease) { return lease["spec"].value("holderIdentity", "") == holder; }))
    violations.push_back(name + " rebooted without a turn");
  std::size_t down = 1;
  for (const auto& other : machines) down += !other->powered() && !other->replaced;
  if (down > limit) violations.push_back(fmt::format("{} machines are down at once", down));
}

void Fleet::see(const sim::Change& change) {
  if (change.key.resource != "nodes" || change.type == sim::ChangeType::deleted) return;
  const std::string name = (*change.object)["metadata"]["name"];
  const std::string state = (*change.object)["metadata"].value("labels", Json::object()).value("haulout.dev/state", "");
  if (state_of_[name] == state) return;
  state_of_[name] = state;
  states_.emplace_back(name, state);
  const auto out = std::count_if(state_of_.begin(), state_of_.end(),
                                 [](const auto& entry) { return out_states.contains(entry.second); });
  if (static_cast<std::size_t>(out) > limit) violations.push_back(fmt::format("{} nodes are out at once", out));
}

bool Fleet::at_rest() const {
  return std::all_of(machines.begin(), machines.end(), [this](const auto& each) {
    const std::string now = state(each->node());
    const bool wanted = !each->plan().target.empty() && each->version() != each->plan().target;
    return (each->powered() || each->plan().stays_down) &&
           ((now == "idle" && !wanted) || now == "degraded" || each->plan().stays_down ||
            (each->plan().unknown && now == "unknown"));
  });
}

asio::awaitable<void> Fleet::watch_over(Duration limit_of_run, bool to_rest) {
  const TimePoint end = clock.now() + limit_of_run;
  TimePoint last = clock.now();
  for (auto& [delay, action] : later_) {
    last = std::max(last, clock.now() + delay);
    cluster.after(delay, action);
  }
  co_await clock.sleep_until(std::min(end, last + 30s));
  while (clock.now() < end && !(to_rest && at_rest())) co_await clock.sleep_until(clock.now() + 5s);
  if (to_rest && !at_rest()) violations.push_back("the fleet never came to rest");
  co_await clock.sleep_until(clock.now() + 60s);
}

void Fleet::run_fleet(Duration limit_of_run) {
  run_all(limit_of_run, true);
}

void Fleet::run_for(Duration time) {
  run_all(time, false);
}

void Fleet::run_all(Duration limit_of_run, bool to_rest) {
  run(with_task_group([this, limit_of_run, to_rest](TaskGroup& group) {
    group.spawn(cluster.run());
    for (const auto& each : machines) group.spawn(each->live());
    return watch_over(limit_of_run, to_rest);
  }));
  EXPECT_THAT(violations, ::testing::IsEmpty()) << story();
}

std::string Fleet::label(const std::string& node_name, const std::string& key) const {
  const Json labels = node(node_name)["metadata"].value("labels", Json::object());
  return labels.value(key, "");
}

std::vector<std::string> Fleet::states_of(const std::string& node_name) const {
  std::vector<std::string> found;
  for (const auto& [name, state] : states_)
    if (name == node_name) found.push_back(state);
  return found;
}

std::string Fleet::story() const {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

void Fleet::expect_updated(const Machine& machine) const {
  EXPECT_EQ(machine.version(), "1.1") << story();
  EXPECT_EQ(state(machine.node()), "idle") << story();
  EXPECT_FALSE(unschedulable(machine.node())) << story();
  EXPECT_EQ(label(machine.node(), "haulout.dev/reboot-required"), "false");
}

}  // namespace haulout::fleet
