#include "drain/diagnoses.hpp"

#include <gmock/gmock.h>

#include "k8s/codec.hpp"
#include "tests/drain/builders.hpp"

namespace haulout::drain {
namespace {
using namespace std::chrono_literals;
using testing::a_budget;
using testing::a_pod;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

k8s::Pod sick(k8s::Pod pod) {
  pod.ready = false;
  return pod;
}

k8s::Pod pending(k8s::Pod pod, std::string trouble) {
  pod.phase = k8s::PodPhase::pending;
  pod.trouble = std::move(trouble);
  return sick(pod);
}

// Returns an exhausted budget with these numbers of pods.
k8s::PodDisruptionBudget counting(std::int32_t needed, std::int32_t healthy, std::int32_t expected) {
  auto budget = a_budget("web", 0);
  budget.desired_healthy = needed;
  budget.current_healthy = healthy;
  budget.expected_pods = expected;
  budget.max_unavailable.clear();
  budget.min_available = std::to_string(needed);
  return budget;
}

k8s::PodDisruptionBudget zero(std::string max_unavailable, std::string min_available) {
  auto budget = counting(3, 3, 3);
  budget.max_unavailable = std::move(max_unavailable);
  budget.min_available = std::move(min_available);
  return budget;
}

template <class Change>
k8s::PodDisruptionBudget with(k8s::PodDisruptionBudget budget, Change change) {
  change(budget);
  return budget;
}

// One minute after the entries of disruptedPods were made.
const WallTime early = *k8s::parse_time("2026-11-21T12:01:00Z");

struct Row {
  const char* what;
  k8s::PodDisruptionBudget budget;
  const char* code;     // expected code; empty: no diagnosis
  const char* message;  // part of the expected message
  Duration hold = 15s;
};

TEST(BudgetDiagnosis, TheMostSpecificOfWhatIsTrue) {
  const auto never_synced = [](auto& budget) { budget.observed_generation = 0; };
  const auto failed = [](auto& budget) {
    budget.condition_reason = "SyncFailed";
    budget.condition_message = "no matches for kind \"Foo\"";
  };
  const auto burnt = [](auto& budget) { budget.disrupted_pods = {{"db-0", *k8s::parse_time("2026-11-21T12:00:00Z")}}; };
  const Row rows[] = {
      {"open", with(counting(2, 3, 3), [](auto& budget) { budget.disruptions_allowed = 1; }), "", "", {}},
      {"an eviction is under way", counting(2, 3, 4), "", "", {}},
      {"maxUnavailable 0", zero("0", ""), "BudgetNeverAllows", "maxUnavailable: 0", 0s},
      {"maxUnavailable 0, of somebody",
       with(zero("0", ""), [](auto& budget) { budget.managed_by = "Helm, release web"; }), "BudgetNeverAllows",
       "change it to allow at least one disruption (managed by Helm, release web), or", 0s},
      {"maxUnavailable 0%", zero("0%", ""), "BudgetNeverAllows", "maxUnavailable: 0%", 0s},
      {"minAvailable 100%", zero("", "100%"), "BudgetNeverAllows", "minAvailable: 100%", 0s},
      {"one replica", counting(1, 1, 1), "BudgetOfSinglePod", "scale the controller to 2 replicas"},
      {"one replica, needs more", counting(2, 1, 1), "BudgetOfSinglePod", "needs 2 healthy of 1"},
      {"as many as there are", counting(3, 3, 3), "BudgetNeedsAllPods",
       "needs 3 healthy pods (minAvailable: 3), and 3 exist"},
      {"more than there are", counting(5, 3, 3), "BudgetNeedsAllPods", "needs 5 healthy pods ("},
      {"as many as there are, one of them sick elsewhere", counting(3, 2, 3), "BudgetNeedsAllPods", "controller to 4"},
      {"counts nothing",
       with(counting(0, 1, 0),
            [](auto& budget) {
              budget.min_available.clear();
              budget.max_unavailable = "1";
            }),
       "BudgetMisconfigured",
       "check that the controllers of its pods have replicas (kubectl describe pdb web -n shop)"},
      {"healthy and closed", counting(2, 3, 3), "BudgetMisconfigured", "3 of 3, 2 needed"},
      {"failed", with(counting(1, 1, 1), failed), "BudgetSyncFailed", "no matches for kind"},
      {"failed and never synced", with(with(counting(0, 0, 0), failed), never_synced), "BudgetSyncFailed", "scale"},
      {"not processed", with(counting(0, 0, 0), never_synced), "BudgetNotObserved",
       "has not processed it yet, and allows no eviction until then; check that kube-controller-manager", 60s},
      {"not processed, and says zero", with(zero("0", ""), never_synced), "BudgetNotObserved", "", 60s},
      {"burnt", with(counting(2, 2, 3), burnt), "BudgetDisruptionPending", "shop/db-0, evicted at 2026-11-21T12:00:00Z",
       25s},
      {"burnt, until when", with(counting(2, 2, 3), burnt), "BudgetDisruptionPending",
       "at 2026-11-21T12:02:00Z at the latest", 25s},
      {"a replacement does not exist", counting(2, 2, 3), "BudgetAwaitsReplacement", "has 2 of 3 pods", 25s},
      {"too many under way",
       with(counting(2, 3, 3),
            [](auto& budget) {
              budget.disruptions_allowed = 1;
              for (int i = 0; i <= 2000; ++i) budget.disrupted_pods.emplace(std::to_string(i), std::nullopt);
            }),
       "BudgetMapTooBig", "2000"},
  };
  const auto held = a_pod("web-0");
  for (const Row& row : rows) {
    const auto fact = diagnose_budget({row.budget, {&held}, early});
    EXPECT_EQ(fact ? fact->code : "", row.code) << row.what;
    if (!fact) continue;
    EXPECT_THAT(fact->message, HasSubstr(row.message)) << row.what;
    EXPECT_EQ(fact->subject, "PodDisruptionBudget shop/web") << row.what;
    EXPECT_EQ(fact->hold, row.hold) << row.what;
  }
}

// No remedy may name a controller that does not exist, or a deletion after which nothing creates the pod again.
TEST(BudgetDiagnosis, ASinglePodWithoutAControllerIsNotToBeScaledOrDeleted) {
  auto held = a_pod("web-0");
  held.controller.reset();
  const auto fact = diagnose_budget({counting(1, 1, 1), {&held}, early});
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->code, "BudgetOfSinglePod");
  EXPECT_THAT(fact->message,
              HasSubstr("lower minAvailable to 0; the pod has no controller, so nothing creates it again"));
  EXPECT_THAT(fact->message, ::testing::Not(HasSubstr("scale")));
  EXPECT_THAT(fact->message, ::testing::Not(HasSubstr("kubectl")));
}

TEST(BudgetDiagnosis, PodsWithoutAControllerNeedAnIntegerToCount) {
  auto held = a_pod("web-0");
  held.controller.reset();
  auto budget = counting(0, 1, 0);
  budget.min_available.clear();
  budget.max_unavailable = "1";
  const auto fact = diagnose_budget({budget, {&held}, early});
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->code, "BudgetMisconfigured");
  EXPECT_THAT(fact->message, HasSubstr("so it allows no disruption. It counts pods without a controller only if "
                                       "minAvailable is an integer"));
}

// The disruption controller removes an entry of disruptedPods two minutes after the entry was made. So older entries
// mean that the controller does not run.
TEST(BudgetDiagnosis, WhatIsCountedAsGoneForTooLongNobodyClears) {
  const auto entry = k8s::parse_time("2026-11-21T12:00:00Z");
  const struct {
    const char* what;
    std::map<std::string, std::optional<WallTime>> entries;
    const char* code;
    std::vector<const char*> words;
  } rows[] = {
      {"young", {{"db-0", *entry + 3s}}, "BudgetDisruptionPending", {"at 2026-11-21T12:02:03Z at the latest"}},
      {"over time by less than the clocks may differ", {{"db-0", *entry + 1s}}, "BudgetDisruptionPending", {"Wait"}},
      {"over time",
       {{"db-0", *entry}},
       "BudgetNotObserved",
       {"shop/db-0, evicted at 2026-11-21T12:00:00Z", "kube-controller-manager runs (kubectl get lease"}},
      {"one of them", {{"db-0", *entry}, {"db-1", *entry + 1min}}, "BudgetDisruptionPending", {"12:03:00Z"}},
      {"one without a time", {{"db-0", *entry}, {"db-1", std::nullopt}}, "BudgetDisruptionPending", {"Wait"}},
  };
  const auto held = a_pod("web-0");
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    const auto burnt = with(counting(2, 2, 3), [&](auto& budget) { budget.disrupted_pods = row.entries; });
    const auto fact = diagnose_budget({burnt, {&held}, *entry + 2min + 31s});
    ASSERT_TRUE(fact);
    EXPECT_EQ(fact->code, row.code);
    for (const char* words : row.words) EXPECT_THAT(fact->message, HasSubstr(words));
    EXPECT_EQ(fact->message.find("Wait") == std::string::npos, fact->code == "BudgetNotObserved");
  }
}

TEST(BudgetDiagnosis, TheWayOutIsOneThatHelps) {
  const struct {
    const char* min_available;
    std::int32_t needed, expected;
    const char* scale;  // empty: scaling is no remedy
    const char* lower;
  } rows[] = {
      {"1", 1, 1, "controller to 2 ", "lower minAvailable to 0;"},
      {"2", 2, 1, "controller to 3 ", "lower minAvailable to 0;"},
      {"3", 3, 3, "controller to 4 ", "lower minAvailable to 2"},
      {"5", 5, 3, "controller to 6 ", "lower minAvailable to 2"},
      {"30", 30, 30, "controller to 31 ", "lower minAvailable to 29"},
      {"1%", 1, 1, "controller to 2 ", "lower minAvailable;"},
      {"50%", 1, 1, "controller to 2 ", "lower minAvailable;"},
      {"51%", 2, 2, "controller to 3 ", "lower minAvailable"},
      {"70%", 3, 3, "controller to 4 ", "lower minAvailable"},
      {"80%", 3, 3, "controller to 5 ", "lower minAvailable"},
      {"90%", 3, 3, "controller to 10 ", "lower minAvailable"},
      {"95%", 3, 3, "controller to 20 ", "lower minAvailable"},
      {"96%", 3, 3, "", "lower minAvailable"},
      {"99%", 1, 1, "", "lower minAvailable;"},
      {"0100%", 3, 3, "", "lower minAvailable"},
  };
  const auto held = a_pod("web-0");
  for (const auto& row : rows) {
    auto budget = counting(row.needed, row.expected, row.expected);
    budget.min_available = row.min_available;
    const auto fact = diagnose_budget({budget, {&held}, early});
    ASSERT_TRUE(fact) << row.min_available;
    const std::string scale = *row.scale ? row.scale : "scale";
    EXPECT_EQ(fact->message.find(scale) != std::string::npos, *row.scale != 0) << fact->message;
    EXPECT_THAT(fact->message, HasSubstr(row.lower));
    // A message that suggests a number of pods would be wrong for a percentage.
    if (budget.min_available.ends_with('%')) EXPECT_THAT(fact->message, Not(HasSubstr("minAvailable to")));
  }
}

// If minAvailable is an absolute number, expectedPods is the number of pods that exist. So if the controller cannot
// create a pod, the budget seems to need all pods, and the message must name this cause, too.
TEST(BudgetDiagnosis, AControllerThatMayCreateNoPodIsNotSaidToWantTooFew) {
  auto held = a_pod("web-0");
  const std::string see =
      "if ReplicaSet web-6d4b9 wants more pods than exist, find out why it creates none (kubectl describe ReplicaSet "
      "web-6d4b9 -n shop); otherwise scale";
  for (const std::int32_t count : {1, 3}) {
    const auto fact = diagnose_budget({counting(count, count, count), {&held}, early});
    ASSERT_TRUE(fact);
    EXPECT_THAT(fact->message, AllOf(HasSubstr(see), Not(HasSubstr("never"))));
  }
  EXPECT_THAT(diagnose_budget({counting(3, 3, 3), {&held}, early})->message,
              HasSubstr("(minAvailable: 3), and 3 exist"));
  // A percentage refers to the number of replicas that the controller should have.
  EXPECT_THAT(
      diagnose_budget({with(counting(3, 3, 3), [](auto& budget) { budget.min_available = "80%"; }), {&held}, early})
          ->message,
      AllOf(HasSubstr("needs all 3 pods healthy"), Not(HasSubstr("creates none"))));
  held.controller.reset();
  EXPECT_THAT(diagnose_budget({counting(3, 3, 3), {&held}, early})->message, Not(HasSubstr("creates none")));
}

TEST(BudgetDiagnosis, SickPodsThatMayNotLeave) {
  const auto a = sick(a_pod("web-0")), b = a_pod("web-1");
  const auto short_of_one = counting(2, 1, 3);
  const auto all_sick = diagnose_budget({short_of_one, {&a}, early});
  ASSERT_TRUE(all_sick);
  EXPECT_EQ(all_sick->code, "BudgetUnhealthyDeadlock");
  EXPECT_THAT(all_sick->message, AllOf(HasSubstr("AlwaysAllow"), HasSubstr("shop/web-0 is not Ready")));
  EXPECT_EQ(diagnose_budget({short_of_one, {&a, &b}, early})->code, "BudgetUnhealthyDeadlock");
  // With AlwaysAllow the server admits the eviction of the sick pod. The healthy pod is held because too few pods are
  // healthy.
  auto lenient = short_of_one;
  lenient.always_allow_unhealthy = true;
  EXPECT_EQ(diagnose_budget({lenient, {&b}, early})->code, "BudgetAwaitsReplacement");
  // The second pod can never leave, whether it is healthy or not.
  EXPECT_EQ(diagnose_budget({counting(2, 1, 2), {&a, &b}, early})->code, "BudgetNeedsAllPods");
  EXPECT_EQ(diagnose_budget({counting(1, 0, 1), {&a}, early})->code, "BudgetUnhealthyDeadlock");
  // The server exempts unhealthy pods only if the budget needs at least one healthy pod.
  EXPECT_EQ(diagnose_budget({counting(0, 0, 1), {&a}, early})->code, "BudgetUnhealthyDeadlock");
}

TEST(BudgetDiagnosis, AReplacementThatDoesNotComeUpIsNamedWithItsReason) {
  const auto held = a_pod("web-0");
  const std::vector<k8s::Pod> members{held, pending(a_pod("web-1"), "Unschedulable: 0/3 nodes are available"),
                                      sick(a_pod("web-2")), sick(testing::terminating(a_pod("web-3")))};
  const auto fact = diagnose_budget({counting(2, 1, 3), {&held}, early, &members});
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->code, "BudgetAwaitsReplacement");
  EXPECT_THAT(fact->message, AllOf(HasSubstr("shop/web-1 is Pending (Unschedulable: 0/3 nodes are available)"),
                                   HasSubstr("shop/web-2 is not Ready"), Not(HasSubstr("web-3"))));
  const std::vector<k8s::Pod> alone{held};
  EXPECT_THAT(diagnose_budget({counting(2, 1, 3), {&held}, early, &alone})->message,
              AllOf(HasSubstr("it needs 3 healthy to allow an eviction, and has 1 of 3 pods"),
                    HasSubstr("are terminating or do not exist yet")));
}

// If a person deletes a pod that only its own controller can move (of a virtual machine, for example), the pod's
// workload ends. So the advice must not be to delete it.
TEST(BudgetDiagnosis, NobodyIsAdvisedToDeleteWhatAnotherControllerMoves) {
  using testing::owned_by;
  auto machine = owned_by(a_pod("virt-launcher-vm"), "kubevirt.io/v1", "VirtualMachineInstance", "vm", "vm-uid");
  const auto broker = owned_by(a_pod("kafka-0"), "core.strimzi.io/v1beta2", "StrimziPodSet", "kafka", "kafka-uid");
  const auto job = owned_by(a_pod("job-0"), "batch/v1", "Job", "job", "job-uid");
  const auto message = [](const k8s::PodDisruptionBudget& budget, const k8s::Pod& held) {
    const auto fact = diagnose_budget({budget, {&held}, early});
    return fact ? fact->code + ": " + fact->message : std::string();
  };
  EXPECT_THAT(message(counting(1, 1, 1), machine),
              AllOf(HasSubstr("BudgetOfSinglePod: "), HasSubstr("VirtualMachineInstance vm may move its pods itself"),
                    HasSubstr("do not delete pod virt-launcher-vm yourself"), Not(HasSubstr("scale"))));
  EXPECT_THAT(message(zero("0", ""), broker),
              AllOf(HasSubstr("BudgetNeverAllows: "), HasSubstr("StrimziPodSet kafka may move its pods itself"),
                    Not(HasSubstr("or delete"))));
  EXPECT_THAT(message(counting(2, 2, 2), broker), HasSubstr("BudgetNeedsAllPods: "));
  const auto failed = with(zero("1", ""), [](auto& budget) { budget.condition_reason = "SyncFailed"; });
  EXPECT_THAT(message(failed, broker),
              AllOf(HasSubstr("BudgetSyncFailed: "), HasSubstr("StrimziPodSet kafka may move its pods itself")));
  EXPECT_THAT(message(zero("0", ""), job), HasSubstr("or delete the pods with kubectl"));
  machine.annotations["kubevirt.io/evacuationNodeName"] = "n1";
  EXPECT_THAT(message(counting(1, 1, 1), machine),
              AllOf(HasSubstr("pod shop/virt-launcher-vm is being migrated"), Not(HasSubstr("delete"))));
}

}  // namespace
}  // namespace haulout::drain
