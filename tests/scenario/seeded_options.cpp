#include "tests/scenario/seeded_options.hpp"

#include <fmt/format.h>

namespace haulout::scenario {
namespace {

using namespace std::chrono_literals;

void set_policy_of_the_command(drain::Options& options, Rng& rng) {
  using drain::Treatment;
  drain::Policy& policy = options.policy;
  policy.daemon_set = rng.chance(90) ? Treatment::skip : Treatment::refuse;
  policy.orphaned_daemon_set = rng.chance(80) ? Treatment::evict : Treatment::refuse;
  policy.finished = Treatment::evict;
  policy.empty_dir = rng.chance(85) ? Treatment::evict : Treatment::refuse;
  policy.unmanaged = rng.chance(85) ? Treatment::evict : Treatment::refuse;
  policy.do_not_disrupt = rng.chance(80) ? Treatment::evict : Treatment::park;
  if (rng.chance(10)) policy.skip_terminating_after = rng.between(Duration(1s), Duration(120s));
  if (rng.chance(15))
    options.grace_seconds = static_cast<std::int64_t>(rng.between(std::uint64_t{1}, std::uint64_t{40}));
  options.restore_cordon_on_failure = rng.chance(30);
  options.fail_fast = true;
}

drain::Options first_options(Rng& rng) {
  drain::Options options;
  options.run_id = "seeds";
  options.max_concurrent = static_cast<std::size_t>(rng.between(std::uint64_t{0}, std::uint64_t{8}));
  if (rng.chance(50)) options.settle = rng.between(Duration(0s), Duration(8s));
  if (rng.chance(10)) options.settle = 0s;
  if (rng.chance(25)) options.timeout = rng.between(Duration(5s), Duration(240s));
  if (rng.chance(40)) options.page_size = static_cast<std::uint32_t>(rng.between(std::uint64_t{1}, std::uint64_t{20}));
  if (rng.chance(40)) set_policy_of_the_command(options, rng);
  return options;
}

void take_turns_in_some(drain::Options& options, std::uint64_t seed, unsigned generation) {
  if (generation < 4) return;
  SeededRng rng(seed * 0x9e3779b97f4a7c15u + 4);
  if (rng.chance(40)) options.volume_turns = drain::VolumeWait::if_permitted;
}

void look_elsewhere_in_some(drain::Options& options, std::uint64_t seed, unsigned generation) {
  if (generation < 5) return;
  SeededRng rng(seed * 0x9e3779b97f4a7c15u + 6);
  if (rng.chance(60)) options.reattach_limit = rng.between(Duration(1s), Duration(120s));
}

std::uint64_t pick(Rng& rng, std::uint64_t low, std::uint64_t high) {
  return rng.between(low, high);
}

drain::Guards some_guards(Rng& rng) {
  drain::Guards guards;
  if (rng.chance(35)) {
    const bool percent = rng.chance(50);
    guards.max_unavailable =
        drain::Share{static_cast<std::uint32_t>(percent ? pick(rng, 10, 100) : pick(rng, 1, 3)), percent};
  }
  if (rng.chance(20)) guards.canary = rng.between(Duration(1s), Duration(60s));
  if (rng.chance(15)) guards.single_replica = rng.chance(60) ? drain::SingleReplica::warn : drain::SingleReplica::block;
  return guards;
}

// The selectors use the labels of generated worlds.
void select_some(drain::Options& options, Rng& rng) {
  if (rng.chance(40))
    for (std::uint64_t i = pick(rng, 1, 3); i > 0; --i)
      options.order.push_back(
          drain::parse_order_rule(fmt::format("app=app{}={}", pick(rng, 1, 6), static_cast<int>(pick(rng, 0, 6)) - 3))
              .value());
  if (rng.chance(10))
    options.policy.pod_selector = k8s::parse_label_selector(fmt::format("app!=app{}", pick(rng, 1, 6))).value();
}

void switch_on_more(drain::Options& options, const sim::GeneratedWorld& world) {
  SeededRng rng(world.seed * 0x9e3779b97f4a7c15u + 8);
  options.guards = some_guards(rng);
  select_some(options, rng);
  if (rng.chance(15)) options.fit = rng.chance(50) ? drain::FitPolicy::warn : drain::FitPolicy::block;
  if (rng.chance(2)) options.fit = drain::FitPolicy::require;
  if (rng.chance(20)) options.volumes = rng.chance(50) ? drain::VolumeWait::required : drain::VolumeWait::off;
  if (rng.chance(20)) options.volume_limit = rng.chance(30) ? 0s : rng.between(Duration(5s), Duration(60s));
  options.end_at_volume_limit = rng.chance(12);
  options.delete_instead_of_evict = rng.chance(10);
  if (rng.chance(60)) options.own_pod_uid = world.own_pod_uid;
  options.review_access = !rng.chance(30);
}

void leave_some(drain::Options& options, std::uint64_t seed) {
  SeededRng rng(seed * 0x9e3779b97f4a7c15u + 18);
  if (rng.chance(30)) options.policy.pinned = drain::Treatment::skip;
  if (rng.chance(10))
    options.policy.leave.push_back(k8s::parse_label_selector(fmt::format("app=app{}", pick(rng, 1, 6))).value());
  if (options.fail_fast && rng.chance(25)) options.grace_seconds = static_cast<std::int64_t>(pick(rng, 0, 20));
}

// The rules use the labels and kinds of generated worlds. Their forms are those that Invariants::handling() reads.
void follow_some_rules(drain::Options& options, std::uint64_t seed) {
  SeededRng rng(seed * 0x9e3779b97f4a7c15u + 20);
  using drain::ClusterApiLabels;
  options.policy.cluster_api_labels = rng.chance(30)   ? ClusterApiLabels::off
                                      : rng.chance(50) ? ClusterApiLabels::wait
                                                       : ClusterApiLabels::all;
  const auto add = [&options](const std::string& rule) {
    options.policy.rules.push_back(drain::parse_pod_rule(rule).value());
  };
  if (rng.chance(20)) add(fmt::format("app=app{}=evict", pick(rng, 1, 6)));
  if (rng.chance(10)) add(fmt::format("app=app{}=skip", pick(rng, 1, 6)));
  if (rng.chance(25)) add(fmt::format("app=app{}=last", pick(rng, 1, 6)));
  if (rng.chance(60))
    add(rng.chance(50) ? "kind:Job=wait-completed" : fmt::format("kind:Job=wait-completed={}s", pick(rng, 5, 90)));
}

// The DaemonSet of a generated world is "agent".
void evict_some_daemon_sets(drain::Options& options, std::uint64_t seed) {
  SeededRng rng(seed * 0x9e3779b97f4a7c15u + 25);
  if (rng.chance(60)) options.policy.evict_daemon_sets.push_back(k8s::parse_label_selector("app=agent").value());
  if (rng.chance(20)) options.policy.rules.push_back(drain::parse_pod_rule("app in (agent)=wait-completed").value());
}

// The limit is longer than a replacement in a generated world needs to be Ready if nothing keeps it from that.
void surge_in_some(drain::Options& options, std::uint64_t seed) {
  SeededRng rng(seed * 0x9e3779b97f4a7c15u + 22);
  if (!rng.chance(85)) return;
  using drain::Surge;
  options.guards.surge = rng.chance(65) ? Surge::all : rng.chance(50) ? Surge::closed_budget : Surge::single_replica;
  options.guards.surge_limit = rng.between(Duration(40s), Duration(300s));
}

// The rules use the labels of the gangs of generated worlds.
void treat_gangs(drain::Options& options, std::uint64_t seed) {
  SeededRng rng(seed * 0x9e3779b97f4a7c15u + 24);
  using drain::Treatment;
  options.policy.gangs = rng.chance(50) ? Treatment::evict : rng.chance(65) ? Treatment::park : Treatment::refuse;
  for (const char* action : {"evict", "last", "skip", "wait-completed=30s"})
    if (rng.chance(8))
      options.policy.rules.push_back(
          drain::parse_pod_rule(fmt::format("app=gang{}={}", pick(rng, 1, 3), action)).value());
}

void ask_responders_in_some(drain::Options& options, std::uint64_t seed) {
  SeededRng rng(seed * 0x9e3779b97f4a7c15u + 27);
  if (!rng.chance(80)) return;
  options.eviction_requests = drain::EvictionRequests::responders;
  options.eviction_request_limit = rng.between(Duration(5s), Duration(180s));
}

// Switches off what a kubelet's credential may not read, as the agent does.
void keep_to_the_node(drain::Options& options) {
  options.guards = {};
  options.fit = drain::FitPolicy::off;
  options.volume_turns = drain::VolumeWait::off;
  options.review_access = false;
}

}  // namespace

drain::Options some_options(Rng& rng, const sim::GeneratedWorld& world, unsigned generation) {
  drain::Options options = first_options(rng);
  take_turns_in_some(options, world.seed, generation);
  look_elsewhere_in_some(options, world.seed, generation);
  if (generation >= 6) switch_on_more(options, world);
  if (generation >= 8) leave_some(options, world.seed);
  if (generation >= 9) follow_some_rules(options, world.seed);
  if (generation >= 10) surge_in_some(options, world.seed);
  if (generation >= 11) treat_gangs(options, world.seed);
  if (generation >= 11) evict_some_daemon_sets(options, world.seed);
  if (generation >= 12) ask_responders_in_some(options, world.seed);
  if (world.as_kubelet) keep_to_the_node(options);
  // If a webhook moves pods on an eviction request, it creates no replacement for a pod that is deleted instead. A
  // guard would wait for that replacement for ever.
  if (!world.migrations.empty() && options.delete_instead_of_evict) options.guards = {};
  return options;
}

std::string richer_setting(const drain::Options& options) {
  std::string text;
  const auto add = [&text](bool is_on, const std::string& what) {
    if (is_on) text += " " + what;
  };
  const drain::Guards& guards = options.guards;
  add(guards.max_unavailable.has_value(),
      "max-unavailable " + to_string(guards.max_unavailable.value_or(drain::Share())));
  add(guards.canary > Duration::zero(), "canary");
  add(guards.single_replica != drain::SingleReplica::allow,
      fmt::format("single-replica {}", drain::to_string(guards.single_replica)));
  constexpr const char* surges[] = {"off", "single-replica", "closed-budget", "all"};
  add(guards.surge != drain::Surge::off, fmt::format("surge {}", surges[static_cast<std::size_t>(guards.surge)]));
  add(options.eviction_requests != drain::EvictionRequests::off, "eviction-requests");
  add(options.fit != drain::FitPolicy::off, fmt::format("fit {}", static_cast<int>(options.fit)));
  add(!options.order.empty(), "order");
  add(!options.policy.pod_selector.empty(), "pod-selector " + to_string(options.policy.pod_selector));
  add(options.policy.pinned == drain::Treatment::skip, "pinned-left");
  add(!options.policy.leave.empty(), "leave");
  add(!options.policy.evict_daemon_sets.empty(), "evict-daemonset-pods");
  for (const drain::PodRule& rule : options.policy.rules) add(true, "rule:" + rule.text);
  add(options.policy.gangs == drain::Treatment::park, "gangs-waited-for");
  add(options.policy.gangs == drain::Treatment::refuse, "gangs-refused");
  add(options.volumes == drain::VolumeWait::off, "volumes-off");
  add(options.volumes == drain::VolumeWait::required, "volumes-required");
  add(options.end_at_volume_limit, "end-at-volume-limit");
  add(options.delete_instead_of_evict, "delete");
  add(!options.own_pod_uid.empty(), "own-pod");
  add(!options.review_access, "no-review");
  return text;
}

}  // namespace haulout::scenario
