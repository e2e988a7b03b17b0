#include "tests/scenario/seeded_run.hpp"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "drain/eviction_request_feed.hpp"
#include "drain/surge_feed.hpp"
#include "retry/deadline.hpp"
#include "retry/task_group.hpp"
#include "sim/virtual_clock.hpp"
#include "tests/scenario/invariants.hpp"
#include "tests/scenario/seeded_options.hpp"
#include "tests/scenario/skewed_clock.hpp"
#include "tests/worlds/faults.hpp"
#include "tests/worlds/world_generator.hpp"

namespace haulout::scenario {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using Json = sim::Json;

struct Case {
  sim::GeneratedWorld world;
  Circumstances given;
  Duration begins_after{};
  std::vector<std::pair<Duration, Duration>> wall_jumps;  // (when, by how much), for the drain's own clock
};

// Gives some pods an annotation that forbids to disrupt them. A person removes it later.
void protect_some_pods(Case& made, Rng& rng) {
  for (Json& object : made.world.objects) {
    if (sim::text(object, "/kind") != "Pod" || !rng.chance(8)) continue;
    object["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"] = "false";
    const Duration when = rng.between(Duration(1s), Duration(90s));
    made.world.healed_after = std::max(made.world.healed_after, when);
    made.world.incidents.push_back({when, "protection ended",
                                    [ns = sim::ns_of(object), name = sim::name_of(object)](sim::TestCluster& cluster) {
                                      const Json none = {{"cluster-autoscaler.kubernetes.io/safe-to-evict", nullptr}};
                                      cluster.patch("pods", ns, name, {{"metadata", {{"annotations", none}}}});
                                    },
                                    true});
  }
}

void meddle_with_the_cordon(Case& made, Rng& rng) {
  const std::string node = made.world.node;
  made.given.human_cordon = rng.chance(15);
  if (made.given.human_cordon)
    made.world.incidents.push_back(
        {0s, "a human cordons", [node](sim::TestCluster& cluster) { cluster.cordon(node); }});
  made.given.human_uncordon = rng.chance(8);
  if (!made.given.human_uncordon) return;
  const Duration off = rng.between(Duration(1s), Duration(40s)), on = off + rng.between(Duration(10ms), Duration(30s));
  made.world.healed_after = std::max(made.world.healed_after, on);
  made.world.incidents.push_back(
      {off, "a human uncordons", [node](sim::TestCluster& cluster) { cluster.uncordon(node); }});
  made.world.incidents.push_back(
      {on, "a human cordons again", [node](sim::TestCluster& cluster) { cluster.cordon(node); }});
}

void let_the_clock_jump(Case& made, std::uint64_t seed) {
  SeededRng rng(seed * 0x9e3779b97f4a7c15u + 9);
  if (!rng.chance(15)) return;
  for (std::uint64_t i = rng.between(std::uint64_t{1}, std::uint64_t{2}); i > 0; --i)
    made.wall_jumps.emplace_back(rng.between(Duration(0s), Duration(90s)),
                                 rng.between(Duration(0s), Duration(2h)) - Duration(1h));
}

Case make_case(std::uint64_t seed, unsigned generation) {
  SeededRng rng(seed * 0x9e3779b97f4a7c15u + 1);
  Case made;
  sim::GeneratorOptions generator;
  generator.generation = generation;
  generator.faults = rng.chance(65);
  generator.other_people = rng.chance(75);
  if (rng.chance(50)) generator.most_pods = 25;
  made.world = sim::generate_world(seed, generator);
  made.given.node = made.world.node;
  made.given.options = some_options(rng, made.world, generation);
  made.given.sound_wire = !generator.faults;
  made.given.webhook_ns = made.world.webhook_ns;
  made.given.roomy = made.world.roomy;
  made.given.node_goes = made.world.node_goes;
  made.given.rights_change = made.world.rights_change;
  made.given.hopeless_answers = made.world.hopeless_answers;
  made.given.as_kubelet = made.world.as_kubelet;
  made.given.etcd_restored = made.world.restored_after.has_value();
  made.given.migrations_take = made.world.migrations_take;
  for (const auto& incident : made.world.incidents)
    if (incident.what.starts_with("kubelet stopped")) made.given.sound_kubelets = false;
  for (const auto& incident : made.world.incidents)
    if (incident.what == "disruption controller stopped") made.given.sound_budgets = false;
  if (rng.chance(30)) protect_some_pods(made, rng);
  meddle_with_the_cordon(made, rng);
  made.given.healed_after = made.world.healed_after;
  made.begins_after = rng.between(Duration(100ms), Duration(4s));
  if (generation >= 6) let_the_clock_jump(made, seed);
  return made;
}

// Returns the time within which a drain without a deadline must succeed. It allows for the end of all faults, for the
// termination of every pod, and for delays until the drain notices these.
Duration longest(const Case& made) {
  Duration one_by_one = 0s, longest_grace = 0s, detach_one_by_one = 0s;
  const Duration each_volume = made.world.detach_takes + made.given.options.reattach_limit;
  for (const Json& object : made.world.objects) {
    if (sim::text(object, "/kind") != "Pod") continue;
    const Duration grace = std::chrono::seconds(sim::number(object, "/spec/terminationGracePeriodSeconds", 30));
    one_by_one += std::min(grace, sim::annotated(object, "sim.haulout.dev/terminates-after", grace)) + 1s;
    longest_grace = std::max(longest_grace, grace);
    if (!sim::at(object, "/spec/volumes").is_null()) detach_one_by_one += each_volume;
  }
  // A pod that a person moves must be evicted once more.
  for (const auto& incident : made.world.incidents)
    if (incident.what == "pod moved") one_by_one += longest_grace + 1s, detach_one_by_one += each_volume;
  const std::size_t places = made.given.options.max_concurrent;
  const drain::Guards& guards = made.given.options.guards;
  if (guards.follows_pods()) {
    const Duration replaced = made.world.detach_takes + made.world.timing.attach + made.world.timing.pod_start + 25s;
    one_by_one += static_cast<Duration::rep>(made.world.objects.size()) * (replaced + guards.canary);
  }
  const bool turns = made.given.options.volume_turns != drain::VolumeWait::off || guards.follows_pods();
  const Duration work = turns         ? one_by_one + longest_grace + detach_one_by_one
                        : places == 0 ? longest_grace
                                      : one_by_one / static_cast<Duration::rep>(places) + longest_grace;
  // The drain's own pod is evicted after all others are deleted, and before it the pods that a rule evicts last.
  const Duration in_turn = longest_grace + each_volume;
  Duration own = made.given.options.own_pod_uid.empty() ? Duration::zero() : in_turn;
  if (!made.given.options.policy.evict_daemon_sets.empty()) own += work;
  for (const drain::PodRule& rule : made.given.options.policy.rules) {
    if (rule.action == drain::PodAction::last) own += work;
    own += rule.limit.value_or(Duration::zero());
  }
  // Members of gangs are evicted after all ordinary pods are deleted.
  if (std::ranges::any_of(made.world.oddities, [](const std::string& what) { return what.starts_with("gang-"); }))
    own += work;
  // After an etcd restore, a watch from a revision in the future delivers nothing. The drain notices this when a
  // `doubt_interval` ends.
  const Duration restored = made.given.etcd_restored ? work + each_volume + 15min : 0s;
  // A replacement that was not Ready within the limit is tried again after a pause of up to an hour.
  const Duration surges = guards.surge == drain::Surge::off ? Duration::zero() : Duration(3h);
  const bool asks = made.given.options.eviction_requests != drain::EvictionRequests::off;
  const Duration responders = asks ? made.world.responders_take : Duration::zero();
  const Duration notice = (made.given.sound_wire ? 60s : 240s) + (made.given.rights_change ? 120s : 0s) + restored;
  return std::max(made.world.healed_after, made.begins_after) + work + own + made.world.migrations_take +
         made.given.options.settle + each_volume + surges + responders + notice;
}

Task<drain::Report> run_of(drain::Drain& drain) {
  co_return co_await drain.run();
}

std::string peculiarities_of(const sim::GeneratedWorld& world) {
  std::string text;
  for (const std::string& way : world.migrations) text += " migrates:" + way;
  for (const std::string& oddity : world.oddities) text += " " + oddity;
  return text;
}

std::string setting_of(const Case& made) {
  const drain::Options& options = made.given.options;
  const std::string base =
      fmt::format("places {} settle {} ms timeout {} s grace {}{}{}{}{}{}{}{}", options.max_concurrent,
                  std::chrono::duration_cast<std::chrono::milliseconds>(options.settle).count(),
                  options.timeout ? std::chrono::duration_cast<std::chrono::seconds>(*options.timeout).count() : -1,
                  options.grace_seconds.value_or(-1), options.fail_fast ? " command" : " agent",
                  options.restore_cordon_on_failure ? " restore" : "", made.given.sound_wire ? " sound" : " faults",
                  made.given.human_cordon ? " human-cordon" : "", made.given.human_uncordon ? " human-uncordon" : "",
                  options.volume_turns == drain::VolumeWait::off ? "" : " turns",
                  options.reattach_limit == Duration::zero() ? "" : " reattach");
  return base + richer_setting(options) + (made.wall_jumps.empty() ? "" : " clock-jumps") +
         (made.given.node_goes ? " node-goes" : "") + (made.given.rights_change ? " rights-change" : "") +
         (made.given.hopeless_answers ? " hopeless-answers" : "") + (made.given.as_kubelet ? " kubelet" : "") +
         (made.given.etcd_restored ? " etcd-restored" : "") + peculiarities_of(made.world);
}

class Runner {
 public:
  Runner(std::uint64_t seed, unsigned generation, const Sabotage& sabotage)
      : seed_(seed), generation_(generation), sabotage_(sabotage), made_(make_case(seed, generation)) {}

  SeededRun run() {
    std::exception_ptr failure;
    asio::co_spawn(context_, whole(), [&](std::exception_ptr thrown) {
      ended_ = true;
      failure = thrown;
    });
    // Longer than the drain itself may take.
    const auto stop = clock_.run(clock_.now() + std::max<Duration>(24h, longest(made_) + 1h), 3'000'000);
    if (failure) std::rethrow_exception(failure);
    if (!ended_)
      checks_.violated(stop == sim::VirtualClock::Stop::idle ? "P9: everything sleeps for ever" : "P10: a livelock");
    if (ended_ && clock_.sleepers() != 0) checks_.violated("a sleeper was left behind");
    context_.restart();
    if (ended_ && context_.poll() != 0) checks_.violated("work was left behind");
    SeededRun result{seed_,           generation_,           setting_of(made_),  outcome_, checks_.violations(),
                     checks_.trace(), clock_.now() - start_, checks_.requests(), 0};
    return result;
  }
  std::size_t faults_struck() const { return faults_struck_; }
  bool has_ended() const { return ended_; }

 private:
  void stage_world() {
    for (auto& incident : made_.world.incidents)
      incident.act = [this, what = incident.what, act = std::move(incident.act)](sim::TestCluster& cluster) {
        checks_.note("incident: " + what);
        act(cluster);
      };
    fault_rules_ = sim::stage(made_.world, cluster_, clock_.now());
    cluster_.set_token("kubelet", sim::kubelet_of(made_.world.node));
    for (const auto& [after, delta] : made_.wall_jumps)
      cluster_.after(after, [this, delta] {
        checks_.note("the drain's wall clock jumps");
        drains_clock_.shift_wall(delta);
      });
  }

  asio::awaitable<void> whole() {
    stage_world();
    co_await with_task_group([this](TaskGroup& group) -> asio::awaitable<void> {
      group.spawn(cluster_.run());
      co_await clock_.sleep_until(clock_.now() + made_.begins_after);
      co_await one_drain();
      // All streams are dropped and all pending answers have lost their receivers. So no watch may remain open on the
      // server.
      co_await clock_.sleep_until(clock_.now() + std::chrono::seconds(1));
      if (cluster_.open_watches() != 0) checks_.violated("a watch was left open");
    });
  }

  asio::awaitable<void> one_drain() {
    sim::TokenTransport as_kubelet(cluster_.api(), "kubelet");
    http::Transport& api = made_.given.as_kubelet ? as_kubelet : cluster_.api();
    sim::FaultTransport faulty(api, clock_, fault_rng_, fault_rules_);
    checks_.stand_before(faulty);
    checks_.began();
    const drain::Options& options = made_.given.options;
    const auto saboteur = sabotage_ ? sabotage_(checks_) : nullptr;
    http::Transport& way = saboteur ? *saboteur : checks_;
    k8s::Client client(way, drains_clock_, {k8s::FieldValidation::strict, options.page_size});
    drain::Drain drain(client, drain_rng_, checks_, options, made_.world.node);
    auto report = co_await with_deadline(clock_, start_ + longest(made_), run_of(drain));
    const drain::Report last = report ? *report : drain.report();
    outcome_ = to_string(last.outcome);
    if (!report)
      for (const auto& pod : last.pods)
        checks_.note(fmt::format("left {} {} {} {}", pod.key(), to_string(pod.outcome), pod.reason, pod.message));
    checks_.ended(last);
    if (last.outcome == drain::Outcome::cancelled) co_await give_back(client, drain, last.node_uid);
    for (const std::string& struck : faulty.struck()) checks_.note("fault: " + struck);
    faults_struck_ = faulty.struck().size();
  }

  // As the command does on Ctrl-C.
  asio::awaitable<void> give_back(k8s::Client& client, const drain::Drain& drain, std::string node_uid) {
    const auto given = co_await drain::give_back_surged(client, drain_rng_, made_.world.node, drain.surged(),
                                                        clock_.now() + Duration(5min));
    if (drain.may_have_requested())
      static_cast<void>(co_await drain::withdraw_requests(client, drain_rng_, node_uid, drain.asked(),
                                                          clock_.now() + Duration(5min)));
    checks_.note(given ? "given back; left: " + drain::words_of(given->left)
                       : "cannot give back: " + given.error().message());
    checks_.gave_back();
  }

  std::uint64_t seed_;
  unsigned generation_;
  const Sabotage& sabotage_;
  Case made_;
  asio::io_context context_{1};
  sim::VirtualClock clock_{context_};
  SkewedClock drains_clock_{clock_};
  SeededRng world_rng_{seed_ + 1'000'003}, drain_rng_{seed_ + 2'000'003}, fault_rng_{seed_ + 3'000'017};
  sim::TestCluster cluster_{context_.get_executor(), clock_, world_rng_};
  Invariants checks_{cluster_, clock_, made_.given};
  std::vector<sim::FaultRule> fault_rules_;
  TimePoint start_ = clock_.now();
  std::string outcome_;
  std::size_t faults_struck_ = 0;
  bool ended_ = false;
};

}  // namespace

SeededRun run_seed(std::uint64_t seed, unsigned generation, const Sabotage& sabotage) {
  auto runner = std::make_unique<Runner>(seed, generation, sabotage);
  SeededRun result = runner->run();
  result.faults_struck = runner->faults_struck();
  // A run that never ends leaves coroutines behind, and a TaskGroup ends the program if it is destroyed before its
  // children have ended. So that the result is reported, they are never destroyed.
  if (!runner->has_ended()) static_cast<void>(runner.release());
  return result;
}

}  // namespace haulout::scenario
