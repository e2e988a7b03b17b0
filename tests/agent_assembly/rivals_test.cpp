#include "agent/assembly/rivals.hpp"

#include "tests/agent_assembly/host_fixture.hpp"

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

}  // namespace
}  // namespace haulout::agent
