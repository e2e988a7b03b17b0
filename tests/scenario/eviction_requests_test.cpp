// EvictionRequests (KEP-4563): the responders of a pod are asked before the pod is evicted.
#include <fmt/format.h>

#include "drain/eviction_request_feed.hpp"
#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::EventType;
using drain::Outcome;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

class EvictionRequests : public Scenario {
 protected:
  EvictionRequests() {
    options.eviction_requests = drain::EvictionRequests::responders;
    options.timeout = 1h;
    cluster.switches().eviction_requests = true;
  }

  // Adds a pod with one responder for each entry of `behaviours` (sim/eviction_requests.hpp), in this order.
  void add_asked(const std::string& name, const std::string& behaviours, PodSpec spec = {}) {
    Json responders = Json::array();
    const auto count = static_cast<int>(std::ranges::count(behaviours, ',')) + 1;
    for (int i = 0; i < count; ++i)
      responders.push_back({{"name", fmt::format("acme.io/responder-{}", i)}, {"priority", 10000 - i}});
    spec.spec["evictionResponders"] = responders;
    spec.annotations["sim.haulout.dev/responders"] = behaviours;
    add(a_pod(name, spec));
  }
  std::vector<sim::AuditEntry> created() const { return requests("create", "evictionrequests"); }
  std::vector<sim::AuditEntry> patched() const { return requests("patch", "evictionrequests"); }
  // Returns the intents of all EvictionRequests that exist.
  std::vector<std::string> intents() const {
    std::vector<std::string> intents;
    for (const Json& request : cluster.all("evictionrequests")) intents.push_back(sim::text(request, "/spec/intent"));
    return intents;
  }
  std::string words_about(const std::string& pod) const {
    std::string words;
    for (const auto& entry : told.entries)
      if (entry.pod == pod && entry.type == EventType::parked) words += entry.reason + " " + entry.message + "\n";
    return words;
  }
  std::string node_uid() const { return sim::uid_of(cluster.get("nodes", "", "n1")); }
  Duration parked_for(const std::string& name) const {
    const auto parked = told.time_of(EventType::parked, "shop/" + name);
    return parked ? sent_at(name) - *parked : Duration::zero();
  }
};

TEST_F(EvictionRequests, S94_AResponderMovesThePod) {
  options.settle = 110s;  // so that the garbage collector has time
  add_asked("vm", "moves 90s");
  add_pods(2);
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(accepted_evictions(), 2u) << "nobody evicts the pod that its responder moves";
  ASSERT_THAT(created(), SizeIs(1));
  EXPECT_THAT(patched(), IsEmpty());
  EXPECT_THAT(took(), AllOf(Ge(110s), Le(2min)));
  EXPECT_THAT(words_about("shop/vm"),
              HasSubstr("EvictionRequested responder acme.io/responder-0 works on its eviction: moving the pod"));
  EXPECT_LT(told.time_of(EventType::vanished, "shop/web-0"), told.time_of(EventType::vanished, "shop/vm"))
      << "it delays no other pod (P9)";
  EXPECT_THAT(intents(), IsEmpty()) << "the garbage collector deletes the request of a pod that is gone";
}

TEST_F(EvictionRequests, AResponderWorksBehindABudgetThatNeverOpens) {
  add_asked("vm", "moves 90s", {.labels = {{"app", "vm"}}});
  add(a_budget("vm", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "vm"}}}}}}));
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(accepted_evictions(), 0u);
}

TEST_F(EvictionRequests, S95_ASilentResponderDelaysThePodOnlyToTheLimit) {
  add_asked("vm", "silent");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(parked_for("vm"), AllOf(Ge(5min - 1s), Le(5min + 5s)));
  EXPECT_TRUE(told.advised("EvictionRequestFailed"));
  EXPECT_THAT(told.message_of("EvictionRequestFailed"), HasSubstr("acme.io/responder-0 has not answered"));
}

TEST_F(EvictionRequests, S96_WithoutAControllerThePodIsEvictedAfterTheLimit) {
  cluster.switches().eviction_request_controller = false;
  options.eviction_request_limit = 2min;
  add_asked("vm", "moves 30s");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(parked_for("vm"), AllOf(Ge(2min - 1s), Le(2min + 5s)));
  EXPECT_THAT(told.message_of("EvictionRequestFailed"), HasSubstr("no responder has answered"));
}

TEST_F(EvictionRequests, S97_AResponderThatStopsIsWaitedForAsTheApiDefines) {
  add_asked("vm", "stops 3m");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(parked_for("vm"), AllOf(Ge(20min), Le(25min)));
}

TEST_F(EvictionRequests, AfterAResponderThatDeclinesTheNextHasItsTurn) {
  add_asked("vm", "declines 5s,moves 30s");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(accepted_evictions(), 0u);
  EXPECT_THAT(words_about("shop/vm"), HasSubstr("acme.io/responder-1 works"));
}

TEST_F(EvictionRequests, WhenAllRespondersHaveDeclinedThePodIsEvicted) {
  add_asked("vm", "declines 5s,declines 5s");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(accepted_evictions(), 1u);
  EXPECT_LT(took(), 1min);
}

TEST_F(EvictionRequests, S98_TheDeadlineWithdrawsTheRequest) {
  add_asked("vm", "works");
  options.timeout = 10min;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_EQ(accepted_evictions(), 0u);
  EXPECT_THAT(intents(), ::testing::ElementsAre("Withdrawn"));
  ASSERT_THAT(patched(), SizeIs(1));
  EXPECT_THAT(pods_on("n1"), ::testing::Contains("vm"));
}

TEST_F(EvictionRequests, APodThatNeedNotLeaveAnyMoreIsWithdrawn) {
  options.policy.do_not_disrupt = drain::Treatment::park;
  options.timeout = 5min;
  add_asked("vm", "works");
  after(1min, [this] {
    EXPECT_THAT(intents(), ::testing::ElementsAre("Eviction"));
    cluster.patch("pods", "shop", "vm", {{"metadata", {{"annotations", {{"karpenter.sh/do-not-disrupt", "true"}}}}}});
  });
  after(2min, [this] { EXPECT_THAT(intents(), ::testing::ElementsAre("Withdrawn")); });
  after(3min, [this] {
    cluster.patch("pods", "shop", "vm", {{"metadata", {{"annotations", {{"karpenter.sh/do-not-disrupt", nullptr}}}}}});
  });
  after(4min, [this] { EXPECT_THAT(intents(), ::testing::ElementsAre("Eviction")) << "it must leave again"; });
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_THAT(intents(), ::testing::ElementsAre("Withdrawn"));
}

TEST_F(EvictionRequests, S99_AServerWithoutTheApiIsSaidOnce) {
  cluster.switches().eviction_requests = false;
  add_asked("vm", "moves 90s");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LT(took(), 1min);
  EXPECT_EQ(told.count(EventType::diagnosis_raised), 1u);
  EXPECT_TRUE(told.advised("EvictionRequestsUnserved"));
  EXPECT_THAT(created(), IsEmpty());
  EXPECT_THAT(requests("list", "evictionrequests"), SizeIs(1));
}

class WithoutARight : public EvictionRequests, public ::testing::WithParamInterface<std::string> {};

TEST_P(WithoutARight, S100_ThePodIsEvictedAsEver) {
  cluster.switches().forbidden.insert(GetParam());
  options.eviction_request_limit = 1min;
  add_asked("vm", "moves 30s");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LT(took(), 2min);
  EXPECT_TRUE(told.raised("RightMissing"));
}

INSTANTIATE_TEST_SUITE_P(Table, WithoutARight,
                         ::testing::Values("list evictionrequests", "create evictionrequests", "list evictions"));

TEST_F(EvictionRequests, WithoutTheOptionOrSuchPodsNothingIsSent) {
  add_pods(3);
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(requests("list", "evictionrequests"), IsEmpty());
  EXPECT_THAT(requests("list", "evictions"), IsEmpty());
}

TEST_F(EvictionRequests, OffMeansOff) {
  options.eviction_requests = drain::EvictionRequests::off;
  add_asked("vm", "moves 90s");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LT(took(), 1min);
  for (const char* resource : {"evictionrequests", "evictions"})
    for (const char* verb : {"list", "watch", "create", "patch"})
      EXPECT_THAT(requests(verb, resource), IsEmpty()) << verb << ' ' << resource;
}

TEST_F(EvictionRequests, TheMachineThatGoesDownWaitsForNoResponder) {
  options.policy.waits_for_work = false;
  add_asked("vm", "moves 90s");
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_LT(took(), 1min);
  EXPECT_THAT(created(), IsEmpty());
}

TEST_F(EvictionRequests, AnotherRequesterKeepsItsRequest) {
  add_asked("vm", "works");
  after(0s, [this] {
    cluster.create("evictionrequests",
                   {{"metadata", {{"name", "descheduler"}, {"namespace", "shop"}}},
                    {"spec",
                     {{"target", {{"pod", {{"name", "vm"}, {"uid", sim::uid_of(cluster.get("pods", "shop", "vm"))}}}}},
                      {"requester", "acme.io/descheduler"},
                      {"intent", "Eviction"}}}});
  });
  options.timeout = 10min;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_THAT(intents(), ::testing::UnorderedElementsAre("Eviction", "Withdrawn"));
}

// A drain that is killed leaves its request behind. The next one continues with it.
class AfterACrash : public EvictionRequests {
 protected:
  // Runs a drain for this long, kills it, and then runs `next`.
  void kill_after(Duration time, std::function<boost::asio::awaitable<void>(k8s::Client&)> next) {
    run(with_task_group([&](TaskGroup& world) -> boost::asio::awaitable<void> {
      world.spawn(cluster.run());
      co_await clock.sleep_until(clock.now() + 5s);
      k8s::Client client(cluster.api(), clock, {k8s::FieldValidation::strict});
      co_await with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
        group.spawn(drain_once(client));
        co_await clock.sleep_until(clock.now() + time);
      });
      EXPECT_THAT(intents(), AllOf(SizeIs(asked), Each("Eviction")));
      co_await next(client);
    }));
  }
  boost::asio::awaitable<void> drain_once(k8s::Client& client) {
    drain::Drain drain(client, rng, told, options, "n1");
    report = co_await drain.run();
  }
  std::optional<drain::Report> report;
  std::size_t asked = 1;  // number of pods with responders
};

TEST_F(AfterACrash, S101_TheNextDrainContinuesWithTheRequest) {
  add_asked("vm", "moves 3m");
  kill_after(1min, [this](k8s::Client& client) -> boost::asio::awaitable<void> { co_await drain_once(client); });
  EXPECT_THAT(report, ::testing::Optional(Ended(Outcome::drained)));
  EXPECT_THAT(created(), SizeIs(1));
  EXPECT_THAT(patched(), IsEmpty());
  EXPECT_EQ(accepted_evictions(), 0u);
}

// What the responders report is listed apart from the requests, and may come later. The age of the request is no
// silence until then.
TEST_F(AfterACrash, S101_TheNextDrainJudgesNoSilenceBeforeItHasReadTheAnswers) {
  add_asked("vm", "moves 20m");
  sim::FaultTransport faulty(
      cluster.api(), clock, rng,
      {{.verb = "list", .resource = "evictions", .fault = {.kind = sim::FaultKind::slow, .delay = 10s}}});
  kill_after(10min, [this, &faulty](k8s::Client&) -> boost::asio::awaitable<void> {
    k8s::Client client(faulty, clock, {k8s::FieldValidation::strict});
    co_await drain_once(client);
  });
  EXPECT_THAT(report, ::testing::Optional(Ended(Outcome::drained)));
  EXPECT_THAT(faulty.struck(), ::testing::Not(IsEmpty()));
  EXPECT_EQ(accepted_evictions(), 0u) << "the responder has worked all the time";
  EXPECT_THAT(created(), SizeIs(1));
}

TEST_F(AfterACrash, WhatRespondersReportIsWaitedForOnlyToTheLimit) {
  cluster.switches().eviction_request_controller = false;
  options.eviction_request_limit = 2min;
  add_asked("vm", "silent");
  sim::FaultTransport faulty(
      cluster.api(), clock, rng,
      {{.verb = "list", .resource = "evictions", .fault = {.kind = sim::FaultKind::server_error, .code = 500}}});
  kill_after(1min, [this, &faulty](k8s::Client&) -> boost::asio::awaitable<void> {
    k8s::Client client(faulty, clock, {k8s::FieldValidation::strict});
    const TimePoint begin = clock.now();
    co_await drain_once(client);
    EXPECT_THAT(clock.now() - begin, AllOf(Ge(2min), Le(3min)));
  });
  EXPECT_THAT(report, ::testing::Optional(Ended(Outcome::drained)));
}

TEST_F(AfterACrash, ARequestThatNobodyAnsweredIsNotWaitedForAnew) {
  cluster.switches().eviction_request_controller = false;
  add_asked("vm", "moves 3m");
  kill_after(4min, [this](k8s::Client& client) -> boost::asio::awaitable<void> {
    const TimePoint begin = clock.now();
    co_await drain_once(client);
    EXPECT_LT(clock.now() - begin, 2min);
  });
  EXPECT_THAT(report, ::testing::Optional(Ended(Outcome::drained)));
}

TEST_F(AfterACrash, S102_TheRequestCanBeWithdrawn) {
  add_asked("vm", "works");
  kill_after(1min, [this](k8s::Client& client) -> boost::asio::awaitable<void> {
    const auto withdrawn = co_await drain::withdraw_requests(client, rng, node_uid(), {}, clock.now() + 1min);
    EXPECT_TRUE(withdrawn && withdrawn->left.empty());
    if (withdrawn) EXPECT_THAT(withdrawn->pods, ::testing::ElementsAre("shop/vm"));
  });
  EXPECT_THAT(intents(), ::testing::ElementsAre("Withdrawn"));
}

// A server, or a proxy before it, may ignore the label selector.
TEST_F(AfterACrash, RequestsOfOtherNodesAreNotWithdrawn) {
  add_asked("vm", "works");
  kill_after(1min, [this](k8s::Client&) -> boost::asio::awaitable<void> {
    Json other = cluster.all("evictionrequests").at(0);
    other["metadata"] = {
        {"name", "haulout-other"}, {"namespace", "shop"}, {"labels", {{"haulout.dev/node-uid", "of-n2"}}}};
    cluster.create("evictionrequests", other);
    sim::FaultTransport faulty(
        cluster.api(), clock, rng,
        {{.verb = "list", .resource = "evictionrequests", .fault = {.kind = sim::FaultKind::unlabelled}}});
    k8s::Client client(faulty, clock, {k8s::FieldValidation::strict});
    const auto withdrawn = co_await drain::withdraw_requests(client, rng, node_uid(), {}, clock.now() + 1min);
    EXPECT_TRUE(withdrawn && withdrawn->left.empty());
    if (withdrawn) EXPECT_THAT(withdrawn->pods, ::testing::ElementsAre("shop/vm"));
  });
  EXPECT_THAT(intents(), ::testing::UnorderedElementsAre("Withdrawn", "Eviction"));
}

// A withdrawn request is renewed, and what its status says of the earlier intent does not count.
TEST_F(AfterACrash, AWithdrawnRequestIsRenewed) {
  add_asked("vm", "moves 3m");
  kill_after(1min, [this](k8s::Client& client) -> boost::asio::awaitable<void> {
    static_cast<void>(co_await drain::withdraw_requests(client, rng, node_uid(), {}, clock.now() + 1min));
    co_await clock.sleep_until(clock.now() + 1min);
    co_await drain_once(client);
  });
  EXPECT_THAT(report, ::testing::Optional(Ended(Outcome::drained)));
  EXPECT_THAT(created(), SizeIs(1));
  EXPECT_THAT(patched(), SizeIs(2));
  EXPECT_EQ(accepted_evictions(), 0u);
}

// The option was switched off since then, or the API server answers no list. The next drain is told that requests may
// be left, and does not forget it before it has seen that there are none.
TEST_F(AfterACrash, S103_RequestsThatAreExpectedAreWithdrawnAlsoWithoutTheOption) {
  add_asked("vm", "works");
  kill_after(1min, [this](k8s::Client& client) -> boost::asio::awaitable<void> {
    options.eviction_requests = drain::EvictionRequests::off;
    options.policy.do_not_disrupt = drain::Treatment::park;
    options.timeout = 1min;
    cluster.patch("pods", "shop", "vm", {{"metadata", {{"annotations", {{"karpenter.sh/do-not-disrupt", "true"}}}}}});
    drain::Drain next(client, rng, told, options, "n1");
    next.expect_requests();
    EXPECT_TRUE(next.may_have_requested());
    report = co_await next.run();
    EXPECT_FALSE(next.may_have_requested());
  });
  EXPECT_THAT(report, ::testing::Optional(Ended(Outcome::blocked)));
  EXPECT_THAT(intents(), ::testing::ElementsAre("Withdrawn"));
}

class AfterACrashWithoutAList : public AfterACrash, public ::testing::WithParamInterface<int> {};

TEST_P(AfterACrashWithoutAList, RequestsThatAreExpectedAreNotForgotten) {
  add_asked("vm", "works");
  sim::FaultTransport faulty(cluster.api(), clock, rng,
                             {{.verb = "list",
                               .resource = "evictionrequests",
                               .fault = {.kind = sim::FaultKind::server_error, .code = GetParam()}}});
  kill_after(1min, [this, &faulty](k8s::Client&) -> boost::asio::awaitable<void> {
    k8s::Client client(faulty, clock, {k8s::FieldValidation::strict});
    cluster.remove("pods", "shop", "vm");
    drain::Drain next(client, rng, told, options, "n1");
    next.expect_requests();
    report = co_await next.run();
    EXPECT_TRUE(next.may_have_requested());
  });
  EXPECT_THAT(report, ::testing::Optional(Ended(Outcome::drained))) << "nothing was left to be evicted";
}

INSTANTIATE_TEST_SUITE_P(Answers, AfterACrashWithoutAList, ::testing::Values(403, 404, 500));

// One webhook that hangs does not keep the other requests open.
TEST_F(AfterACrash, S105_ARequestThatHangsDelaysNoOtherWithdrawal) {
  asked = 3;
  for (std::size_t i = 0; i < asked; ++i) add_asked(fmt::format("vm-{}", i), "works");
  kill_after(1min, [this](k8s::Client&) -> boost::asio::awaitable<void> {
    sim::FaultTransport faulty(
        cluster.api(), clock, rng,
        {{.verb = "patch", .resource = "evictionrequests", .count = 1, .fault = {.kind = sim::FaultKind::stall}}});
    k8s::Client client(faulty, clock, {k8s::FieldValidation::strict});
    const TimePoint begin = clock.now();
    const auto withdrawn = co_await drain::withdraw_requests(client, rng, node_uid(), {}, begin + 30s);
    EXPECT_TRUE(withdrawn && withdrawn->left.empty());
    EXPECT_THAT(clock.now() - begin, Le(10s));
  });
  EXPECT_THAT(intents(), AllOf(SizeIs(3), Each("Withdrawn")));
}

TEST_F(AfterACrash, AListThatHangsIsMadeAgain) {
  add_asked("vm", "works");
  kill_after(1min, [this](k8s::Client&) -> boost::asio::awaitable<void> {
    sim::FaultTransport faulty(
        cluster.api(), clock, rng,
        {{.verb = "list", .resource = "evictionrequests", .count = 1, .fault = {.kind = sim::FaultKind::stall}}});
    k8s::Client client(faulty, clock, {k8s::FieldValidation::strict});
    const TimePoint begin = clock.now();
    const auto withdrawn = co_await drain::withdraw_requests(client, rng, node_uid(), {}, begin + 30s);
    EXPECT_TRUE(withdrawn && withdrawn->left.empty());
    EXPECT_THAT(clock.now() - begin, Le(10s));
  });
  EXPECT_THAT(intents(), Each("Withdrawn"));
}

// In a control plane that is being upgraded, one of two API servers may not serve EvictionRequests.
TEST_F(AfterACrash, RequestsThatWereSeenAreNotGoneBecauseOneAnswerIs404) {
  add_asked("vm", "works");
  kill_after(1min, [this](k8s::Client&) -> boost::asio::awaitable<void> {
    sim::FaultTransport faulty(cluster.api(), clock, rng,
                               {{.verb = "list",
                                 .resource = "evictionrequests",
                                 .count = 1,
                                 .fault = {.kind = sim::FaultKind::server_error, .code = 404}}});
    k8s::Client client(faulty, clock, {k8s::FieldValidation::strict});
    const auto withdrawn =
        co_await drain::withdraw_requests(client, rng, node_uid(), {.seen = true}, clock.now() + 1min);
    EXPECT_TRUE(withdrawn && withdrawn->left.empty());
  });
  EXPECT_THAT(intents(), ::testing::ElementsAre("Withdrawn"));
}

TEST_F(AfterACrash, RequestsThatWereSeenAreLeftWhileTheServerDoesNotServeThem) {
  add_asked("vm", "works");
  kill_after(1min, [this](k8s::Client& client) -> boost::asio::awaitable<void> {
    cluster.switches().eviction_requests = false;
    const auto unknown = co_await drain::withdraw_requests(client, rng, node_uid(), {}, clock.now() + 1min);
    EXPECT_TRUE(unknown && unknown->left.empty() && unknown->unserved);
    const auto seen = co_await drain::withdraw_requests(client, rng, node_uid(), {.seen = true}, clock.now() + 1min);
    EXPECT_FALSE(seen);
  });
}

// A request to create one that is under way when the drain ends may take effect after the first list.
TEST_F(AfterACrash, ARequestThatTakesEffectLateIsWithdrawn) {
  add_asked("vm", "works");
  kill_after(1min, [this](k8s::Client& client) -> boost::asio::awaitable<void> {
    const Json late = cluster.all("evictionrequests").at(0);
    cluster.remove("evictionrequests", "shop", sim::name_of(late));
    cluster.after(6s, [this, late] {
      cluster.create(
          "evictionrequests",
          {{"metadata", {{"name", sim::name_of(late)}, {"namespace", "shop"}, {"labels", late["metadata"]["labels"]}}},
           {"spec", late["spec"]}});
    });
    const auto withdrawn =
        co_await drain::withdraw_requests(client, rng, node_uid(), {.unanswered = true}, clock.now() + 1min);
    EXPECT_TRUE(withdrawn && withdrawn->left.empty());
  });
  EXPECT_THAT(intents(), ::testing::ElementsAre("Withdrawn"));
}

// The drain ends while the answer to its request is still to come, and looks for it.
TEST_F(EvictionRequests, TheEndOfADrainWaitsForARequestThatIsUnderWay) {
  add_asked("vm", "works");
  options.timeout = 20s;
  sim::FaultTransport faulty(
      cluster.api(), clock, rng,
      {{.verb = "create", .resource = "evictionrequests", .fault = {.kind = sim::FaultKind::stall}}});
  way = &faulty;
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_THAT(took(), Ge(25s)) << "it lists them for some seconds more, as long as another list fits into ten seconds";
  EXPECT_THAT(intents(), Each("Withdrawn"));
}

// While a person has the node uncordoned, no responder moves pods that could come back.
TEST_F(EvictionRequests, S104_AHumanUncordonsWhileAResponderWorks) {
  add_asked("vm", "works");
  options.timeout = 10min;
  after(1min, [this] {
    EXPECT_THAT(intents(), ::testing::ElementsAre("Eviction"));
    cluster.uncordon("n1");
  });
  after(2min, [this] { EXPECT_THAT(intents(), ::testing::ElementsAre("Withdrawn")); });
  after(8min, [this] { cluster.cordon("n1"); });
  after(9min, [this] { EXPECT_THAT(intents(), ::testing::ElementsAre("Eviction")) << "it must leave again"; });
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_EQ(accepted_evictions(), 0u) << "the time in which it did not have to leave does not count";
  EXPECT_THAT(intents(), ::testing::ElementsAre("Withdrawn"));
}

}  // namespace
}  // namespace haulout::scenario
