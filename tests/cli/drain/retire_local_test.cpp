// Tests `haulout retire --local` against the simulated cluster and a fake machine, in virtual time.
#include "tests/cli/drain/retire_fixture.hpp"

namespace haulout::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* machine_id = "0123456789abcdef0123456789abcdef";

// What the fake machine is, does and has done.
struct Machine {
  MachineIdentity identity{.root = true, .host_name = "N1", .machine_id = machine_id, .boot_id = "boot-1"};
  Result<> claimed{};
  Result<agent::ProgramFiles> files = agent::ProgramFiles{{"10-first", "50-kubeadm", "90-last"}, {}};
  Duration takes = 3s;                                 // each program
  std::map<std::string, Error> fails;                  // by program
  std::map<std::string, Error> fails_dry;              // in the dry run
  std::map<std::string, std::function<void()>> midst;  // called while the program runs, not in the dry run
  std::vector<std::string> ran;                        // "PROGRAM", with " dry" in the dry run
};

class FakeMachine final : public LocalMachine {
 public:
  FakeMachine(Machine& machine, Clock& clock) : machine_(machine), clock_(clock) {}
  Result<MachineIdentity> identity() override { return machine_.identity; }
  Result<> claim() override { return machine_.claimed; }
  Result<agent::ProgramFiles> programs() override { return machine_.files; }
  Task<> run(std::string program, ProgramEnvironment environment, TimePoint deadline,
             std::function<void(std::string_view)> said) override {
    EXPECT_EQ(environment[0], (std::pair<std::string, std::string>("HAULOUT_NODE", "n1")));
    EXPECT_EQ(environment[1].first, "HAULOUT_DRY_RUN");
    const bool dry = environment[1].second == "1";
    machine_.ran.push_back(program + (dry ? " dry" : ""));
    if (dry) {
      said("would remove\teverything");
      if (const auto wrong = machine_.fails_dry.find(program); wrong != machine_.fails_dry.end())
        co_return wrong->second;
      co_return Result<>();
    }
    co_await clock_.sleep_until(std::min(deadline, clock_.now() + machine_.takes / 2));
    if (const auto act = machine_.midst.find(program); act != machine_.midst.end()) act->second();
    co_await clock_.sleep_until(std::min(deadline, clock_.now() + machine_.takes / 2));
    if (clock_.now() >= deadline) co_return Error(Errc::timeout, "it exceeded its time limit and was stopped");
    said("removed everything");
    if (const auto wrong = machine_.fails.find(program); wrong != machine_.fails.end()) co_return wrong->second;
    co_return Result<>();
  }

 private:
  Machine& machine_;
  Clock& clock_;
};

class RetireLocalTest : public RetireTest {
 protected:
  RetireLocalTest() { show(machine_id, "boot-1"); }

  // The kubelet of n1 reports these ids.
  void show(const std::string& id, const std::string& boot) {
    cluster.patch("nodes", "", "n1", {{"status", {{"nodeInfo", {{"machineID", id}, {"bootID", boot}}}}}});
  }
  int retire(std::vector<std::string> args = {}, std::optional<Duration> interrupt = std::nullopt) {
    args.insert(args.begin(), {"retire", "--local"});
    LineView view(console, {});
    DrainJob job(tools(), settings_of(args), view, nullptr, std::make_unique<FakeMachine>(machine, clock));
    return run_job(job, interrupt);
  }
  Json report() const { return Json::parse(out.text)["retirement"]; }
  // Nothing of the machine and of the cluster was changed.
  void expect_untouched() {
    for (const std::string& run : machine.ran) EXPECT_THAT(run, HasSubstr(" dry"));
    for (const auto& entry : cluster.audit()) EXPECT_FALSE(entry.applied) << entry.text();
    EXPECT_FALSE(cordoned("n1"));
  }

  Machine machine;
};

TEST_F(RetireLocalTest, DrainsCleansUpAndDeletesTheNode) {
  add_pod("web-0", "n1", true);
  add_daemon_pod();
  add_lease_and_csinode();
  machine.midst["10-first"] = [this] {
    EXPECT_FALSE(exists("pods", "shop", "web-0")) << "the clean-up follows the drain";
    EXPECT_TRUE(exists("nodes", "", "n1")) << "and precedes the deletion";
  };
  EXPECT_EQ(retire({"-o", "json"}), 0) << errors.text;
  EXPECT_THAT(machine.ran,
              ElementsAre("10-first dry", "50-kubeadm dry", "90-last dry", "10-first", "50-kubeadm", "90-last"));
  EXPECT_FALSE(exists("nodes", "", "n1"));
  EXPECT_TRUE(exists("nodes", "", "n2"));
  EXPECT_EQ(report()["outcome"], "retired");
  EXPECT_EQ(report()["cleanUp"], Json::parse(R"([{"name":"10-first","result":"done","message":""},
                            {"name":"50-kubeadm","result":"done","message":""},
                            {"name":"90-last","result":"done","message":""}])"));
  EXPECT_THAT(errors.text,
              AllOf(HasSubstr("50-kubeadm (dry run): would remove"), HasSubstr("90-last: removed everything")));
}

TEST_F(RetireLocalTest, ADryRunRunsTheProgramsDryAndChangesNothing) {
  add_pod("web-0", "n1", true);
  EXPECT_EQ(retire({"n1", "--dry-run=client"}), 0) << errors.text;
  EXPECT_THAT(machine.ran, ElementsAre("10-first dry", "50-kubeadm dry", "90-last dry"));
  EXPECT_THAT(text.text, HasSubstr("node \"n1\" deleted (dry run)\n"));
  expect_untouched();
}

TEST_F(RetireLocalTest, P2_TheNodeOfAnotherMachineIsNotTouched) {
  struct Row {
    std::string machine, boot, says;
  };
  for (const Row& row : {Row{"ffff", "boot-1", "its machineID is ffff, but /etc/machine-id on this machine is 0123"},
                         Row{"", "boot-1", "its machineID is empty"},
                         Row{machine_id, "boot-0",
                             "its bootID is boot-0, but /proc/sys/kernel/random/boot_id on this "
                             "machine is boot-1"}}) {
    errors.text.clear();
    show(row.machine, row.boot);
    EXPECT_EQ(retire(), 1) << row.says;
    EXPECT_THAT(errors.text,
                AllOf(HasSubstr("node/n1 cannot be retired, so nothing was changed"), HasSubstr(row.says)));
    EXPECT_THAT(machine.ran, IsEmpty());
  }
  EXPECT_EQ(retire({"n2"}), 1) << "the simulated cluster gives n2 no machine id";
  show("", "");
  machine.identity.machine_id = machine.identity.boot_id = "";
  EXPECT_EQ(retire(), 1) << "two unknown ids are not equal";
  EXPECT_THAT(machine.ran, IsEmpty());
}

TEST_F(RetireLocalTest, RefusesWithoutARequest) {
  const Machine right = machine;
  struct Row {
    std::function<void(Machine&)> change;
    std::string says;
  };
  for (const Row& row :
       {Row{[](Machine& m) { m.identity.root = false; }, "sudo"},
        Row{[](Machine& m) { m.identity.elsewhere = "it is in another namespace (mnt) than process 1"; },
            "not in a container or pod: it is in another namespace (mnt)"},
        Row{[](Machine& m) { m.claimed = Error(Errc::unavailable, "another one still runs"); }, "still runs"},
        Row{[](Machine& m) { m.identity.host_name = ""; }, "name its node"},
        Row{[](Machine& m) { m.files = agent::ProgramFiles{}; }, "--no-cleanup"},
        Row{[](Machine& m) { m.files->skipped = {"60-b is not run: it is not a file"}; }, "60-b is not run"},
        Row{[](Machine& m) { m.files = Error(Errc::invalid, "chmod go-w 60-b"); }, "chmod go-w"}}) {
    machine = right;
    row.change(machine);
    errors.text.clear();
    EXPECT_EQ(retire(), 1) << row.says;
    EXPECT_THAT(errors.text,
                AllOf(HasSubstr("this machine cannot be retired, so nothing was changed"), HasSubstr(row.says)));
    EXPECT_THAT(machine.ran, IsEmpty());
  }
  EXPECT_TRUE(cluster.audit().empty());
}

TEST_F(RetireLocalTest, AKubeconfigThatTheCleanUpDeletesIsRefused) {
  const auto retire_with = [this](std::vector<std::string> args) {
    Settings settings = settings_of(args);
    settings.retire.connection_files = {"/root/ca.crt", "/etc/kubernetes/admin.conf"};
    LineView view(console, {});
    DrainJob job(tools(), settings, view, nullptr, std::make_unique<FakeMachine>(machine, clock));
    return run_job(job);
  };
  EXPECT_EQ(retire_with({"retire", "--local"}), 1);
  EXPECT_THAT(errors.text, HasSubstr("may delete /etc/kubernetes/admin.conf"));
  expect_untouched();
  EXPECT_TRUE(cluster.audit().empty());
  EXPECT_EQ(retire_with({"retire", "--local", "--no-cleanup"}), 0) << "nothing deletes it";
}

TEST_F(RetireLocalTest, P2_ANodeWithAnotherNameMustShowAnAddressOfTheMachine) {
  machine.identity.host_name = "other";
  EXPECT_EQ(retire({"n1"}), 1);
  EXPECT_THAT(errors.text, HasSubstr("its name is not the host name other"));
  EXPECT_THAT(machine.ran, IsEmpty());
  machine.identity.addresses = {"192.0.2.7"};
  const auto address = [](const char* type) { return Json{{"type", type}, {"address", "192.0.2.7"}}; };
  cluster.patch("nodes", "", "n1", {{"status", {{"addresses", {address("Hostname")}}}}});
  EXPECT_EQ(retire({"n1"}), 1);
  cluster.patch("nodes", "", "n1", {{"status", {{"addresses", {address("Hostname"), address("InternalIP")}}}}});
  EXPECT_EQ(retire({"n1"}), 0) << errors.text;
}

// The kubelet of a machine that was restored from a copy takes over the Node. Its UID stays the same.
TEST_F(RetireLocalTest, P2_ANodeThatAnotherMachineHasTakenOverDuringTheDrainIsLeft) {
  add_pod("web-0", "n1", true);
  at_request("create", "pods", 1, [this] { show("ffff", "boot-9"); });
  EXPECT_EQ(retire(), 1);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("the machine was not cleaned up"), HasSubstr("its machineID is ffff")));
  EXPECT_THAT(machine.ran, ElementsAre("10-first dry", "50-kubeadm dry", "90-last dry"));
  EXPECT_THAT(deletions(), IsEmpty());
}

TEST_F(RetireLocalTest, P2_ANodeThatAnotherMachineHasTakenOverDuringTheCleanUpIsNotDeleted) {
  machine.midst["90-last"] = [this] { show(machine_id, "boot-9"); };
  EXPECT_EQ(retire(), 1);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("it shows another machine now"),
                                 HasSubstr("10-first is done, 50-kubeadm is done, 90-last is done")));
  EXPECT_TRUE(exists("nodes", "", "n1"));
  EXPECT_THAT(deletions(), IsEmpty());
}

TEST_F(RetireLocalTest, ProgramsThatChangeDuringTheDrainAreNotRun) {
  struct Row {
    std::function<void(Machine&)> change;
    std::string says;
  };
  for (const Row& row : {Row{[](Machine& m) { m.files->names = {"10-first", "50-kubeadm"}; }, "10-first, 50-kubeadm"},
                         Row{[](Machine& m) { m.files->names.emplace_back("99-new"); }, "99-new"},
                         Row{[](Machine& m) { m.files->skipped = {"60-b is not run: it is not a file"}; }, "60-b"},
                         Row{[](Machine& m) { m.files = Error(Errc::invalid, "chmod go-w 10-first"); }, "go-w"}}) {
    errors.text.clear();
    machine = Machine();
    add_pod("web-" + row.says.substr(0, 2), "n1", true);
    at_request("create", "pods", 1, [&] { row.change(machine); });
    EXPECT_EQ(retire(), 1);
    EXPECT_THAT(errors.text, AllOf(HasSubstr("clean-up program 10-first: it was not run, because the programs have "
                                             "changed since their dry run"),
                                   HasSubstr(row.says)));
    EXPECT_THAT(machine.ran, ElementsAre("10-first dry", "50-kubeadm dry", "90-last dry"));
    EXPECT_THAT(deletions(), IsEmpty());
  }
}

TEST_F(RetireLocalTest, AProgramThatChangesDuringTheCleanUpIsNotRun) {
  machine.midst["10-first"] = [this] { machine.files->names = {"10-first", "50-kubeadm"}; };
  EXPECT_EQ(retire(), 1);
  EXPECT_EQ(machine.ran.back(), "10-first");
  EXPECT_THAT(errors.text, HasSubstr("10-first is done, 50-kubeadm did not run, 90-last did not run"));
  EXPECT_THAT(deletions(), IsEmpty());
}

TEST_F(RetireLocalTest, WithoutACleanUpNoProgramRuns) {
  machine.files = agent::ProgramFiles{};
  EXPECT_EQ(retire({"--no-cleanup", "-o", "json"}), 0) << errors.text;
  EXPECT_EQ(report()["cleanUp"], Json::array());
  EXPECT_FALSE(exists("nodes", "", "n1"));
}

TEST_F(RetireLocalTest, AnUnknownNodeIsSaidWithTheWayOut) {
  machine.identity.host_name = "other";
  EXPECT_EQ(retire(), 1);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("node other does not exist"), HasSubstr("has another name"),
                                 HasSubstr("run the programs in /etc/haulout/retire.d by hand, first with "
                                           "HAULOUT_DRY_RUN=1")));
}

TEST_F(RetireLocalTest, ADryRunOfAProgramThatFailsChangesNothing) {
  add_pod("web-0", "n1", true);
  machine.fails_dry.insert({"50-kubeadm", Error(Errc::unavailable, "exit status 1: this is a control plane")});
  EXPECT_EQ(retire(), 1);
  EXPECT_THAT(errors.text, HasSubstr("clean-up program 50-kubeadm failed in its dry run: exit status 1: this is a"));
  EXPECT_THAT(machine.ran, ElementsAre("10-first dry", "50-kubeadm dry"));
  expect_untouched();
}

TEST_F(RetireLocalTest, ADrainThatFailsCleansNothing) {
  add_pod("alone", "n1", false);
  EXPECT_EQ(retire(), 1);
  EXPECT_THAT(errors.text, HasSubstr("--force"));
  expect_untouched();
}

TEST_F(RetireLocalTest, P1_APodThatStaysPreventsTheCleanUp) {
  add_pod("db-0", "n1", true);
  EXPECT_EQ(retire({"--pod-selector", "app=web"}), 1);
  EXPECT_THAT(errors.text, HasSubstr("  pod shop/db-0: it would end with the Node"));
  EXPECT_THAT(machine.ran, ElementsAre("10-first dry", "50-kubeadm dry", "90-last dry"));
}

TEST_F(RetireLocalTest, AProgramThatFailsKeepsTheNode) {
  machine.fails.insert({"50-kubeadm", Error(Errc::unavailable, "exit status 3: busy")});
  EXPECT_EQ(retire({"-o", "json"}), 1);
  EXPECT_TRUE(exists("nodes", "", "n1"));
  EXPECT_TRUE(cordoned("n1"));
  EXPECT_THAT(deletions(), IsEmpty());
  EXPECT_EQ(report()["outcome"], "kept");
  EXPECT_EQ(report()["deletion"], "not-sent");
  EXPECT_EQ(report()["leftovers"][0]["what"], "clean-up program 50-kubeadm");
  EXPECT_EQ(report()["cleanUp"][1]["message"], "exit status 3: busy");
  EXPECT_THAT(
      errors.text,
      AllOf(HasSubstr("error: node/n1 was drained, but not retired\n  clean-up program 50-kubeadm: exit status 3"),
            HasSubstr("clean-up: 10-first is done, 50-kubeadm failed, 90-last did not run")));
  machine.fails.clear();
  machine.ran.clear();
  EXPECT_EQ(retire(), 0) << errors.text;
  EXPECT_THAT(machine.ran,
              ElementsAre("10-first dry", "50-kubeadm dry", "90-last dry", "10-first", "50-kubeadm", "90-last"))
      << "a second run starts with the first program";
}

TEST_F(RetireLocalTest, AProgramThatExceedsItsLimitKeepsTheNode) {
  machine.takes = 1h;
  EXPECT_EQ(retire({"--cleanup-timeout=20s"}), 1);
  EXPECT_THAT(errors.text, HasSubstr("it exceeded its time limit and was stopped (--cleanup-timeout 20s)"));
  EXPECT_TRUE(exists("nodes", "", "n1"));
}

TEST_F(RetireLocalTest, P2_ANamesakeThatComesDuringTheCleanUpIsNotDeleted) {
  machine.midst["50-kubeadm"] = [this] { become_another_node(); };
  EXPECT_EQ(retire({"-o", "json"}), 1);
  EXPECT_EQ(report()["outcome"], "replaced");
  EXPECT_EQ(sim::uid_of(cluster.get("nodes", "", "n1")), "another");
  EXPECT_THAT(deletions(), IsEmpty());
}

TEST_F(RetireLocalTest, P2_ANodeThatWasReplacedDuringTheDrainIsNotCleanedUp) {
  add_pod("web-0", "n1", true);
  at_request("create", "pods", 1, [this] { become_another_node(); });
  EXPECT_EQ(retire(), 1);
  EXPECT_THAT(machine.ran, ElementsAre("10-first dry", "50-kubeadm dry", "90-last dry"));
  EXPECT_EQ(sim::uid_of(cluster.get("nodes", "", "n1")), "another");
}

TEST_F(RetireLocalTest, P3_ANodeThatIsUncordonedDuringTheCleanUpIsKept) {
  machine.midst["90-last"] = [this] { cluster.patch("nodes", "", "n1", {{"spec", {{"unschedulable", false}}}}); };
  EXPECT_EQ(retire(), 1);
  EXPECT_THAT(errors.text, HasSubstr("  node n1: it is not cordoned any more"));
  EXPECT_THAT(deletions(), IsEmpty());
}

// A pod does not change the Node, so the resourceVersion of the deletion does not protect it.
TEST_F(RetireLocalTest, P1_APodThatComesDuringTheCleanUpKeepsTheNode) {
  machine.midst["90-last"] = [this] { add_pod("late", "n1", true); };
  EXPECT_EQ(retire(), 1);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("  pod shop/late: it would end with the Node"),
                                 HasSubstr("clean-up: 10-first is done, 50-kubeadm is done, 90-last is done")));
  EXPECT_THAT(deletions(), IsEmpty());
}

// The clean-up stops the kubelet, so the Node is not Ready any more, and gets taints.
TEST_F(RetireLocalTest, AKubeletThatWasStoppedIsNoReasonToKeepTheNode) {
  add_daemon_pod();
  machine.takes = 4min;
  machine.midst["10-first"] = [this] {
    cluster.patch("nodes", "", "n1",
                  {{"spec", {{"taints", {{{"key", "node.kubernetes.io/unreachable"}, {"effect", "NoExecute"}}}}}},
                   {"status", {{"conditions", {{{"type", "Ready"}, {"status", "Unknown"}}}}}}});
  };
  LineView view(console, {});
  DrainJob job(tools(), settings_of({"retire", "--local"}), view, nullptr,
               std::make_unique<FakeMachine>(machine, clock));
  EXPECT_EQ(CommandTest::run_job(job, {1s, 30min}), 0) << errors.text;
  EXPECT_FALSE(exists("nodes", "", "n1"));
}

TEST_F(RetireLocalTest, AnotherProgramMayDeleteTheNodeDuringTheCleanUp) {
  machine.midst["10-first"] = [this] { cluster.remove("nodes", "", "n1"); };
  EXPECT_EQ(retire({"-o", "json"}), 0) << errors.text;
  EXPECT_EQ(report()["deletion"], "by-another");
  EXPECT_THAT(deletions(), IsEmpty());
}

TEST_F(RetireLocalTest, AnInterruptionOfTheCleanUpSaysWhatHasRun) {
  machine.takes = 20s;
  EXPECT_EQ(retire({"--settle=0", "-o", "json"}, 25s), 143);
  EXPECT_EQ(machine.ran.back(), "50-kubeadm");
  EXPECT_EQ(report()["outcome"], "cancelled");
  EXPECT_EQ(report()["deletion"], "not-sent");
  EXPECT_EQ(report()["cleanUp"][0]["result"], "done");
  EXPECT_EQ(report()["cleanUp"][1]["result"], "interrupted");
  EXPECT_EQ(report()["cleanUp"][2]["result"], "not-run");
  EXPECT_THAT(errors.text,
              AllOf(HasSubstr("stopped during the clean-up of the machine, before the Node was deleted"),
                    HasSubstr("10-first is done, 50-kubeadm was stopped while it ran, 90-last did not run")));
  EXPECT_TRUE(exists("nodes", "", "n1"));
  EXPECT_TRUE(cordoned("n1"));
}

TEST_F(RetireLocalTest, AnInterruptionOfTheDrainLeavesTheMachineAlone) {
  add_pod("web-0", "n1", true);
  EXPECT_EQ(retire({}, 3s), 143);
  EXPECT_THAT(machine.ran, ElementsAre("10-first dry", "50-kubeadm dry", "90-last dry"));
  EXPECT_THAT(errors.text, Not(HasSubstr("clean-up: ")));
}

TEST_F(RetireLocalTest, AnAgentThatUpdatesTheNodePreventsEvenTheDryRuns) {
  cluster.patch("nodes", "", "n1", {{"metadata", {{"labels", {{"haulout.dev/state", "draining"}}}}}});
  EXPECT_EQ(retire(), 1);
  EXPECT_THAT(machine.ran, IsEmpty());
}

TEST(RetireLocalFlags, MeanThisMachineAlone) {
  const auto problem = [](std::vector<std::string> args) {
    args.insert(args.begin(), "retire");
    const auto parsed = parse_command_line("haulout", args);
    const auto* refused = std::get_if<Immediate>(&parsed);
    return refused == nullptr ? std::string() : refused->err;
  };
  EXPECT_EQ(problem({"--local"}), "");
  EXPECT_EQ(problem({"--local", "n1", "--cleanup-timeout=1m"}), "");
  EXPECT_THAT(problem({"--local", "n1", "n2"}), HasSubstr("at most the name of this node"));
  EXPECT_THAT(problem({"--local", "-l", "a=b"}), HasSubstr("no --selector"));
  EXPECT_THAT(problem({"n1", "--no-cleanup"}), HasSubstr("--no-cleanup has no effect without --local"));
  EXPECT_THAT(problem({"n1", "--cleanup-timeout=1m"}), HasSubstr("--cleanup-timeout has no effect"));
  EXPECT_THAT(problem({"--local", "--no-cleanup", "--cleanup-timeout=1m"}), HasSubstr("exclude each other"));
  EXPECT_THAT(problem({"--local", "--cleanup-timeout=0"}), HasSubstr("cleanup-timeout"));
  EXPECT_THAT(problem({}), HasSubstr("no node is given"));
}

TEST(RetireLocalNode, HasTheNameOfTheHostInLowerCase) {
  for (const auto& [host, node] : {std::pair("N1.Example", "n1.example"), std::pair("n2", "n2"), std::pair("", "")})
    EXPECT_EQ(node_name_of({.root = true, .host_name = host}), node);
}

}  // namespace
}  // namespace haulout::cli
