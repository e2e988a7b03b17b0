// Tests the judge of ./dev demo with fleets that each break one promise. If the judge accepted one of them, its result
// for the demo would prove nothing.
#include "demo/judge.hpp"

#include <gmock/gmock.h>

#include "tests/sim/sim_test.hpp"

namespace haulout::demo {
namespace {

using namespace std::chrono_literals;
using sim::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The mistakes of one node's update.
struct Flaws {
  bool turn = false, cordon = false, evictions = false;        // the step is left out
  bool keeps_turn = false, keeps_cordon = false;               // still there after the update
  bool stays_down = false, boots_twice = false, idle = false;  // idle: the state `idle` is not shown at the end
};

class DemoJudgeTest : public testing::SimTest {
 protected:
  DemoJudge judge{clock.now()};

  void SetUp() override {
    cluster.on_change([this](const sim::Change& change) { judge.see(change); });
    cluster.server().on_answer([this](const sim::AuditEntry& entry) { judge.see(entry); });
    for (const char* name : {"n1", "n2", "n3"}) add_node(name);
    const Json pod = {{"metadata", {{"labels", {{"app", "web"}}}}},
                      {"spec", {{"terminationGracePeriodSeconds", 2}, {"containers", {{{"name", "app"}}}}}}};
    const Json selector = {{"matchLabels", {{"app", "web"}}}};
    cluster.create("deployments", {{"metadata", {{"name", "web"}, {"namespace", "shop"}}},
                                   {"spec", {{"replicas", 6}, {"selector", selector}, {"template", pod}}}});
    cluster.create("poddisruptionbudgets", budget("shop", "web", {{"minAvailable", 5}}));
    Json agent = pod;
    agent["metadata"]["labels"]["app"] = "log";
    cluster.create("daemonsets", {{"metadata", {{"name", "log"}, {"namespace", "infra"}}},
                                  {"spec", {{"selector", {{"matchLabels", {{"app", "log"}}}}}, {"template", agent}}}});
  }

  void show(const std::string& node, const char* state, const char* required) {
    cluster.patch(
        "nodes", "", node,
        {{"metadata", {{"labels", {{"haulout.dev/state", state}, {"haulout.dev/reboot-required", required}}}}}});
  }
  void take_turn(const std::string& node) {
    const std::string holder = node + "/" + sim::uid_of(cluster.get("nodes", "", node));
    cluster.create("leases", {{"metadata", {{"name", "haulout-default-0"}, {"namespace", "haulout"}}},
                              {"spec", {{"holderIdentity", holder}}}});
  }
  std::vector<std::string> pods_on(const std::string& node) const {
    std::vector<std::string> names;
    for (const Json& pod : cluster.all("pods"))
      if (sim::text(pod, "/spec/nodeName") == node && sim::ns_of(pod) == "shop") names.push_back(sim::name_of(pod));
    return names;
  }
  boost::asio::awaitable<void> drain(std::string node) {
    while (!pods_on(node).empty()) {
      for (const std::string& name : pods_on(node))
        if (!sim::terminating(cluster.get("pods", "shop", name))) co_await evict("shop", name);
      co_await pass(1s);
    }
  }
  boost::asio::awaitable<void> reboot(std::string node, bool comes_back = true) {
    judge.machine_down(node, clock.now());
    cluster.node_down(node);
    co_await pass(3s);
    if (!comes_back) co_return;
    judge.machine_up(node);
    cluster.node_up(node, node + " once more");
  }
  boost::asio::awaitable<void> update(std::string node, Flaws flaws = {}) {
    show(node, "draining", "true");
    if (!flaws.turn) take_turn(node);
    if (!flaws.cordon) cluster.cordon(node);
    if (!flaws.evictions) co_await drain(node);
    co_await reboot(node, !flaws.stays_down);
    if (flaws.boots_twice) co_await reboot(node);
    if (!flaws.keeps_cordon) cluster.uncordon(node);
    co_await pass(2s);
    if (!flaws.keeps_turn) cluster.remove("leases", "haulout", "haulout-default-0");
    if (!flaws.idle) show(node, "idle", "false");
  }
  // Updates the second of three nodes with `flaws`, and the others without a mistake.
  void run_with(Flaws flaws) {
    in_world([&]() -> boost::asio::awaitable<void> {
      co_await pass(5s);
      co_await update("n1");
      co_await update("n2", flaws);
      co_await pass(5s);
      co_await update("n3");
    });
  }
  // Runs `meddle` in the middle of an update, while a node is unavailable.
  void run_beside(std::function<boost::asio::awaitable<void>()> meddle) {
    in_world([&]() -> boost::asio::awaitable<void> {
      co_await pass(5s);
      co_await update("n1");
      take_turn("n2");
      cluster.cordon("n2");
      co_await drain("n2");
      co_await meddle();
      co_await reboot("n2");
      cluster.uncordon("n2");
      cluster.remove("leases", "haulout", "haulout-default-0");
      show("n2", "idle", "false");
      co_await update("n3");
    });
  }
  std::vector<std::string> broken() const {
    std::vector<std::string> all;
    for (const DemoJudge::Promise& promise : judge.verdict())
      all.insert(all.end(), promise.broken.begin(), promise.broken.end());
    EXPECT_EQ(all_kept(judge.verdict()), all.empty());
    return all;
  }
};

TEST_F(DemoJudgeTest, FindsNoFaultWithASoundFleet) {
  run_with({});
  EXPECT_THAT(broken(), IsEmpty());
  EXPECT_TRUE(judge.over());
  std::string text;
  for (const std::string& line : verdict_lines(judge.verdict())) text += line + "\n";
  EXPECT_THAT(text, HasSubstr("at most 1 of 3 nodes was unavailable"));
  EXPECT_THAT(text, HasSubstr("shop/web needs 5 healthy pods and never had fewer than 5"));
  EXPECT_THAT(text, HasSubstr("3 reboots"));
  EXPECT_THAT(text, HasSubstr("- 3 of 3 nodes"));
}

TEST_F(DemoJudgeTest, NothingThatHappensIsNoUpdate) {
  in_world([&]() -> boost::asio::awaitable<void> { co_await pass(5s); });
  EXPECT_FALSE(judge.over());
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("n1 has not rebooted"), HasSubstr("n2 has not rebooted"),
                                    HasSubstr("n3 has not rebooted")));
}

TEST_F(DemoJudgeTest, AClusterWithoutNodes) {
  EXPECT_FALSE(DemoJudge(start).over());
  EXPECT_FALSE(all_kept(DemoJudge(start).verdict()));
}

struct Case {
  const char* name;
  Flaws flaws;
  const char* found;
};

class FlawedUpdate : public DemoJudgeTest, public ::testing::WithParamInterface<Case> {};

TEST_P(FlawedUpdate, IsFound) {
  run_with(GetParam().flaws);
  EXPECT_THAT(broken(), ::testing::Contains(HasSubstr(GetParam().found)));
}

INSTANTIATE_TEST_SUITE_P(
    All, FlawedUpdate,
    ::testing::Values(Case{"Turn", {.turn = true}, "n2 went down without a slot"},
                      Case{"Cordon", {.cordon = true, .evictions = true}, "n2 went down without a cordon"},
                      Case{"Evictions", {.evictions = true}, "n2 went down under pod shop/web-"},
                      Case{"EvictionsForTheBudget", {.evictions = true}, "shop/web needs 5 healthy pods and has 4"},
                      Case{"KeepsCordon", {.keeps_cordon = true}, "n2 is still cordoned"},
                      Case{"KeepsCordonWhileTheNextGoes", {.keeps_cordon = true}, "n2 and n3"},
                      Case{"StaysDown", {.stays_down = true}, "n2 is down"},
                      Case{"BootsTwice", {.boots_twice = true}, "n2 has rebooted 2 times"},
                      Case{"NotIdle", {.idle = true}, "n2 does not report that its update is complete"}),
    [](const auto& test) { return test.param.name; });

TEST_F(DemoJudgeTest, ATurnThatIsKept) {
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(5s);
    co_await update("n1");
    co_await update("n2");
    co_await update("n3", {.keeps_turn = true});
  });
  EXPECT_FALSE(judge.over());
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("n3 still holds its slot")));
}

TEST_F(DemoJudgeTest, ATurnThatNobodyHolds) {
  run_with({});
  cluster.create("leases", {{"metadata", {{"name", "haulout-default-1"}, {"namespace", "haulout"}}},
                            {"spec", {{"holderIdentity", "n1/another"}}}});
  EXPECT_FALSE(judge.over());
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("slot haulout/haulout-default-1 is left behind")));
}

TEST_F(DemoJudgeTest, ADeletedPod) {
  run_beside([&]() -> boost::asio::awaitable<void> {
    co_await ask("DELETE", "/api/v1/namespaces/infra/pods/" + sim::name_of(cluster.all("pods").front()));
  });
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("asked to delete infra/log-")));
}

TEST_F(DemoJudgeTest, ADeletionThatIsRefused) {
  cluster.forbid("delete", "pods");
  run_beside([&]() -> boost::asio::awaitable<void> { co_await ask("DELETE", "/api/v1/namespaces/shop/pods/web-0"); });
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("asked to delete shop/web-0")));
}

TEST_F(DemoJudgeTest, ANodeThatIsCordonedBeside) {
  run_beside([&]() -> boost::asio::awaitable<void> {
    cluster.cordon("n3");
    co_await pass(1s);
    cluster.uncordon("n3");
  });
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("n2 and n3")));
}

TEST_F(DemoJudgeTest, ABudgetThatIsViolatedForAMoment) {
  run_beside([&]() -> boost::asio::awaitable<void> {
    for (const std::string& name : pods_on("n3")) cluster.delete_gracefully("pods", "shop", name);
    co_await pass(10s);
  });
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("shop/web needs 5 healthy pods and has 4")));
}

TEST_F(DemoJudgeTest, ABudgetThatWasNeverMet) {
  cluster.create("poddisruptionbudgets",
                 budget("shop", "none", {{"minAvailable", 2}, {"selector", {{"matchLabels", {{"app", "none"}}}}}}));
  run_with({});
  EXPECT_THAT(broken(), ElementsAre(HasSubstr("shop/none never had the healthy pods that it needs")));
}

TEST_F(DemoJudgeTest, APodThatComesAfterTheDrain) {
  run_beside([&]() -> boost::asio::awaitable<void> {
    cluster.create("pods", ready_pod("shop", "late", "n2"));
    co_return;
  });
  EXPECT_THAT(broken(), ::testing::Contains(HasSubstr("n2 went down under pod shop/late")));
}

}  // namespace
}  // namespace haulout::demo
