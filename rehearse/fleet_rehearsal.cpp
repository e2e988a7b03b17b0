#include "rehearse/fleet_rehearsal.hpp"

#include <fmt/format.h>

#include "agent/service/make_slots.hpp"
#include "agent/service/options_of_config.hpp"
#include "base/duration.hpp"
#include "base/text.hpp"
#include "drain/reasons.hpp"
#include "rehearse/awake_machines.hpp"
#include "rehearse/fleet_machine.hpp"
#include "rehearse/stage.hpp"
#include "rehearse/workload_watch.hpp"
#include "rehearse/world_json.hpp"
#include "retry/task_group.hpp"

namespace haulout::rehearse {

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

template <class Predicate>
Duration time_in(const FleetNode& node, WallTime end, Predicate counts) {
  Duration sum{};
  for (const FleetPhase& phase : node.phases)
    if (counts(phase.state)) sum += phase.until.value_or(end) - phase.from;
  return sum;
}

}  // namespace

bool is_out(agent::State state) {
  return state == agent::State::draining || state == agent::State::updating || state == agent::State::ready ||
         state == agent::State::rebooting || state == agent::State::verifying || state == agent::State::uncordoning;
}

bool is_outside_window(const FleetNode& node) {
  return node.state == agent::State::pending &&
         (node.reason == reason::outside_window || node.reason == reason::window_too_short);
}

std::optional<WallTime> turn_of(const FleetNode& node) {
  for (const FleetPhase& phase : node.phases)
    if (phase.state == agent::State::draining) return phase.from;
  return std::nullopt;
}

Duration drained_in(const FleetNode& node, WallTime end) {
  return time_in(node, end, [](agent::State state) { return state == agent::State::draining; });
}

Duration out_of_service(const FleetNode& node, WallTime end) {
  return time_in(node, end, is_out);
}

std::size_t most_out_at_once(const std::vector<FleetNode>& nodes) {
  // If one node becomes available at the same time as another becomes unavailable, they do not count as unavailable
  // together. So at equal times the sort must put -1 (available) before +1 (unavailable).
  std::vector<std::pair<WallTime, int>> steps;
  for (const FleetNode& node : nodes)
    for (const FleetPhase& phase : node.phases) {
      if (!is_out(phase.state)) continue;
      steps.emplace_back(phase.from, 1);
      if (phase.until) steps.emplace_back(*phase.until, -1);
    }
  std::sort(steps.begin(), steps.end());
  int out = 0;
  int most = 0;
  for (const auto& [at, step] : steps) most = std::max(most, out += step);
  return static_cast<std::size_t>(most);
}

std::optional<Error> unplayable(const agent::AgentConfig& config) {
  if (config.slots != agent::SlotsChoice::fleetlock) return std::nullopt;
  return Error(Errc::invalid,
               "a rehearsal cannot use a FleetLock server, because only the server knows which node gets a slot; "
               "rehearse with a copy of the configuration that has slots: lease, and max-unavailable as on the server");
}

namespace {

bool names_hooks(const agent::AgentConfig& config) {
  const agent::AgentConfig defaults;
  return config.hooks_dir != defaults.hooks_dir || config.hook_limit != defaults.hook_limit ||
         config.hook_failure != defaults.hook_failure;
}

// Returns a phrase for each assumption of the rehearsal; the report shows them after "assumed: ". `forgotten` is what
// the rehearsal has removed from the snapshot.
std::vector<std::string> assumed_of_fleet(const FleetInput& input, const Forgotten& forgotten) {
  const agent::AgentConfig& config = input.config;
  std::vector<std::string> assumed;
  assumed.push_back(
      fmt::format("every Ready node needs one reboot; a machine is down for {}, and its agent starts {} after that",
                  format_duration(input.reboot_time), format_duration(agent_start)));
  if (config.reboot_methods == std::vector{agent::RebootMethod::none})
    assumed.emplace_back("another program reboots each machine as soon as its node is ready");
  if (config.slots == agent::SlotsChoice::none)
    assumed.emplace_back("according to the configuration (slots: none), no node waits for another");
  if (!config.prometheus_url.empty()) assumed.emplace_back("no alert fires: Prometheus is not queried");
  if (!config.ramp.empty())
    assumed.push_back(fmt::format("all nodes are updated to the same version, in waves of {}", config.ramp));
  if (!config.pin.empty()) assumed.emplace_back("the update has the version that pin allows: " + config.pin);
  if (names_hooks(config) || !forgotten.hooks.empty()) {
    assumed.push_back("hooks do not run, and take no time");
    if (!forgotten.hooks.empty()) assumed.back() += " (nodes have annotation hooks: " + some_of(forgotten.hooks) + ")";
  }
  if (!forgotten.pauses.empty()) assumed.push_back("pauses are not simulated: " + some_of(forgotten.pauses));
  if (!forgotten.half_done.empty())
    assumed.push_back("updates in progress start again, with the node uncordoned: " + some_of(forgotten.half_done));
  return assumed;
}

constexpr Duration look = 10s;
// The virtual time after which a simulation ends. Long enough for a maintenance window that opens once a month.
constexpr Duration horizon = std::chrono::days(30);
// Agents outside their window read the wall clock only every ten minutes. Therefore the rehearsal advances the clock
// only until this long before the window opens.
constexpr Duration before_opening = 15min;

bool all_outside_window(const std::vector<const FleetNode*>& nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [](const FleetNode* node) { return is_outside_window(*node); });
}

// Records all events of drains, and calls `moved` for those that bring a drain nearer to its end.
class Progress final : public drain::DrainObserver {
 public:
  Progress(Timeline& timeline, WorkloadWatch& workloads, std::function<void()> moved)
      : timeline_(timeline), workloads_(workloads), moved_(std::move(moved)) {}
  void on_event(const drain::Event& event) override {
    using enum drain::EventType;
    timeline_.on_event(event);
    if (event.type == evicted) workloads_.evicted(event.pod->uid);
    if (event.type == evicted || event.type == vanished || event.type == volume_detached) moved_();
  }

 private:
  Timeline& timeline_;
  WorkloadWatch& workloads_;
  std::function<void()> moved_;
};

class Fleet {
 public:
  explicit Fleet(FleetInput input)
      : input_(std::move(input)), stage_(input_.assumptions, input_.seed, drain::Options{}.page_size) {}

  Result<FleetRehearsal> play(SnapshotObjects objects) {
    if (auto problem = unplayable(input_.config)) return std::move(*problem);
    const std::optional<WallTime> dated = input_.snapshot.stored ? objects.newest : std::nullopt;
    stage_.load(std::move(objects.all), dated.value_or(input_.snapshot.read_at));
    const Forgotten forgotten = forget_haulout(stage_.cluster, input_.config);
    result_.assumed = stage_.assumed();
    if (dated) result_.assumed.push_back(assumed_time(*dated));
    for (std::string& phrase : assumed_of_fleet(input_, forgotten)) result_.assumed.push_back(std::move(phrase));
    result_.given_up_after = patience();
    if (auto played = stage_.play([this] { return act(); }); !played) return std::move(played).error();
    if (error_) return std::move(*error_);
    return std::move(result_);
  }

 private:
  // Returns the time without progress after which the simulation ends. It includes all assumed times, so that a slow
  // step that will end does not count as stuck.
  Duration patience() const {
    const agent::AgentConfig& config = input_.config;
    const Duration leaves = input_.assumptions.terminate_within.value_or(longest_grace(stage_.cluster));
    const Assumptions& assumed = input_.assumptions;
    return input_.give_up + leaves + assumed.detach_within + assumed.attach_within + assumed.ready_after +
           input_.reboot_time + drain::longest_limit(config.drain.policy.rules) +
           config.drain.timeout.value_or(Duration::zero()) + config.lb_drain_wait + config.drain.guards.canary +
           config.drain.eviction_request_limit;
  }

  asio::awaitable<void> act() {
    co_await stage_.come_to_rest();
    nodes_.emplace(stage_.cluster);
    const auto prepared = co_await prepare();
    if (!prepared) {
      error_ = prepared.error();
      co_return;
    }
    for (std::string& phrase : assumed_of_volumes(input_.assumptions, stage_.cluster, with_agents()))
      result_.assumed.push_back(std::move(phrase));
    assume_no_work_ends(result_.assumed, input_.config.drain.policy, stage_.cluster, with_agents());
    assume_silent_responders(result_.assumed, input_.config.drain, stage_.cluster, with_agents());
    homeless_before_ = homeless(stage_.cluster);
    result_.began = stage_.clock.wall_now();
    workloads_.begin();
    awake_.begin(result_.began);
    moved();
    co_await with_task_group([this](TaskGroup& group) {
      for (const auto& machine : machines_) group.spawn(machine->live());
      return watch_over();
    });
    sum_up();
    co_await stage_.come_to_rest();
    note_no_room();
    assume_later_room(result_.assumed, room_later_, result_.no_room);
    assume_no_preemption(result_.assumed, result_.no_room);
  }

  Task<> prepare() {
    CO_TRY(const auto nodes, co_await stage_.client.list_nodes("", stage_.clock.now() + Stage::request_limit));
    for (const k8s::Node& node : nodes.items) {
      if (!node.ready) {
        result_.nodes.push_back({.name = node.name, .left_out = "it is not Ready"});
        continue;
      }
      CO_TRY(agent::NodeGatesOptions gates, gates_of_config(input_.config, node.name, [this](const k8s::Node& own) {
               return own_pool(input_.config, own);
             }));
      schedule_ = gates.schedule;
      gates.pin.clear();  // the rehearsed update has no version
      machines_.push_back(std::make_unique<FleetMachine>(
          node, std::move(gates),
          FleetMachine::Surroundings{stage_.executor(), stage_.cluster, stage_.clock, stage_.rng, input_, progress_,
                                     [this] { machine_moved(); }, [this] { note_no_room(); }, *nodes_}));
      for (std::string& pod : not_weighed(stage_.cluster, node.name)) result_.not_weighed.push_back(std::move(pod));
    }
    arrange_turns(nodes.items);
    if (machines_.empty())
      co_return Error(Errc::invalid, fmt::format("the {} has no node that is Ready; it has {}",
                                                 input_.snapshot.stored ? "snapshot" : "cluster",
                                                 count_of(nodes.items.size(), "node")));
    co_return Result<>();
  }

  // Groups the machines by the limits of their pools, in a random order.
  void arrange_turns(const std::vector<k8s::Node>& nodes) {
    const auto group_of = [this](const k8s::Node& node) {
      const std::string zone = input_.config.zone_label.empty()
                                   ? std::string()
                                   : k8s::value_at(node.labels, input_.config.zone_label).value_or("");
      return AwakeMachines::Group(own_pool(input_.config, node).name, zone);
    };
    std::map<std::string, AwakeMachines::Group> groups;
    std::map<std::string, std::size_t> pools;
    for (const k8s::Node& node : nodes) {
      const auto& group = groups[node.name] = group_of(node);
      ++pools[group.first];
    }
    const auto limit = agent::parse_max_unavailable(input_.config.max_unavailable);
    // In an order (--roll-out-order), each node has to see who waits.
    const bool limited = input_.config.slots != agent::SlotsChoice::none && limit &&
                         input_.config.roll_out_order == agent::AgentConfig{}.roll_out_order;
    for (const k8s::Node& node : nodes) {
      const agent::OwnPool pool = own_pool(input_.config, node);
      if (!agent::is_control_plane(pool)) result_.largest_pool = std::max(result_.largest_pool, pools[pool.name]);
    }
    std::vector<FleetMachine*> order;
    order.reserve(machines_.size());
    for (const auto& machine : machines_) order.push_back(machine.get());
    SeededRng rng(input_.seed + 2);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.between(std::uint64_t{0}, i - 1)]);
    for (FleetMachine* machine : order) {
      const auto& group = groups[machine->story().name];
      awake_.add(*machine, group, limited ? limit->of(pools[group.first]) : machines_.size());
    }
  }

  void machine_moved() {
    moved();
    awake_.wake_next();
  }

  std::set<std::string> with_agents() const {
    std::set<std::string> names;
    for (const auto& machine : machines_) names.insert(machine->story().name);
    return names;
  }

  void moved() { moved_at_ = stage_.clock.wall_now(); }

  asio::awaitable<void> watch_over() {
    const WallTime last = result_.began + std::chrono::duration_cast<WallTime::duration>(horizon);
    for (;;) {
      co_await stage_.clock.sleep_until(stage_.clock.now() + look);
      awake_.wake_next();
      tell_progress();
      const auto unfinished = awake_.at_work();
      if (unfinished.empty()) {
        result_.end = FleetEnd::over;
        co_return;
      }
      if (wait_for_time(unfinished)) {
        put_clock_forward(unfinished, last);
        moved();
      }
      result_.end = FleetEnd::stuck;
      if (stage_.clock.wall_now() - moved_at_ >= result_.given_up_after) co_return;
      result_.end = FleetEnd::horizon;
      if (stage_.clock.wall_now() >= last) co_return;
    }
  }

  void tell_progress() const {
    if (!input_.on_progress) return;
    const std::size_t all = machines_.size();
    input_.on_progress({StepProgress::Step::rehearsing, all - awake_.unfinished(), all});
  }

  // Returns true if the update continues when time passes: a node is soaking, or all nodes are outside their windows.
  static bool wait_for_time(const std::vector<const FleetNode*>& nodes) {
    const auto soaks = [](const FleetNode* node) { return node->state == agent::State::soaking; };
    return std::any_of(nodes.begin(), nodes.end(), soaks) || all_outside_window(nodes);
  }

  // If all nodes wait for their windows, advances the clock to shortly before the next window, but not beyond `last`.
  void put_clock_forward(const std::vector<const FleetNode*>& nodes, WallTime last) {
    const WallTime now = stage_.clock.wall_now();
    const agent::Schedule::State state = schedule_.at(now);
    if (!all_outside_window(nodes) || state.open) return;
    const WallTime next = std::min(state.next_open.value_or(last), last);
    if (next - now > 2 * before_opening) stage_.clock.shift_wall(next - now - before_opening);
  }

  // Records the pods for which the scheduler has tried and found no node. Called when a node is drained, and at the
  // end. A terminating pod of another node keeps its resources until it is deleted. A pod that waits only for such
  // resources is recorded in `room_later_` instead.
  void note_no_room() {
    std::vector<NoRoom> pods = no_room(stage_.cluster, homeless_before_);
    std::erase_if(pods, [](const NoRoom& pod) { return pod.message.empty(); });
    for (NoRoom& pod : take_with_room_later(pods, stage_.cluster, stage_.clock.wall_now()))
      if (waited_.insert(pod.pod).second) room_later_.push_back(std::move(pod));
    for (NoRoom& pod : pods)
      if (known_.insert(pod.pod).second) result_.no_room.push_back(std::move(pod));
  }

  void sum_up() {
    WallTime last = result_.began;
    awake_.tell_sleepers();
    for (const auto& machine : machines_) {
      FleetNode node = machine->story();
      last = std::max(last, node.phases.empty() ? last : node.phases.back().from);
      if (is_out(node.state)) node.holds_up = held_up_at(node.name);
      result_.nodes.push_back(std::move(node));
    }
    result_.ended = result_.end == FleetEnd::over ? last : stage_.clock.wall_now();
    result_.most_out = most_out_at_once(result_.nodes);
    result_.owners = workloads_.owners();
    result_.budgets = workloads_.budgets();
    std::sort(result_.nodes.begin(), result_.nodes.end(), [](const FleetNode& a, const FleetNode& b) {
      const auto key = [](const FleetNode& node) {
        return std::tuple(!node.left_out.empty(), turn_of(node).value_or(WallTime::max()), node.name);
      };
      return key(a) < key(b);
    });
  }

  std::vector<std::string> held_up_at(const std::string& node) const {
    std::vector<std::string> pods;
    for (const Timeline::Row& row : result_.timeline.rows())
      if (row.node == node && !row.vanished && !row.waits.empty() && !row.waits.back().until)
        pods.push_back(row.pod + ": " + row.waits.back().message);
    return pods;
  }

  FleetInput input_;
  Stage stage_;
  FleetRehearsal result_;
  WorkloadWatch workloads_{stage_.cluster, stage_.clock};
  Progress progress_{result_.timeline, workloads_, [this] { moved(); }};
  std::vector<std::unique_ptr<FleetMachine>> machines_;
  std::optional<NodeTable> nodes_;  // set when the simulation begins
  AwakeMachines awake_;
  agent::Schedule schedule_;
  std::set<std::string> homeless_before_;
  std::set<std::string> known_;     // keys of the pods in result_.no_room
  std::vector<NoRoom> room_later_;  // pods that find capacity once terminating pods are deleted
  std::set<std::string> waited_;    // keys of the pods in room_later_
  WallTime moved_at_{};
  std::optional<Error> error_;
};

}  // namespace

Result<SnapshotObjects> read_for_fleet(Snapshot& snapshot, const OnProgress& on_progress) {
  auto objects = objects_of(snapshot, on_progress);
  if (!objects || !snapshot.stored) return objects;
  if (auto whole = check_whole(objects->all); !whole) return std::move(whole).error();
  return objects;
}

Result<FleetRehearsal> rehearse_fleet(FleetInput input, SnapshotObjects objects) {
  return Fleet(std::move(input)).play(std::move(objects));
}

Result<FleetRehearsal> rehearse_fleet(FleetInput input) {
  auto objects = read_for_fleet(input.snapshot, input.on_progress);
  if (!objects) return std::move(objects).error();
  return rehearse_fleet(std::move(input), *std::move(objects));
}

}  // namespace haulout::rehearse
