#include "agent/service/rivals.hpp"

#include "k8s/client.hpp"
#include "tests/agent/service/host_fixture.hpp"
#include "tests/support/scripted_transport.hpp"

namespace haulout::agent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

using FileRivals = haulout::testing::HostTest;

TEST_F(FileRivals, UnattendedUpgradesThatReboots) {
  EXPECT_THAT(file_rivals(root).value(), IsEmpty());
  dir.write("etc/apt/apt.conf.d/50unattended-upgrades", "Unattended-Upgrade::Automatic-Reboot \"false\";");
  EXPECT_THAT(file_rivals(root).value(), IsEmpty());
  dir.write("etc/apt/apt.conf.d/51local", "Unattended-Upgrade::Automatic-Reboot \"true\";");
  EXPECT_THAT(file_rivals(root).value(), ElementsAre(HasSubstr("unattended-upgrades")));
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
