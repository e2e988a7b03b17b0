// Surge: the drain has a replacement of a Deployment's pod created, and evicts the pod when the replacement is Ready.
#include <fmt/format.h>
#include <functional>

#include "tests/scenario/surge_fixture.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::Outcome;
using drain::Surge;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Surges : public SurgeScenario {};

struct BudgetRow {
  Json spec;
  int replicas;
  bool closed;
};

void PrintTo(const BudgetRow& row, std::ostream* out) {
  *out << row.spec.dump() << " of " << row.replicas;
}

class SurgesUnderABudget : public SurgeScenario, public ::testing::WithParamInterface<BudgetRow> {};

TEST_P(SurgesUnderABudget, NoReadyPodIsMissedAtAnyTime) {
  const BudgetRow& row = GetParam();
  deploy("web", row.replicas);
  add(a_budget("web", row.spec));
  watch_ready("web");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(fewest_, static_cast<std::size_t>(row.replicas));
  EXPECT_EQ(accepted_evictions(), static_cast<std::size_t>(row.replicas));
  EXPECT_THAT(patches(), SizeIs(static_cast<std::size_t>(row.replicas)));
  EXPECT_THAT(marked(), IsEmpty());
}

TEST_P(SurgesUnderABudget, OnlyAClosedBudgetNeedsIt) {
  const BudgetRow& row = GetParam();
  deploy("web", row.replicas);
  add(a_budget("web", row.spec));
  options.guards.surge = Surge::closed_budget;
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(patches().empty(), !row.closed);
  EXPECT_THAT(marked(), IsEmpty());
}

TEST_P(SurgesUnderABudget, WithoutItAClosedBudgetStaysClosed) {
  const BudgetRow& row = GetParam();
  deploy("web", row.replicas);
  add(a_budget("web", row.spec));
  options.guards.surge = Surge::off;
  EXPECT_THAT(drain(), Ended(row.closed ? Outcome::blocked : Outcome::drained));
  EXPECT_THAT(patches(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Table, SurgesUnderABudget,
    ::testing::Values(BudgetRow{{{"minAvailable", 1}}, 1, true}, BudgetRow{{{"minAvailable", 1}}, 3, false},
                      BudgetRow{{{"minAvailable", "50%"}}, 1, true}, BudgetRow{{{"minAvailable", "50%"}}, 3, false},
                      BudgetRow{{{"minAvailable", "100%"}}, 3, true}, BudgetRow{{{"maxUnavailable", 0}}, 3, true},
                      BudgetRow{{{"maxUnavailable", "0%"}}, 1, true}, BudgetRow{{{"maxUnavailable", 1}}, 3, false}));

struct PlacesRow {
  Json strategy;
  std::size_t most;
};

void PrintTo(const PlacesRow& row, std::ostream* out) {
  *out << row.strategy.dump();
}

class PlacesOfASurge : public SurgeScenario, public ::testing::WithParamInterface<PlacesRow> {};

TEST_P(PlacesOfASurge, AreThoseOfMaxSurgeButOneAtLeast) {
  deploy("web", 4, {{"spec", {{"strategy", {{"type", "RollingUpdate"}, {"rollingUpdate", GetParam().strategy}}}}}});
  watch_ready("web");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(accepted_evictions(), 4u);
  EXPECT_EQ(most_unowned_, GetParam().most);
  EXPECT_EQ(fewest_, 4u);
}

// The default is 25%.
INSTANTIATE_TEST_SUITE_P(Table, PlacesOfASurge,
                         ::testing::Values(PlacesRow{Json::object(), 1}, PlacesRow{{{"maxSurge", 1}}, 1},
                                           PlacesRow{{{"maxSurge", 3}}, 3}, PlacesRow{{{"maxSurge", "10%"}}, 1},
                                           PlacesRow{{{"maxSurge", "50%"}}, 2}, PlacesRow{{{"maxSurge", "100%"}}, 4}));

TEST_F(Surges, OnlySingleReplicas) {
  deploy("one", 1);
  deploy("two", 2);
  options.guards.surge = Surge::single_replica;
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  ASSERT_THAT(patches(), SizeIs(1));
  EXPECT_THAT(patches()[0].name, HasSubstr("one-"));
}

TEST_F(Surges, AnAnnotationDecidesForAPodOrItsNamespace) {
  add({{"apiVersion", "v1"},
       {"kind", "Namespace"},
       {"metadata", {{"name", "shop"}, {"annotations", {{"haulout.dev/surge", "true"}}}}}});
  deploy("wanted", 2);
  deploy("never", 1, of_template({{"metadata", {{"annotations", {{"haulout.dev/surge", "false"}}}}}}));
  options.guards.surge = Surge::single_replica;
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(patches(), SizeIs(2));
  for (const auto& patch : patches()) EXPECT_THAT(patch.name, HasSubstr("wanted-"));
  EXPECT_FALSE(told.raised("SurgeImpossible")) << "nobody wants it";
}

TEST_F(Surges, WhatCannotBeSurgedIsEvictedAndSaid) {
  add(a_volume("data"));
  add(a_volume("files", Json::object(), "ReadWriteMany"));
  deploy("recreated", 1, {{"spec", {{"strategy", {{"type", "Recreate"}}}}}});
  deploy("fixed", 1, {{"spec", {{"strategy", {{"rollingUpdate", {{"maxSurge", 0}}}}}}}});
  deploy("complete", 1, {{"spec", {{"podReplacementPolicy", "TerminationComplete"}}}});
  deploy("disk", 1, of_template({{"spec", mounting({"data"})}}));
  Json port = {{"name", "main"}, {"ports", {{{"hostPort", 80}, {"containerPort", 80}}}}};
  deploy("port", 1, of_template({{"spec", {{"containers", Json::array({port})}}}}));
  add(a_workload("StatefulSet", "db", 1, {{"terminationGracePeriodSeconds", 5}},
                 {{"sim.haulout.dev/prefers-node", "n1"}}));
  add(a_workload("ReplicaSet", "alone", 1, {{"terminationGracePeriodSeconds", 5}},
                 {{"sim.haulout.dev/prefers-node", "n1"}}));
  deploy("shared", 1, of_template({{"spec", mounting({"files"})}}));
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(accepted_evictions(), 8u);
  ASSERT_THAT(patches(), SizeIs(1));
  EXPECT_THAT(patches()[0].name, HasSubstr("shared-"));
  EXPECT_TRUE(told.advised("SurgeImpossible"));
}

TEST_F(Surges, APodThatARuleEvictsLastIsReplacedWhenItsTurnComes) {
  deploy("web", 1);
  add(a_pod("other", {.grace = 30, .annotations = {{"sim.haulout.dev/terminates-after", "30s"}}}));
  options.policy.rules.push_back(drain::parse_pod_rule("controller:Deployment/shop/web=last").value());
  watch_ready("web");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(fewest_, 1u);
  ASSERT_THAT(patches(), SizeIs(1));
  EXPECT_EQ(evictions().front().name, "other");
  EXPECT_GE(patches()[0].time - evictions().front().time, 30s);
}

// A second pod of the gang would not be of use to it, and it is not what the owner of the gang has asked for.
TEST_F(Surges, AMemberOfAGangIsEvictedWithoutAReplacementInAdvance) {
  deploy("web", 1, of_template({{"spec", {{"schedulingGroup", {{"podGroupName", "train"}}}}}}));
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(patches(), IsEmpty());
  EXPECT_THAT(told.message_of("SurgeImpossible"),
              HasSubstr("members of PodGroup shop/train, which runs only as a whole"));
}

TEST_F(Surges, ADryRunTellsWhatWouldBeSurgedAndWritesNothing) {
  deploy("web", 2);
  deploy("recreated", 1, {{"spec", {{"strategy", {{"type", "Recreate"}}}}}});
  deploy("never", 1, of_template({{"metadata", {{"annotations", {{"haulout.dev/surge", "false"}}}}}}));
  for (const drain::DryRunMode mode : {drain::DryRunMode::client, drain::DryRunMode::server}) {
    options.dry_run = mode;
    EXPECT_THAT(drain().message,
                AllOf(HasSubstr("4 pods would be evicted; 2 pods would be replaced in advance (--surge)"),
                      HasSubstr("the strategy of Deployment shop/recreated is Recreate")));
    EXPECT_THAT(patches(), IsEmpty());
  }
}

// A person repairs what keeps the replacement from being Ready. Until then the pod is given back and waits.
TEST_F(Surges, AQuotaThatRefusesTheReplacement) {
  deploy("web", 1);
  watch_ready("web");
  after(0s, [this] {
    cluster.create("resourcequotas",
                   {{"metadata", {{"name", "few"}, {"namespace", "shop"}}}, {"spec", {{"hard", {{"pods", "1"}}}}}});
  });
  after(90s, [this] {
    EXPECT_THAT(marked(), IsEmpty());
    EXPECT_THAT(unowned("web"), IsEmpty());
    EXPECT_TRUE(told.raised("SurgeFailed"));
    cluster.remove("resourcequotas", "shop", "few");
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(patches(), SizeIs(4)) << "released, given back in two steps, released";
  EXPECT_EQ(fewest_, 1u);
  EXPECT_GT(took(), 3min);
  EXPECT_LT(took(), 15min);
}

// The list with which the drain gives its pods back at its end is never answered.
TEST_F(Surges, AListThatHangsKeepsNoPodFromItsWayBack) {
  deploy("web", 1);
  for (const char* node : {"n2", "n3"}) after(0s, [this, node] { cluster.cordon(node); });
  options.guards.surge_limit = 10min;
  options.timeout = 3min;
  sim::FaultTransport faulty(cluster.api(), clock, rng,
                             {{.verb = "list",
                               .resource = "pods",
                               .count = 1,
                               .from = clock.now() + 2min,
                               .fault = {.kind = sim::FaultKind::stall}}});
  way = &faulty;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_THAT(faulty.struck(), SizeIs(1));
  EXPECT_THAT(unowned("web"), IsEmpty());
  EXPECT_THAT(marked(), IsEmpty());
}

TEST_F(Surges, NoRoomElsewhere) {
  deploy("web", 2);
  for (const char* node : {"n2", "n3"}) after(0s, [this, node] { cluster.cordon(node); });
  watch_ready("web");
  options.timeout = 3min;
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_EQ(accepted_evictions(), 0u);
  EXPECT_EQ(fewest_, 2u);
  EXPECT_THAT(marked(), IsEmpty());
  EXPECT_THAT(unowned("web"), IsEmpty());
  EXPECT_THAT(pods_of("web"), SizeIs(2)) << "the ReplicaSet has deleted the replacement that found no node";
}

TEST_F(Surges, AReplacementThatIsNeverReady) {
  deploy("web", 1);
  watch_ready("web");
  after(0s, [this] {
    for (const Json& set : cluster.all("replicasets"))
      cluster.patch("replicasets", "shop", sim::name_of(set),
                    of_template({{"metadata", {{"annotations", {{"sim.haulout.dev/never-ready", "true"}}}}}}));
  });
  options.timeout = 20min;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_EQ(fewest_, 1u);
  EXPECT_THAT(marked(), IsEmpty());
  EXPECT_GE(patches().size(), 6u) << "tried again, with three patches each";
  EXPECT_LE(patches().size(), 15u);
}

TEST_F(Surges, TheDeadlineGivesBack) {
  deploy("web", 1);
  watch_ready("web");
  start_slowly(10min);
  options.timeout = 30s;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_THAT(marked(), IsEmpty());
  ASSERT_THAT(pods_of("web"), SizeIs(::testing::Ge(1u)));
  EXPECT_EQ(fewest_, 1u);
  EXPECT_LT(took(), 45s);
}

// The deadline may come between the answer to a patch and the event that shows it.
TEST_F(Surges, TheDeadlineMayComeAtAnyTime) {
  options.guards.surge_limit = 20min;
  for (Duration timeout = 10ms; timeout <= 400ms; timeout += 10ms) {
    SCOPED_TRACE(std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count());
    options.timeout = timeout;
    std::optional<drain::Report> report;
    run(with_task_group([&](TaskGroup& world) -> boost::asio::awaitable<void> {
      world.spawn(cluster.run());
      cluster.timing().pod_start = 1s;
      deploy("web", 1);
      co_await clock.sleep_until(clock.now() + 10s);
      cluster.timing().pod_start = 10min;
      k8s::Client client(cluster.api(), clock, {k8s::FieldValidation::strict});
      drain::Drain drain(client, rng, told, options, "n1");
      report = co_await drain.run();
      EXPECT_THAT(marked(), IsEmpty());
      co_await clock.sleep_until(clock.now() + 1s);
      EXPECT_THAT(unowned("web"), IsEmpty());
      cluster.uncordon("n1");
      cluster.remove("deployments", "shop", "web");
      for (const Json& set : cluster.all("replicasets")) cluster.remove("replicasets", "shop", sim::name_of(set));
      for (const Json& pod : cluster.all("pods")) cluster.remove("pods", "shop", sim::name_of(pod));
    }));
    if (HasFailure()) return;
  }
  EXPECT_GT(patches().size(), 30u) << "most of these drains have released the pod";
}

// A budget over two Deployments counts a pod without an owner as healthy, but not as expected. So it would allow to
// evict a pod of the other one.
class SurgesUnderASharedBudget : public SurgeScenario, public ::testing::WithParamInterface<bool> {};

TEST_P(SurgesUnderASharedBudget, DoNotOpenIt) {
  const Json part = {{"metadata", {{"labels", {{"part", "shop"}}}}}};
  deploy("web", 1, of_template(part));
  Json fixed = of_template(part);
  fixed["spec"]["strategy"] = {{"type", "Recreate"}};
  deploy("api", 3, fixed);
  add(a_budget("all", {{"maxUnavailable", 0}, {"selector", {{"matchLabels", {{"part", "shop"}}}}}}));
  if (GetParam())
    after(0s, [this] {
      cluster.create("resourcequotas",
                     {{"metadata", {{"name", "few"}, {"namespace", "shop"}}}, {"spec", {{"hard", {{"pods", "4"}}}}}});
    });
  watch_ready("api");
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_EQ(fewest_, 3u);
  EXPECT_THAT(patches(), IsEmpty());
  EXPECT_TRUE(told.advised("SurgeImpossible"));
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutQuota, SurgesUnderASharedBudget, ::testing::Bool());

TEST_F(Surges, AnAutoscalerThatScalesDownMakesItNeedless) {
  deploy("web", 3);
  start_slowly(10min);
  options.guards.surge_limit = 20min;
  after(30s, [this] { cluster.patch("deployments", "shop", "web", {{"spec", {{"replicas", 1}}}}); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(marked(), IsEmpty());
}

// Once it is surged, a pod is not refused as the only replica that is left: it would stay surged for ever.
TEST_F(Surges, ASurgedPodIsNotRefusedAsTheOnlyReplica) {
  deploy("web", 2);
  start_slowly(1min);
  options.guards.surge_limit = 20min;
  options.guards.single_replica = drain::SingleReplica::block;
  after(10s, [this] {
    ASSERT_THAT(unowned("web"), SizeIs(1));
    cluster.patch("deployments", "shop", "web", {{"spec", {{"replicas", 1}}}});
    for (const Json& pod : pods_of("web"))
      if (sim::text(pod, "/spec/nodeName") == "n1" && sim::name_of(pod) != unowned("web")[0])
        cluster.delete_gracefully("pods", "shop", sim::name_of(pod));
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(marked(), IsEmpty());
}

TEST_F(Surges, ADeploymentThatIsDeletedKeepsNothing) {
  deploy("web", 1);
  start_slowly(10min);
  options.guards.surge_limit = 20min;
  after(20s, [this] {
    EXPECT_THAT(unowned("web"), SizeIs(1));
    cluster.remove("deployments", "shop", "web");
    for (const Json& set : cluster.all("replicasets")) cluster.remove("replicasets", "shop", sim::name_of(set));
    for (const Json& pod : pods_of("web"))
      if (!sim::controller_of(pod).is_null()) cluster.delete_gracefully("pods", "shop", sim::name_of(pod));
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LT(took(), 5min);
  EXPECT_THAT(pods_of("web"), IsEmpty());
}

TEST_F(Surges, ALabelThatAPersonGivesBack) {
  deploy("web", 1);
  watch_ready("web");
  start_slowly(20s);
  after(10s, [this] {
    ASSERT_THAT(unowned("web"), SizeIs(1));
    const std::string name = unowned("web")[0];
    const Json told_hash = Json::parse(sim::annotation(cluster.get("pods", "shop", name), mark))["hash"];
    cluster.patch("pods", "shop", name, {{"metadata", {{"labels", {{hash_label, told_hash}}}}}});
  });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(fewest_, 1u);
  EXPECT_THAT(marked(), IsEmpty());
}

class SurgesOfTwoDrains : public SurgeScenario {
 protected:
  boost::asio::awaitable<void> drain_one(std::string node, SeededRng& own, std::optional<drain::Report>& report) {
    k8s::Client client(cluster.api(), clock, {k8s::FieldValidation::strict});
    drain::Drain drain(client, own, told, options, node);
    report = co_await drain.run();
  }
  SeededRng one_{7}, other_{8};
};

TEST_F(SurgesOfTwoDrains, ShareADeployment) {
  Json spread = {{"spec", {{"strategy", {{"rollingUpdate", {{"maxSurge", 1}}}}}}}};
  deploy("web", 4, spread);
  std::optional<drain::Report> first, second;
  run(with_task_group([&](TaskGroup& world) -> boost::asio::awaitable<void> {
    world.spawn(cluster.run());
    co_await clock.sleep_until(clock.now() + 5s);
    std::size_t moved = 0;
    for (const Json& pod : pods_of("web"))
      if (moved++ % 2 == 0) cluster.patch("pods", "shop", sim::name_of(pod), {{"spec", {{"nodeName", "n2"}}}});
    watch_ready_now("web");
    co_await with_task_group([&](TaskGroup& both) -> boost::asio::awaitable<void> {
      both.spawn(drain_one("n1", one_, first));
      both.spawn(drain_one("n2", other_, second));
      co_await clock.sleep_until(clock.now() + 1h);
    });
  }));
  ASSERT_TRUE(first && second);
  EXPECT_THAT(*first, Ended(Outcome::drained));
  EXPECT_THAT(*second, Ended(Outcome::drained));
  EXPECT_EQ(fewest_, 4u);
  EXPECT_THAT(marked(), IsEmpty());
  EXPECT_THAT(pods_on("n3"), SizeIs(4));
}

// A drain that dies at its k-th request, before the server gets it or after it has carried it out.
class DyingTransport final : public http::Transport {
 public:
  DyingTransport(http::Transport& inner, Clock& clock, std::size_t at, bool carried_out)
      : inner_(inner), clock_(clock), left_(at), carried_out_(carried_out) {}

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override {
    if (left_ > 0 && --left_ == 0) {
      if (carried_out_) static_cast<void>(co_await inner_.round_trip(std::move(request), deadline));
      dead_ = true;
    }
    if (dead_) co_await clock_.sleep_until(TimePoint::max());
    co_return co_await inner_.round_trip(std::move(request), deadline);
  }
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override {
    return inner_.open(std::move(request), deadline);
  }
  bool dead() const { return dead_; }
  void die() { dead_ = true; }

 private:
  http::Transport& inner_;
  Clock& clock_;
  std::size_t left_;
  bool carried_out_;
  bool dead_ = false;
};

struct Successor {
  const char* what;
  Surge surge;
  bool carried_out;
};

void PrintTo(const Successor& row, std::ostream* out) {
  *out << row.what;
}

class SurgesThatDie : public SurgeScenario {
 protected:
  boost::asio::awaitable<void> drain_once(http::Transport& transport, std::optional<drain::Report>& report) {
    k8s::Client client(transport, clock, {k8s::FieldValidation::strict});
    drain::Drain drain(client, rng, told, options, "n1");
    report = co_await drain.run();
  }
  // Drains until the condition is true, and then kills the drain.
  boost::asio::awaitable<void> drain_until(std::function<bool()> condition) {
    DyingTransport dying(cluster.api(), clock, 0, false);
    std::optional<drain::Report> none;
    co_await with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
      group.spawn(drain_once(dying, none));
      while (!condition()) co_await clock.sleep_until(clock.now() + 10ms);
      dying.die();
    });
  }
};

// A drain without surge and without a budget comes after one that was killed. The replacement is Ready, so the pod that
// it replaces goes. If the pod were given back, its ReplicaSet could delete the replacement.
TEST_F(SurgesThatDie, AReplacementIsNotWasted) {
  deploy("web", 1);
  start_slowly(20s);
  std::optional<drain::Report> second;
  run(with_task_group([&](TaskGroup& world) -> boost::asio::awaitable<void> {
    world.spawn(cluster.run());
    cluster.timing().pod_start = 1s;
    co_await clock.sleep_until(clock.now() + 10s);
    watch_ready_now("web");
    cluster.timing().pod_start = 20s;
    co_await drain_until([this] { return !marked().empty(); });
    co_await clock.sleep_until(clock.now() + 1min);
    EXPECT_EQ(ready_of("web"), 2u);
    options.guards.surge = Surge::off;
    co_await drain_once(cluster.api(), second);
  }));
  ASSERT_TRUE(second);
  EXPECT_THAT(*second, Ended(Outcome::drained));
  EXPECT_EQ(fewest_, 1u);
  EXPECT_THAT(patches(), SizeIs(1)) << "it was released, and never given back";
}

// A rollout deletes the ReplicaSet of a pod that a killed drain has surged. The next drain finds the Deployment by the
// mark, and waits for a replacement.
TEST_F(SurgesThatDie, AReplicaSetThatIsDeletedMeanwhileHidesNoDeployment) {
  deploy("web", 1);
  std::optional<drain::Report> second;
  run(with_task_group([&](TaskGroup& world) -> boost::asio::awaitable<void> {
    world.spawn(cluster.run());
    co_await clock.sleep_until(clock.now() + 10s);
    watch_ready_now("web");
    cluster.timing().pod_start = 20s;
    co_await drain_until([this] { return !unowned("web").empty(); });
    const Json set = cluster.all("replicasets").at(0);
    cluster.remove("replicasets", "shop", sim::name_of(set));
    for (const Json& pod : pods_of("web"))
      if (!sim::controller_of(pod).is_null()) cluster.remove("pods", "shop", sim::name_of(pod));
    Json newer = {{"metadata", {{"name", "web-newer"}, {"namespace", "shop"}}}, {"spec", set["spec"]}};
    newer["metadata"]["ownerReferences"] = set["metadata"]["ownerReferences"];
    for (const char* labels : {"/spec/selector/matchLabels", "/spec/template/metadata/labels"})
      newer[Json::json_pointer(labels)][hash_label] = "newer";
    cluster.create("replicasets", newer);
    co_await drain_once(cluster.api(), second);
  }));
  ASSERT_TRUE(second);
  EXPECT_THAT(*second, Ended(Outcome::drained));
  EXPECT_EQ(fewest_, 1u) << "the pod was evicted before its replacement was Ready";
}

class SurgesWithASuccessor : public SurgesThatDie, public ::testing::WithParamInterface<Successor> {};

// Plays one crash at each request, up to the first drain that ends before it would die.
TEST_P(SurgesWithASuccessor, LeaveNothingToIt) {
  const Successor& row = GetParam();
  bool died = true;
  std::size_t at = 0;
  for (at = 1; died && at < 200; ++at) {
    SCOPED_TRACE(fmt::format("dies at request {}", at));
    const std::string name = fmt::format("web{}", at);
    options.guards.surge = Surge::all;
    options.timeout = 30min;
    std::optional<drain::Report> first, second;
    run(with_task_group([&](TaskGroup& world) -> boost::asio::awaitable<void> {
      world.spawn(cluster.run());
      cluster.uncordon("n1");
      cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", nullptr}}}});
      deploy(name, 2);
      add(a_budget(name, {{"minAvailable", "100%"}, {"selector", {{"matchLabels", {{"app", name}}}}}}));
      co_await clock.sleep_until(clock.now() + 10s);
      EXPECT_EQ(ready_of(name), 2u);
      watch_ready_now(name);
      DyingTransport dying(cluster.api(), clock, at, row.carried_out);
      co_await with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
        group.spawn(drain_once(dying, first));
        while (!dying.dead() && !first) co_await clock.sleep_until(clock.now() + 10ms);
      });
      died = !first;
      // Somebody looks after the node only later.
      co_await clock.sleep_until(clock.now() + 2min);
      EXPECT_EQ(fewest_, 2u) << "as long as nobody drains without surge";
      options.guards.surge = row.surge;
      // Without surge, the budget lets no pod go, and the deadline gives up.
      options.timeout = row.surge == Surge::off ? 1min : 30min;
      co_await drain_once(cluster.api(), second);
      co_await clock.sleep_until(clock.now() + 20s);
    }));
    ASSERT_TRUE(second);
    const bool all_gone = !died || row.surge != Surge::off;
    if (all_gone) EXPECT_THAT(*second, Ended(Outcome::drained));
    EXPECT_EQ(fewest_, 2u);
    EXPECT_THAT(marked(), IsEmpty());
    EXPECT_THAT(unowned(name), IsEmpty());
    EXPECT_THAT(pods_of(name), SizeIs(2));
    cluster.remove("deployments", "shop", name);
    cluster.remove("poddisruptionbudgets", "shop", name);
    for (const Json& set : cluster.all("replicasets")) cluster.remove("replicasets", "shop", sim::name_of(set));
    for (const Json& pod : cluster.all("pods")) cluster.remove("pods", "shop", sim::name_of(pod));
    if (HasFailure()) return;
  }
  EXPECT_GT(at, 15u) << "there is more than this to ask for";
  EXPECT_LT(at, 200u);
}

INSTANTIATE_TEST_SUITE_P(Table, SurgesWithASuccessor,
                         ::testing::Values(Successor{"another with surge", Surge::all, false},
                                           Successor{"another with surge, answer lost", Surge::all, true},
                                           Successor{"one without surge", Surge::off, false},
                                           Successor{"one without surge, answer lost", Surge::off, true}));

}  // namespace
}  // namespace haulout::scenario
