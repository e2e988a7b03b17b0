#include "agent/service/warnings.hpp"

#include "k8s/client.hpp"
#include "tests/agent/service/host_fixture.hpp"
#include "tests/support/scripted_transport.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

AgentConfig limited(std::string limit, Duration deadline = {}, SlotsChoice slots = SlotsChoice::lease) {
  AgentConfig config;
  config.max_unavailable = std::move(limit);
  if (deadline != Duration::zero()) config.drain.timeout = deadline;
  config.slots = slots;
  return config;
}

TEST(WholePool, IsACautionWhereNothingEndsADrain) {
  const auto caution = whole_pool_caution(limited("3"), 3);
  ASSERT_TRUE(caution);
  EXPECT_THAT(*caution, HasSubstr("whole pool of 3 nodes"));
  EXPECT_TRUE(whole_pool_caution(limited("4"), 3));
  EXPECT_TRUE(whole_pool_caution(limited("100%"), 3));
  EXPECT_TRUE(whole_pool_caution(limited("100%"), std::nullopt));
}

TEST(WholePool, IsNoneWhereSomeNodeStays) {
  EXPECT_FALSE(whole_pool_caution(limited("2"), 3));
  EXPECT_FALSE(whole_pool_caution(limited("99%"), 3));
  EXPECT_FALSE(whole_pool_caution(limited("3"), std::nullopt)) << "nobody knows";
  EXPECT_FALSE(whole_pool_caution(limited("1"), 1)) << "there is no other node to leave in service";
  EXPECT_FALSE(whole_pool_caution(limited("3", 1h), 3)) << "its drains end";
  EXPECT_FALSE(whole_pool_caution(limited("1", {}, SlotsChoice::none), 1));
}

// Each failed node keeps its slot, and the one that would halt the roll-out gets none.
TEST(HaltAfter, IsACautionWhereItCannotBeReached) {
  AgentConfig config = limited("2");
  EXPECT_FALSE(halt_caution(config)) << "not set";
  config.halt_after = 2;
  EXPECT_FALSE(halt_caution(config));
  config.halt_after = 3;
  EXPECT_THAT(halt_caution(config).value_or(""), HasSubstr("max-unavailable 2 is less than halt-after 3"));
  config.max_unavailable = "1%";
  EXPECT_FALSE(halt_caution(config)) << "it depends on the number of nodes";
  config = limited("2", {}, SlotsChoice::none);
  config.halt_after = 3;
  EXPECT_FALSE(halt_caution(config));
}

TEST(PastDates, AreACaution) {
  constexpr WallTime now = std::chrono::sys_days(std::chrono::year(2026) / 11 / 28);
  AgentConfig config;
  config.windows = {"2026-11-26..2026-11-27 01:00+4h", "2026-11-28 01:00+4h", "2026-11-27 22:00+4h", "22:00+4h"};
  config.blackouts = {"2026-11-20..2026-11-27", "2026-11-20..2026-11-28", "2026-11-26 22:00+2h", "Sat 00:00"};
  EXPECT_THAT(past_dates(config, now),
              ElementsAre(HasSubstr("the window \"2026-11-26..2026-11-27 01:00+4h\" does not open any more"),
                          HasSubstr("the blackout \"2026-11-20..2026-11-27\" has no effect any more"),
                          HasSubstr("the blackout \"2026-11-26 22:00+2h\" has no effect any more")));
  config.windows = {"2026-11-27 22:00+1h"};
  config.blackouts = {};
  EXPECT_THAT(past_dates(config, now), ElementsAre(HasSubstr("and no update can begin")));
  EXPECT_THAT(past_dates(AgentConfig(), now), IsEmpty());
}

struct FindCautions : haulout::testing::HostTest {
  Cautions find(const AgentConfig& config, k8s::Node node = {}) {
    node.name = "n1";
    return run(find_cautions(client, config, root, std::move(node), TimePoint::max()));
  }
  haulout::testing::ScriptedTransport server{clock};
  k8s::Client client{server, clock};
};

constexpr const char* two_nodes =
    R"({"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[
        {"metadata":{"name":"n1","uid":"u1","resourceVersion":"5","labels":{"pool":"db"}}},
        {"metadata":{"name":"n2","uid":"u2","resourceVersion":"6","labels":{"pool":"db"}}}]})";

TEST_F(FindCautions, CountsTheNodesOfThePool) {
  server.answer(haulout::testing::json_response(200, two_nodes));
  AgentConfig config = limited("2");
  config.pool_label = "pool";
  k8s::Node node;
  node.labels = {{"pool", "db"}};
  EXPECT_THAT(find(config, node).config, ElementsAre(HasSubstr("2 nodes")));
  EXPECT_THAT(server.requests().at(0).request.target, HasSubstr("pool%3Ddb"));
}

// A node counts unless it names another pool: n1 and n2 name none and count for db and for web, n3 counts only for web.
// Without a named pool, a control-plane node needs no caution, because control-plane nodes are updated one at a time.
TEST_F(FindCautions, CountsNoNodeOfAnotherPool) {
  const std::string nodes =
      R"({"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[
          {"metadata":{"name":"n1","uid":"u1","resourceVersion":"5"}},
          {"metadata":{"name":"n2","uid":"u2","resourceVersion":"6"}},
          {"metadata":{"name":"n3","uid":"u3","resourceVersion":"6","labels":{"haulout.dev/pool":"web"}}}]})";
  AgentConfig config = limited("2");
  config.pool = "db";
  server.answer(haulout::testing::json_response(200, nodes));
  EXPECT_THAT(find(config).config, ElementsAre(HasSubstr("2 nodes")));
  config.pool = "web";
  k8s::Node web;
  web.labels = {{"haulout.dev/pool", "web"}};
  server.answer(haulout::testing::json_response(200, nodes));
  EXPECT_THAT(find(config, web).config, IsEmpty()) << "n2 may belong to it, too";
  config.pool.clear();
  k8s::Node control_plane;
  control_plane.labels = {{"node-role.kubernetes.io/control-plane", ""}};
  server.answer(haulout::testing::json_response(200, nodes));
  EXPECT_THAT(find(config, control_plane).config, IsEmpty()) << "one at a time";
}

TEST_F(FindCautions, AHaltThatCannotBeReachedIsOne) {
  AgentConfig config;
  config.halt_after = 2;
  EXPECT_THAT(find(config).config, ElementsAre(HasSubstr("max-unavailable 1 is less than halt-after 2")));
  k8s::Node control_plane;
  control_plane.labels = {{"node-role.kubernetes.io/control-plane", ""}};
  EXPECT_THAT(find(config, control_plane).config, IsEmpty()) << "one node at a time in any case";
}

TEST_F(FindCautions, AsksForNothingByDefault) {
  EXPECT_THAT(find({}).config, IsEmpty());
  EXPECT_THAT(server.requests(), IsEmpty());
}

TEST_F(FindCautions, HooksThatWillNeverRunAreNamed) {
  dir.write("etc/haulout/hooks.d/pre-drain/10-a", "#!/bin/sh\n");
  AgentConfig config;
  config.hooks_dir = "/etc/haulout/hooks.d";
  k8s::Node node;
  node.annotations = {{"hook.haulout.dev/before-dran.x", ""}};
  const Cautions cautions = find(config, node);
  EXPECT_THAT(cautions.hooks, ElementsAre(HasSubstr("before-dran.x"), HasSubstr("pre-drain")));
}

TEST_F(FindCautions, HooksThatAreNotMountedAreNamed) {
  EXPECT_THAT(find({}).hooks, ElementsAre(HasSubstr("/etc/haulout (beneath " + dir.path() + ")")));
  std::filesystem::create_directories(dir / "etc/haulout");
  EXPECT_THAT(find({}).hooks, IsEmpty()) << "a host without hooks";
}

k8s::Pod pod_of(const std::string& kind, std::map<std::string, std::string> labels) {
  k8s::Pod pod;
  pod.ns = "kube-system";
  pod.name = "x-1";
  pod.phase = k8s::PodPhase::running;
  pod.labels = std::move(labels);
  pod.controller.emplace();
  pod.controller->kind = kind;
  pod.controller->name = "the-set";
  return pod;
}

TEST(PodRivals, AreKnownByTheirLabels) {
  EXPECT_THAT(pod_rivals({pod_of("DaemonSet", {{"name", "kured"}, {"app.kubernetes.io/name", "kured"}})}),
              ElementsAre(AllOf(HasSubstr("kured"), HasSubstr("-n kube-system the-set"))));
  EXPECT_THAT(pod_rivals({pod_of("DaemonSet", {{"app.kubernetes.io/name", "kured"}}),
                          pod_of("DaemonSet", {{"brupop.bottlerocket.aws/component", "agent"}})}),
              ElementsAre(HasSubstr("kured"), HasSubstr("Bottlerocket")));
  EXPECT_THAT(pod_rivals({pod_of("DaemonSet", {{"name", "kured-dashboard"}}), pod_of("ReplicaSet", {{"name", "kured"}}),
                          pod_of("DaemonSet", {})}),
              IsEmpty());
  auto finished = pod_of("DaemonSet", {{"name", "kured"}});
  finished.phase = k8s::PodPhase::failed;
  EXPECT_THAT(pod_rivals({finished}), IsEmpty());
}

TEST(PodRivals, ThePodOfAPlanIsOneWhileItRuns) {
  const std::map<std::string, std::string> labels = {{"upgrade.cattle.io/controller", "system-upgrade-controller"},
                                                     {"upgrade.cattle.io/plan", "the-plan"}};
  auto pod = pod_of("Job", labels);
  EXPECT_THAT(pod_rivals({pod}),
              ElementsAre(AllOf(HasSubstr("Plan of the system upgrade controller"), HasSubstr("pod kube-system/x-1"),
                                HasSubstr("remove it when this pod has ended: kubectl delete plans.upgrade.cattle.io "
                                          "-n kube-system the-plan;"),
                                HasSubstr("blocking-pod-selector upgrade.cattle.io/plan"))));
  pod.phase = k8s::PodPhase::succeeded;
  EXPECT_THAT(pod_rivals({pod, pod_of("DaemonSet", labels), pod_of("Job", {{"name", "kured"}})}), IsEmpty());
}

using FileRivals = haulout::testing::HostTest;

TEST_F(FileRivals, UnattendedUpgradesThatReboots) {
  EXPECT_THAT(file_rivals(root).value(), IsEmpty());
  dir.write("etc/apt/apt.conf.d/50unattended-upgrades", "Unattended-Upgrade::Automatic-Reboot \"false\";");
  EXPECT_THAT(file_rivals(root).value(), IsEmpty());
  dir.write("etc/apt/apt.conf.d/51local", "Unattended-Upgrade::Automatic-Reboot \"true\";");
  EXPECT_THAT(file_rivals(root).value(), ElementsAre(HasSubstr("unattended-upgrades")));
}

using SecondUpdater = haulout::testing::HostTest;

TEST_F(SecondUpdater, UnattendedUpgradesThatInstallsIsNamed) {
  const auto found = [&] { return second_updater(config, root).value(); };
  config.update = UpdateChoice::after_drain;
  EXPECT_EQ(found(), std::nullopt);
  dir.write("etc/apt/apt.conf.d/20auto-upgrades", "APT::Periodic::Unattended-Upgrade \"1\";");
  ASSERT_TRUE(found());
  EXPECT_THAT(*found(), AllOf(HasSubstr("unattended-upgrades"), HasSubstr("set it to \"0\"")));
  config.update = UpdateChoice::off;
  EXPECT_EQ(found(), std::nullopt) << "then it is the one that installs";
  config.update = UpdateChoice::after_drain;
  dir.write("etc/apt/apt.conf.d/99off", "APT::Periodic::Enable \"0\";");
  EXPECT_EQ(found(), std::nullopt) << "apt's daily job does not run";
  dir.write("etc/apt/apt.conf.d/99off", "APT::Periodic::Unattended-Upgrade \"0\";");
  EXPECT_EQ(found(), std::nullopt);
}

TEST_F(FindCautions, ASecondUpdaterIsOne) {
  config.update = UpdateChoice::after_drain;
  dir.write("etc/apt/apt.conf.d/20auto-upgrades", "APT::Periodic::Unattended-Upgrade \"7d\";");
  EXPECT_THAT(find(config).config, ElementsAre(HasSubstr("unattended-upgrades")));
}

// No service answers on this bus, and the look-up of services fails only at its deadline. The request for the pods must
// not wait for that.
TEST_F(FileRivals, ABusThatIsAwayHidesNoPods) {
  testing::ScriptedTransport api(clock);
  api.answer(testing::json_response(200, R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},
    "items":[{"metadata":{"name":"kured-1","namespace":"kube-system","uid":"u","resourceVersion":"6","labels":{"name":"kured"},
    "ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"kured","uid":"d","controller":true}]},
    "spec":{"nodeName":"n1"},"status":{"phase":"Running"}}]})"));
  k8s::Client client(api, clock);
  const Rivals rivals = run(find_rivals(client, "n1", access, true, clock.now() + std::chrono::seconds(10)));
  EXPECT_THAT(rivals.found, ElementsAre(HasSubstr("kured")));
  EXPECT_THAT(rivals.problems, ElementsAre(HasSubstr("services")));
  ASSERT_EQ(api.requests().size(), 1u);
  EXPECT_LT(api.requests().front().at, start + std::chrono::seconds(1));
}

}  // namespace
}  // namespace haulout::agent
