// A fleet whose agents install the updates of the operating system (--update).
#include "k8s/objects.hpp"
#include "tests/fleet/fleet.hpp"
#include "tests/fleet/scripted_gates.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Installations : Fleet {
  // A machine whose agent installs updates, by default two.
  static MachinePlan waiting(UpdatesPlan updates = {}) {
    updates.on = true;
    if (updates.waiting.empty()) updates.waiting = {"libssl3 3.0.15-1 to 3.0.16-1", "vim 1 to 2"};
    MachinePlan plan{.target = ""};
    plan.updates = std::move(updates);
    return plan;
  }
  void web() { add(a_workload("Deployment", "web", 4, {{"terminationGracePeriodSeconds", 5}})); }
  agent::Record record(const std::string& name) const {
    return agent::decode_record(sim::annotation(node(name), "haulout.dev/record"));
  }
  std::size_t pods_on(const std::string& name) const {
    std::size_t count = 0;
    for (const Json& pod : cluster.all("pods")) count += sim::text(pod, "/spec/nodeName") == name;
    return count;
  }
  std::string reason(const std::string& name) const { return label(name, "haulout.dev/reason"); }
  std::string message(const std::string& name) const { return sim::annotation(node(name), "haulout.dev/message"); }
  // Collects "state reason" of a node.
  std::vector<std::string>& told(Machine& machine) {
    machine.on_told = [this](const agent::Status& status) {
      std::string at = std::string(to_string(status.state)) + " " + status.reason;
      if (told_.empty() || told_.back() != at) told_.push_back(std::move(at));
    };
    return told_;
  }
  void expect_at_rest(const Machine& machine) const {
    EXPECT_EQ(state(machine.node()), "idle") << story();
    EXPECT_FALSE(unschedulable(machine.node())) << story();
    EXPECT_FALSE(machine.updates().wanted()) << story();
    EXPECT_EQ(slots_held(), 0u) << story();
  }

 private:
  std::vector<std::string> told_;
};

TEST_F(Installations, DrainsThenInstallsThenReboots) {
  Machine& n1 = machine("n1", waiting());
  machine("n2", waiting());
  web();
  std::string shown;
  after(10s, [&] { shown = message("n1") + message("n2"); });
  run_fleet();
  for (const auto& each : machines) {
    expect_at_rest(*each);
    EXPECT_EQ(each->version(), "1.1");
    EXPECT_EQ(each->boots(), 1u) << story();
    EXPECT_EQ(each->updates().installations(), 1u);
    EXPECT_THAT(states_of(each->node()), ElementsAre("idle", "pending", "waiting", "draining", "updating", "ready",
                                                     "rebooting", "verifying", "uncordoning", "soaking", "idle"))
        << story();
  }
  EXPECT_EQ(n1.updates().downloads(), 1u) << "during the drain";
  EXPECT_EQ(record("n1").attempts.back().why, "version 1.1 runs");
  EXPECT_THAT(record("n1").updates, IsEmpty());
}

TEST_F(Installations, WithoutANeedForARebootTheMachineStaysUp) {
  Machine& n1 = machine("n1", waiting({.need_reboot = false}));
  machine("n2", {.target = ""});
  web();
  run_fleet();
  expect_at_rest(n1);
  EXPECT_EQ(n1.boots(), 0u);
  EXPECT_THAT(states_of("n1"), ElementsAre("idle", "pending", "waiting", "draining", "updating", "verifying",
                                           "uncordoning", "soaking", "idle"))
      << story();
  EXPECT_EQ(record("n1").attempts.back().why, "updated without a reboot");
  EXPECT_TRUE(record("n1").verified_at.has_value());
}

// Services that use replaced files are restarted on the drained node. What still uses such files afterwards is named,
// and needs no reboot unless the configuration says so.
TEST_F(Installations, ServicesAreRestartedOnTheDrainedNode) {
  Machine& n1 = machine("n1", waiting({.need_reboot = false, .old_services = {"web.service"}}));
  Machine& n2 = machine(
      "n2",
      waiting({.need_reboot = false, .old_services = {"dbus.service", "web.service"}, .stay_old = {"dbus.service"}}));
  web();
  for (Machine* each : {&n1, &n2}) {
    each->updates().on_restart = [this, name = each->node()] {
      EXPECT_TRUE(unschedulable(name)) << story();
      EXPECT_EQ(pods_on(name), 0u);
      EXPECT_EQ(record(name).service_restarts, 1u) << "written before the restart";
    };
  }
  const auto& all = told(n1);
  run_fleet();
  for (const Machine* each : {&n1, &n2}) {
    expect_at_rest(*each);
    EXPECT_EQ(each->boots(), 0u) << story();
    EXPECT_EQ(each->updates().restarts(), 1u);
  }
  EXPECT_THAT(all, Not(Contains(HasSubstr("ServicesNotRestarted")))) << "a warning is no reason of the node";
  EXPECT_THAT(story(), AllOf(Not(HasSubstr("n1 warns: ServicesNotRestarted")),
                             HasSubstr("n2 warns: ServicesNotRestarted dbus.service still uses files")));
}

TEST_F(Installations, ServicesThatCannotBeRestartedAreAReasonToRebootIfThatIsWished) {
  Machine& n1 = machine("n1", waiting({.need_reboot = false,
                                       .old_services = {"dbus.service"},
                                       .stay_old = {"dbus.service"},
                                       .reboot_for_services = true}));
  machine("n2", {.target = ""});
  web();
  run_fleet();
  expect_at_rest(n1);
  EXPECT_EQ(n1.boots(), 1u) << story();
  EXPECT_THAT(story(), Not(HasSubstr("warns: ServicesNotRestarted")));
}

// A reboot makes all services use the new files, so the agent does not ask for them.
TEST_F(Installations, NoServiceIsRestartedBeforeAReboot) {
  Machine& n1 = machine("n1", waiting({.old_services = {"web.service"}}));
  machine("n2", {.target = ""});
  run_fleet();
  expect_at_rest(n1);
  EXPECT_EQ(n1.boots(), 1u);
  EXPECT_EQ(n1.updates().restarts(), 0u);
}

// A person uncordons the node during the installation, so pods may run on it when it ends.
TEST_F(Installations, NoServiceIsRestartedOnANodeThatIsUncordoned) {
  Machine& n1 = machine("n1", waiting({.need_reboot = false, .takes = 10min, .old_services = {"web.service"}}));
  machine("n2", {.target = ""});
  after(4min, [&] {
    EXPECT_TRUE(n1.updates().running());
    uncordon("n1");
  });
  run_fleet();
  EXPECT_EQ(n1.updates().restarts(), 0u) << story();
  EXPECT_THAT(story(), HasSubstr("n1 warns: ServicesNotRestarted web.service still uses files"));
}

// A person uncordons the node when the agent has written that it restarts services.
TEST_F(Installations, NoServiceIsRestartedIfTheNodeIsUncordonedAtTheLastMoment) {
  Machine& n1 = machine("n1", waiting({.need_reboot = false, .old_services = {"web.service"}}));
  machine("n2", {.target = ""});
  bool seen = false;
  cluster.on_change([&](const sim::Change& change) {
    if (seen || change.key.resource != "nodes" || record("n1").service_restarts == 0) return;
    seen = true;
    cluster.after(0s, [&] { uncordon("n1"); });
  });
  run_fleet();
  EXPECT_TRUE(seen) << story();
  EXPECT_EQ(n1.updates().restarts(), 0u) << story();
  EXPECT_THAT(story(), HasSubstr("n1 warns: ServicesNotRestarted web.service still uses files"));
  EXPECT_THAT(story(), HasSubstr("no service was restarted: "));
}

// needrestart says nothing about a service that does not come up again. A service that was down before is not the
// agent's doing.
TEST_F(Installations, AServiceThatDoesNotStartAgainIsNamed) {
  for (const bool restarts_agent : {false, true}) {
    struct Case : Installations {
      void TestBody() override {}
      void go(bool restarts_agent) {
        Machine& n1 = machine("n1", waiting({.need_reboot = false,
                                             .old_services = {"iscsid.service", "old.service", "web.service"},
                                             .down = {"old.service"},
                                             .fail_to_start = {"iscsid.service"},
                                             .restarts_agent = restarts_agent}));
        machine("n2", {.target = ""});
        run_fleet();
        expect_at_rest(n1);
        EXPECT_EQ(n1.boots(), 0u);
        EXPECT_EQ(n1.updates().restarts(), 1u);
        EXPECT_THAT(story(), HasSubstr("n1 warns: ServicesNotRestarted iscsid.service was restarted and does not run"));
      }
    };
    SCOPED_TRACE(restarts_agent ? "the agent is restarted, too" : "the agent is not restarted");
    Case().go(restarts_agent);
  }
}

TEST_F(Installations, AServiceThatDoesNotStartAgainIsAReasonToRebootIfThatIsWished) {
  Machine& n1 = machine("n1", waiting({.need_reboot = false,
                                       .old_services = {"iscsid.service"},
                                       .fail_to_start = {"iscsid.service"},
                                       .reboot_for_services = true}));
  machine("n2", {.target = ""});
  run_fleet();
  expect_at_rest(n1);
  EXPECT_EQ(n1.boots(), 1u) << story();
}

// The restart fails, and afterwards it may be unknown which services use replaced files.
TEST_F(Installations, ServicesAreNotForgottenIfTheirRestartFails) {
  for (const bool reboots : {false, true}) {
    for (const bool unknown : {false, true}) {
      struct Case : Installations {
        void TestBody() override {}
        void go(bool reboots, bool unknown) {
          Machine& n1 = machine("n1", waiting({.need_reboot = false,
                                               .old_services = {"web.service"},
                                               .fails_restart = true,
                                               .reboot_for_services = reboots}));
          machine("n2", {.target = ""});
          n1.updates().on_restart = [&n1, unknown] { n1.plan().updates.services_unknown = unknown; };
          run_fleet();
          expect_at_rest(n1);
          EXPECT_EQ(n1.boots(), reboots ? 1u : 0u) << story();
          if (reboots) return;
          EXPECT_THAT(story(), HasSubstr("n1 warns: ServicesNotRestarted web.service still uses files"));
          EXPECT_THAT(story(), HasSubstr("the restart of services has failed: needrestart took too long"));
        }
      };
      SCOPED_TRACE(::testing::Message() << "reboots " << reboots << ", unknown " << unknown);
      Case().go(reboots, unknown);
    }
  }
}

TEST_F(Installations, ADemandForARebootThatTheBackEndDoesNotSeeIsNoSilence) {
  Machine& n1 = machine("n1", waiting({.need_reboot = false,
                                       .old_services = {"dbus.service"},
                                       .stay_old = {"dbus.service"},
                                       .reboot_for_services = true,
                                       .demand_unseen = true}));
  machine("n2", {.target = ""});
  run_fleet();
  expect_at_rest(n1);
  EXPECT_EQ(n1.boots(), 0u);
  EXPECT_THAT(story(), HasSubstr("n1 warns: ServicesNotRestarted dbus.service still uses files"));
  EXPECT_THAT(story(), HasSubstr("the back end does not say that one is needed"));
}

TEST_F(Installations, AnUpdateDoesNotFailBecauseItsServicesAreUnknown) {
  Machine& n1 = machine("n1", waiting({.need_reboot = false, .services_unknown = true}));
  machine("n2", {.target = ""});
  run_fleet();
  expect_at_rest(n1);
  EXPECT_EQ(n1.updates().installations(), 1u);
  EXPECT_THAT(story(), HasSubstr("n1 warns: ServicesNotRestarted the updates are installed, but it is unknown"));
}

// P7: the agent itself uses replaced files. Its restart is no failure.
TEST_F(Installations, AnAgentThatIsRestartedAmongTheServicesGoesOn) {
  Machine& n1 =
      machine("n1", waiting({.need_reboot = false, .old_services = {"haulout.service"}, .restarts_agent = true}));
  machine("n2", {.target = ""});
  run_fleet();
  expect_at_rest(n1);
  EXPECT_EQ(n1.updates().installations(), 1u);
  EXPECT_EQ(n1.updates().restarts(), 1u) << story();
  EXPECT_EQ(record("n1").failed_updates, 0u);
  EXPECT_THAT(story(), Not(HasSubstr("warns: ServicesNotRestarted")));
}

// The agent is always found among the services. It is not restarted without end.
TEST_F(Installations, AnAgentThatStaysAmongTheServicesIsRestartedTwice) {
  Machine& n1 = machine("n1", waiting({.need_reboot = false,
                                       .old_services = {"haulout.service"},
                                       .stay_old = {"haulout.service"},
                                       .restarts_agent = true}));
  machine("n2", {.target = ""});
  run_fleet();
  expect_at_rest(n1);
  EXPECT_EQ(n1.updates().restarts(), 2u) << story();
  EXPECT_EQ(record("n1").failed_updates, 0u);
  EXPECT_THAT(story(), HasSubstr("n1 warns: ServicesNotRestarted haulout.service still uses files"));
}

// The agent is restarted among the services, and another of them stays old. That one is not restarted again.
TEST_F(Installations, WhatARestartHasNotHelpedIsNotRestartedAgain) {
  Machine& n1 = machine("n1", waiting({.need_reboot = false,
                                       .old_services = {"containerd.service", "haulout.service"},
                                       .stay_old = {"containerd.service"},
                                       .restarts_agent = true}));
  machine("n2", {.target = ""});
  run_fleet();
  expect_at_rest(n1);
  EXPECT_EQ(n1.updates().restarts(), 1u) << story();
  EXPECT_THAT(story(), HasSubstr("n1 warns: ServicesNotRestarted containerd.service still uses files"));
}

// The Node names the waiting updates before anything is done, and while they are installed.
TEST_F(Installations, TheNodeNamesTheUpdates) {
  MachinePlan plan = waiting({.waiting = {"a 1 to 2", "b 1 to 2", "c 1 to 2", "d 1 to 2", "e 1 to 2", "f 1 to 2"}});
  Machine& n1 = machine("n1", plan);
  machine("n2", waiting());
  std::set<std::string> messages;
  n1.on_told = [&](const agent::Status& status) { messages.insert(status.message); };
  std::vector<std::string> noted;
  after(10s, [&] { noted = record("n1").updates; });
  run_fleet();
  EXPECT_THAT(noted, ElementsAre("a 1 to 2", "b 1 to 2", "c 1 to 2", "d 1 to 2", "e 1 to 2", "and 1 more")) << story();
  EXPECT_THAT(messages,
              Contains(AllOf(HasSubstr("6 package updates wait"), HasSubstr("a 1 to 2"), HasSubstr("and 1 more"))));
  EXPECT_THAT(messages, Contains("installing updates: a 1 to 2, b 1 to 2, c 1 to 2, d 1 to 2, e 1 to 2 and 1 more"));
}

TEST_F(Installations, OffByDefaultNothingIsInstalled) {
  MachinePlan plan = waiting();
  plan.updates.on = false;
  plan.target = "1.1";
  Machine& n1 = machine("n1", plan);
  run_fleet();
  EXPECT_EQ(n1.version(), "1.1");
  EXPECT_EQ(n1.updates().installations(), 0u);
  EXPECT_THAT(states_of("n1"), Not(Contains("updating")));
}

// The label `haulout.dev/reboot-required` says whether the machine has to be rebooted, not whether package updates
// wait.
TEST_F(Installations, AnUpdateThatWaitsIsNoRebootThatIsRequired) {
  machine("n1", waiting());
  limit = 0;
  after(2min, [&] {
    EXPECT_EQ(state("n1"), "waiting") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reboot-required"), "false");
  });
  run_for(3min);
}

// P4: after an installation that failed, the agent uncordons the node and releases its slot. A later attempt installs
// all that is left.
TEST_F(Installations, AFailureGivesTheNodeBackAndIsTriedAgain) {
  Machine& n1 = machine("n1", waiting({.failing = 2}));
  machine("n2", {.target = ""});
  web();
  bool looked = false;
  const auto& all = told(n1);
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.resource != "nodes" || change.key.name != "n1" || looked) return;
    if (state("n1") != "pending" || reason("n1") != "BackingOff") return;
    looked = true;
    EXPECT_FALSE(unschedulable("n1"));
    EXPECT_EQ(slots_held(), 0u);
    EXPECT_EQ(record("n1").failed_updates, 1u);
    EXPECT_THAT(message("n1"), AllOf(HasSubstr("no space left"), HasSubstr("attempt 1 of 3")));
  });
  run_fleet();
  EXPECT_TRUE(looked) << story();
  expect_at_rest(n1);
  EXPECT_EQ(n1.version(), "1.1");
  EXPECT_EQ(n1.updates().installations(), 3u);
  EXPECT_THAT(all, Contains("pending UpdateFailed"));
  EXPECT_EQ(record("n1").failed_updates, 0u);
}

TEST_F(Installations, AfterThreeFailuresAPersonHasToLook) {
  Machine& n1 = machine("n1", waiting({.failing = 99}));
  machine("n2", {.target = ""});
  web();
  run_fleet();
  EXPECT_EQ(state("n1"), "degraded") << story();
  EXPECT_EQ(reason("n1"), "UpdateFailed");
  EXPECT_THAT(message("n1"), AllOf(HasSubstr("no space left"), HasSubstr("attempt 3 of 3")));
  EXPECT_EQ(n1.updates().installations(), 3u);
  EXPECT_EQ(n1.boots(), 0u);
  EXPECT_FALSE(unschedulable("n1")) << "the machine runs as before";
  EXPECT_EQ(slots_held(), 1u) << "the others must not follow";
}

TEST_F(Installations, ADegradedNodeIsTriedAgainOnRequest) {
  Machine& n1 = machine("n1", waiting({.failing = 3}));
  after(3h, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{"haulout.dev/request", "reboot"}}}}}});
  });
  run_fleet(8h);
  expect_at_rest(n1);
  EXPECT_EQ(n1.updates().installations(), 4u);
  EXPECT_EQ(n1.version(), "1.1");
}

TEST_F(Installations, AnUpdateThatAPersonInstallsHealsTheNode) {
  Machine& n1 = machine("n1", waiting({.failing = 3}));
  after(3h, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    n1.updates().repaired_by_hand();
  });
  run_fleet(8h);
  expect_at_rest(n1);
  EXPECT_EQ(n1.boots(), 0u);
}

TEST_F(Installations, AnotherProgramThatInstallsIsWaitedFor) {
  Machine& n1 = machine("n1", waiting({.blocked_by = "unattended-upgr (process 77) holds the lock"}));
  web();
  const auto& all = told(n1);
  after(30min, [&] {
    EXPECT_EQ(state("n1"), "updating") << story();
    EXPECT_EQ(reason("n1"), "UpdateBlocked");
    EXPECT_THAT(message("n1"), HasSubstr("unattended-upgr"));
    EXPECT_EQ(n1.updates().installations(), 0u);
    n1.plan().updates.blocked_by.clear();
  });
  run_fleet();
  expect_at_rest(n1);
  EXPECT_EQ(n1.updates().installations(), 1u);
  EXPECT_THAT(all, Not(Contains("pending UpdateBlocked")));
}

// The machine is rebooted by hand while the node is in the state `updating`. The last warning says whether packages may
// be half installed.
TEST_F(Installations, AShutdownBeforeTheInstallationDoesNotSayThatItRuns) {
  MachinePlan plan = waiting({.blocked_by = "dpkg (process 77) holds the lock"});
  plan.delays_shutdown = 30s;
  Machine& n1 = machine("n1", plan);
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "updating") << story();
    EXPECT_EQ(n1.updates().installations(), 0u);
    n1.shut_down();
  });
  after(15min, [&] { n1.plan().updates.blocked_by.clear(); });
  run_fleet();
  expect_at_rest(n1);
  EXPECT_THAT(
      story(),
      HasSubstr("requested by the agent: the node is drained, but the installation of its updates has not begun"));
  EXPECT_THAT(story(), Not(HasSubstr("requested by the agent: updates are being installed")));
}

TEST_F(Installations, AShutdownDuringTheInstallationSaysThatItRuns) {
  MachinePlan plan = waiting({.takes = 10min});
  plan.delays_shutdown = 30s;
  Machine& n1 = machine("n1", plan);
  after(4min, [&] {
    EXPECT_TRUE(n1.updates().running()) << story();
    n1.shut_down();
  });
  run_fleet();
  expect_at_rest(n1);
  EXPECT_THAT(story(), HasSubstr("requested by the agent: updates are being installed"));
}

TEST_F(Installations, ALockThatIsHeldTooLongIsAFailure) {
  Machine& n1 = machine("n1", waiting({.blocked_by = "dpkg (process 77) holds the lock"}));
  const auto& all = told(n1);
  after(90min, [&] { n1.plan().updates.blocked_by.clear(); });
  run_fleet();
  expect_at_rest(n1);
  EXPECT_THAT(all, Contains("pending UpdateBlocked"));
}

TEST_F(Installations, AnInstallationThatTakesTooLongIsAFailure) {
  options.times.update_limit = 10min;
  Machine& n1 = machine("n1", waiting({.takes = 30min}));
  const auto& all = told(n1);
  after(12min, [&] { n1.plan().updates.takes = 1min; });
  run_fleet();
  expect_at_rest(n1);
  EXPECT_THAT(all, Contains("pending UpdateFailed"));
}

// P7: the systemd unit that installs the updates goes on without the killed agent, and the next agent waits for its
// end.
TEST_F(Installations, AnAgentThatIsKilledDuringAnInstallationIsFollowedByOneThatWaits) {
  Machine& n1 = machine("n1", waiting({.takes = 10min}));
  web();
  after(4min, [&] {
    EXPECT_EQ(state("n1"), "updating") << story();
    EXPECT_TRUE(n1.updates().running());
    n1.kill_agent();
  });
  run_fleet();
  expect_at_rest(n1);
  EXPECT_EQ(n1.updates().installations(), 1u);
  EXPECT_EQ(n1.boots(), 1u);
}

// P7: while an installation of an earlier agent runs, the node stays in the state `updating`, even if a person
// uncordons it.
TEST_F(Installations, ACordonThatIsLostIsHandledAfterTheInstallationOfAnEarlierAgent) {
  Machine& n1 = machine("n1", waiting({.takes = 10min}));
  after(4min, [&] {
    EXPECT_TRUE(n1.updates().running());
    n1.kill_agent();
    uncordon("n1");
  });
  after(6min, [&] {
    EXPECT_TRUE(n1.updates().running());
    EXPECT_EQ(state("n1"), "updating") << story();
  });
  run_fleet();
  expect_at_rest(n1);
}

TEST_F(Installations, WithoutSystemdTheNextAgentFinishesTheInstallation) {
  Machine& n1 = machine("n1", waiting({.takes = 10min, .outlives_agent = false}));
  after(4min, [&] {
    EXPECT_TRUE(n1.updates().running());
    n1.kill_agent();
  });
  run_fleet();
  expect_at_rest(n1);
  EXPECT_EQ(n1.updates().installations(), 2u);
  EXPECT_EQ(record("n1").failed_updates, 0u) << "a restart of the agent is no failure";
}

// P4, P7: no pod runs beside packages that are installed in part.
TEST_F(Installations, APowerCutDuringAnInstallationIsFinishedBeforePodsReturn) {
  Machine& n1 = machine("n1", waiting({.takes = 10min}));
  web();
  bool schedulable = false;
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.resource == "nodes" && change.key.name == "n1" && n1.updates().half_installed())
      schedulable = schedulable || !unschedulable("n1");
  });
  after(4min, [&] {
    EXPECT_TRUE(n1.updates().running());
    n1.power_cycle();
  });
  run_fleet();
  EXPECT_FALSE(schedulable) << story();
  expect_at_rest(n1);
  EXPECT_EQ(n1.updates().installations(), 2u);
  EXPECT_EQ(n1.boots(), 2u);
  EXPECT_EQ(record("n1").failed_updates, 0u);
  EXPECT_THAT(record("n1").attempts, Contains(::testing::Field(&agent::PastAttempt::reason, "RebootedMeanwhile")));
}

TEST_F(Installations, AMachineThatGoesDownInEachInstallationIsDegraded) {
  Machine& n1 = machine("n1", waiting({.takes = 10min}));
  for (const Duration at : {4min, 9min, 14min, 19min, 24min})
    after(at, [&n1] {
      if (n1.updates().running()) n1.power_cycle();
    });
  run_fleet();
  EXPECT_EQ(state("n1"), "degraded") << story();
  EXPECT_EQ(reason("n1"), "UpdateFailed");
  EXPECT_EQ(n1.updates().installations(), 3u);
}

TEST_F(Installations, APodThatComesBeforeTheInstallationIsEvictedFirst) {
  Machine& n1 = machine("n1", waiting({.blocked_by = "dpkg holds the lock"}));
  PodSpec late;
  late.spec = {{"tolerations", {{{"operator", "Exists"}}}}};
  after(5min, [&] {
    add(a_pod("late-0", late));
    n1.plan().updates.blocked_by.clear();
  });
  run_fleet();
  expect_at_rest(n1);
  EXPECT_THAT(states_of("n1"), Contains("draining").Times(2)) << story();
}

TEST_F(Installations, APersonWhoUncordonsKeepsTheNode) {
  Machine& n1 = machine("n1", waiting({.blocked_by = "dpkg holds the lock"}));
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "updating") << story();
    uncordon("n1");
    n1.plan().updates.blocked_by.clear();
  });
  after(6min, [&] {
    EXPECT_EQ(state("n1"), "pending") << story();
    EXPECT_EQ(n1.updates().installations(), 0u);
  });
  run_fleet();
  expect_at_rest(n1);
}

TEST_F(Installations, ARebootThatIsNeededAlreadyInstallsWhatWaits) {
  MachinePlan plan = waiting();
  plan.target = "1.1";
  Machine& n1 = machine("n1", plan);
  run_fleet();
  expect_at_rest(n1);
  EXPECT_EQ(n1.boots(), 1u);
  EXPECT_EQ(n1.updates().installations(), 1u);
}

TEST_F(Installations, UpdatesThatCannotBeReadAreNotCalledDone) {
  Machine& n1 = machine("n1", waiting({.unknown = true}));
  std::string shown;
  after(5min, [&] {
    shown = state("n1") + " " + reason("n1") + " " + message("n1");
    n1.plan().updates.unknown = false;
  });
  run_fleet();
  EXPECT_THAT(shown, AllOf(HasSubstr("BackendUnknown"), HasSubstr("the lists of packages cannot be read"))) << story();
  expect_at_rest(n1);
  EXPECT_EQ(n1.version(), "1.1");
}

TEST_F(Installations, ADownloadThatFailsOnlyCostsTime) {
  Machine& n1 = machine("n1", waiting({.fails_download = true}));
  run_fleet();
  expect_at_rest(n1);
  EXPECT_EQ(n1.version(), "1.1");
}

// --update is switched off, and the agent restarted, while the node is in the state `updating`. The next agent
// uncordons the node and releases its slot.
TEST_F(Installations, SwitchedOffInTheMiddleTheNodeIsGivenBack) {
  Machine& n1 = machine("n1", waiting({.blocked_by = "dpkg holds the lock"}));
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "updating") << story();
    n1.plan().updates.on = false;
    n1.kill_agent();
  });
  run_fleet();
  EXPECT_EQ(state("n1"), "idle") << story();
  EXPECT_FALSE(unschedulable("n1"));
  EXPECT_EQ(slots_held(), 0u);
}

// Package updates that arrive later are installed, too. They do not count as a reboot loop.
TEST_F(Installations, TheNextUpdatesAreInstalledToo) {
  Machine& n1 = machine("n1", waiting({.need_reboot = false}));
  after(1h, [&] { n1.updates().add({"bash 5 to 6"}); });
  run_fleet();
  expect_at_rest(n1);
  EXPECT_EQ(n1.updates().installations(), 2u);
}

// A fleet whose agents write images that only the next boot runs.
struct Images : Installations {
  static MachinePlan offered(UpdatesPlan updates = {}) {
    updates.image = "42.1";
    updates.waiting = {"1.0 to 42.1"};
    return waiting(std::move(updates));
  }
  static MachinePlan before_drain(UpdatesPlan updates = {}) {
    updates.before_drain = true;
    return offered(std::move(updates));
  }
};

TEST_F(Images, BeforeTheDrainOnlyTheRebootIsLeftForLater) {
  Machine& n1 = machine("n1", before_drain());
  machine("n2", {.target = ""});
  web();
  const auto& all = told(n1);
  std::string shown;
  after(1min, [&] {
    EXPECT_TRUE(n1.updates().running()) << story();
    EXPECT_FALSE(unschedulable("n1")) << "the pods stay";
    EXPECT_EQ(slots_held(), 0u) << "other nodes may be updated meanwhile";
    shown = state("n1") + " " + message("n1");
  });
  run_fleet();
  EXPECT_THAT(shown, AllOf(HasSubstr("pending"), HasSubstr("writing the image for the next boot: 1.0 to 42.1")));
  EXPECT_THAT(all, Contains("pending ApplyingUpdate"));
  expect_at_rest(n1);
  EXPECT_EQ(n1.version(), "42.1");
  EXPECT_EQ(n1.boots(), 1u);
  EXPECT_EQ(n1.updates().installations(), 1u);
  EXPECT_THAT(states_of("n1"), ElementsAre("idle", "pending", "waiting", "draining", "ready", "rebooting", "verifying",
                                           "uncordoning", "soaking", "idle"))
      << story();
  EXPECT_EQ(record("n1").attempts.back().why, "version 42.1 runs");
}

TEST_F(Images, AfterTheDrainTheVersionIsVerifiedToo) {
  Machine& n1 = machine("n1", offered());
  web();
  run_fleet();
  expect_at_rest(n1);
  EXPECT_EQ(n1.version(), "42.1");
  EXPECT_THAT(states_of("n1"), Contains("updating"));
  EXPECT_EQ(record("n1").attempts.back().why, "version 42.1 runs");
}

// P4: if an image cannot be written before the drain, no pod is evicted, and the agent tries again with growing delays.
TEST_F(Images, AFailureBeforeTheDrainDisturbsNobody) {
  Machine& n1 = machine("n1", before_drain({.failing = 2}));
  machine("n2", {.target = ""});
  web();
  std::string shown;
  after(4min, [&] { shown = reason("n1") + " " + message("n1"); });
  run_fleet();
  EXPECT_THAT(shown, AllOf(HasSubstr("BackingOff"), HasSubstr("no space left"), HasSubstr("attempt 1 of 3")));
  expect_at_rest(n1);
  EXPECT_EQ(n1.version(), "42.1");
  EXPECT_EQ(n1.updates().installations(), 3u);
  EXPECT_EQ(n1.boots(), 1u);
  EXPECT_EQ(record("n1").failed_updates, 0u);
}

TEST_F(Images, AfterThreeFailuresBeforeTheDrainAPersonHasToLook) {
  Machine& n1 = machine("n1", before_drain({.failing = 99}));
  machine("n2", {.target = ""});
  web();
  run_fleet();
  EXPECT_EQ(state("n1"), "degraded") << story();
  EXPECT_EQ(reason("n1"), "UpdateFailed");
  EXPECT_EQ(n1.updates().installations(), 3u);
  EXPECT_FALSE(unschedulable("n1"));
  EXPECT_EQ(slots_held(), 0u) << "it never had one";
  EXPECT_THAT(states_of("n1"), ElementsAre("idle", "pending", "degraded")) << story();
}

TEST_F(Images, NothingIsWrittenWhileAGateIsClosed) {
  bool closed = true;
  gates = [this, &closed](k8s::Client&, const std::string&) {
    return std::make_unique<ScriptedGates>(clock, [&closed](const agent::GateQuestion&) {
      if (!closed) return agent::GateAnswer{};
      return agent::GateAnswer{
          {{.name = "pause", .verdict = agent::Gate::Verdict::closed, .reason = "Paused", .message = "not today"}}};
    });
  };
  Machine& n1 = machine("n1", before_drain());
  after(1h, [&] {
    EXPECT_EQ(n1.updates().installations(), 0u) << story();
    EXPECT_EQ(reason("n1"), "Paused");
    closed = false;
  });
  run_fleet();
  expect_at_rest(n1);
  EXPECT_EQ(n1.version(), "42.1");
}

// P7: the tool that writes the image goes on without the killed agent, and the next agent waits for its end.
TEST_F(Images, AKilledAgentWaitsForWhatItHadBegun) {
  Machine& n1 = machine("n1", before_drain());
  after(1min, [&] {
    EXPECT_TRUE(n1.updates().running()) << story();
    n1.kill_agent();
  });
  run_fleet();
  expect_at_rest(n1);
  EXPECT_EQ(n1.updates().installations(), 1u);
  EXPECT_EQ(n1.version(), "42.1");
}

// RAUC calls a slot by its name if it does not know which bundle is in it. If it forgets that at each boot, it offers
// the same bundle after each boot. The agent must not drain and reboot the node for it again and again.
TEST_F(Images, AToolThatForgetsWhatItHasWrittenLeadsToOneReboot) {
  MachinePlan plan = before_drain({.forgets = true});
  plan.lands_on = "rootfs.1";
  Machine& n1 = machine("n1", plan);
  machine("n2", {.target = ""});
  web();
  run_fleet();
  EXPECT_EQ(state("n1"), "degraded") << story();
  EXPECT_EQ(reason("n1"), "VersionUnexpected");
  EXPECT_THAT(message("n1"), HasSubstr("version rootfs.1 runs, expected 42.1, which the update tool offers again"));
  EXPECT_EQ(n1.boots(), 1u);
  EXPECT_EQ(n1.updates().installations(), 1u);
}

// A version that was rolled back is neither written nor booted again.
TEST_F(Images, AVersionThatWasRolledBackIsNotWrittenAgain) {
  MachinePlan plan = before_drain();
  plan.rolls_back = true;
  Machine& n1 = machine("n1", plan);
  after(3h, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    EXPECT_THAT(record("n1").bad_targets, ElementsAre("42.1"));
    // The boot loader runs the old image, and the tool offers the bad one again.
    n1.plan().target = "";
    n1.updates().add({"1.0 to 42.1"});
  });
  run_fleet(8h);
  EXPECT_EQ(n1.updates().installations(), 1u) << story();
  EXPECT_EQ(n1.boots(), 1u);
}

// A person requests a reboot, which tries the version that is offered by then, also if that appeared a moment ago.
// RAUC's boot loader has fallen back to the old slot, so the image has to be written again; without that the node would
// reboot into the old version.
TEST_F(Images, ARequestLetsAVersionThatWasRolledBackBeWrittenAgain) {
  MachinePlan plan = before_drain();
  plan.rolls_back = true;
  Machine& n1 = machine("n1", plan);
  after(3h, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    n1.want("");
    n1.plan().rolls_back = false;
    n1.updates().add({"1.0 to 42.1"});
    cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{"haulout.dev/request", "reboot"}}}}}});
  });
  run_fleet(8h);
  expect_at_rest(n1);
  EXPECT_EQ(n1.version(), "42.1");
  EXPECT_EQ(n1.updates().installations(), 2u) << story();
  EXPECT_EQ(n1.boots(), 2u);
}

}  // namespace
}  // namespace haulout::fleet
