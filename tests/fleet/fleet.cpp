#include "tests/fleet/fleet.hpp"

#include <fmt/format.h>

namespace haulout::fleet {
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

class OpenGates final : public agent::GateKeeper {
 public:
  explicit OpenGates(Clock& clock) : clock_(clock) {}
  asio::awaitable<agent::GateAnswer> ask(agent::GateQuestion, TimePoint) override { co_return agent::GateAnswer{}; }
  asio::awaitable<void> changed() override { co_await clock_.sleep_until(TimePoint::max()); }

 private:
  Clock& clock_;
};

}  // namespace

Fleet::Fleet() {
  options.drain.review_access = false;
  options.pool = [](const k8s::Node&) { return std::string("default"); };
  slots.limit = [this](std::size_t nodes) { return limit_now(nodes); };
  add({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "haulout"}}}});
}

Machine& Fleet::machine(const std::string& name, MachinePlan plan) {
  machines.push_back(std::make_unique<Machine>(
      name, std::move(plan),
      Machine::Surroundings{cluster, agents_clock, rng, context.get_executor(), drains_, checks, slots, options,
                            [this](k8s::Client& client, const std::string& node) {
                              return gates ? gates(client, node) : std::make_unique<OpenGates>(clock);
                            },
                            [this](const std::string& line) { note(line); }, way(), decorate_slots}));
  Json registered = a_node(name);
  registered["status"]["nodeInfo"]["bootID"] = machines.back()->kubelet_boot_id();
  add(std::move(registered));
  return *machines.back();
}

void Fleet::note(const std::string& line) {
  lines.push_back(fmt::format("{:8.1f} s  {}", std::chrono::duration<double>(elapsed()).count(), line));
}

std::size_t Fleet::limit_now(std::size_t nodes) const {
  return limit_percent == 0 ? limit : std::max<std::size_t>(1, nodes * limit_percent / 100);
}

// `kubectl cordon` sends no request if the node is already cordoned.
void Fleet::cordon(const std::string& name) {
  note("a person cordons " + name);
  if (!unschedulable(name)) checks.by_a_person([&] { cluster.cordon(name); });
}

void Fleet::uncordon(const std::string& name) {
  note("a person uncordons " + name);
  checks.by_a_person([&] { cluster.uncordon(name); });
}

void Fleet::add(Json object) {
  const auto loaded = cluster.load(object.dump());
  if (!loaded) throw std::runtime_error(loaded.error().message());
}

void Fleet::after(Duration delay, std::function<void()> action) {
  later_.emplace_back(delay, std::move(action));
}

bool Fleet::at_rest() const {
  return std::all_of(machines.begin(), machines.end(), [this](const auto& each) {
    const std::string now = state(each->node());
    const bool wanted = each->wants_update();
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
  if (to_rest && !at_rest()) checks.violated("the fleet never came to rest");
  co_await clock.sleep_until(clock.now() + 60s);
}

void Fleet::run_fleet(Duration limit_of_run) {
  run_all(limit_of_run, true);
  EXPECT_THAT(checks.violations, ::testing::IsEmpty()) << story();
}

void Fleet::run_for(Duration time) {
  run_all(time, false);
  EXPECT_THAT(checks.violations, ::testing::IsEmpty()) << story();
}

void Fleet::run_all(Duration limit_of_run, bool to_rest) {
  run(with_task_group([this, limit_of_run, to_rest](TaskGroup& group) {
    group.spawn(cluster.run());
    for (const auto& each : machines) group.spawn(each->live());
    return watch_over(limit_of_run, to_rest);
  }));
}

std::string Fleet::label(const std::string& node_name, const std::string& key) const {
  const Json labels = node(node_name)["metadata"].value("labels", Json::object());
  return labels.value(key, "");
}

std::vector<std::string> Fleet::states_of(const std::string& node_name) const {
  std::vector<std::string> found;
  for (const auto& [name, state] : checks.states)
    if (name == node_name) found.push_back(state);
  return found;
}

std::size_t Fleet::evictions() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(cluster.audit(), [](const auto& entry) { return entry.subresource == "eviction"; }));
}

std::size_t Fleet::patches_of_nodes() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      cluster.audit(), [](const auto& entry) { return entry.verb == "patch" && entry.resource == "nodes"; }));
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
