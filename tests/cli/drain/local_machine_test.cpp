// Tests the machine of `haulout retire --local` with real programs in a temporary directory.
#include "cli/drain/local_machine.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <tuple>

#include "retry/task_group.hpp"
#include "tests/k8s/temp_dir.hpp"
#include "tests/support/real_time.hpp"

namespace haulout::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class LocalMachineTest : public haulout::testing::RealTimeTest {
 protected:
  haulout::testing::TempDir dir;
  std::unique_ptr<LocalMachine> machine = this_machine(clock, dir.path());
  std::vector<std::string> lines;

  void script(const std::string& name, const std::string& body) {
    dir.write_script("etc/haulout/retire.d/" + name, body);
  }
  // As a slow terminal does.
  void take_two_milliseconds() const {
    const TimePoint end = clock.now() + std::chrono::milliseconds(2);
    while (clock.now() < end) {
    }
  }
  Task<> started(const std::string& name, TimePoint deadline, ProgramEnvironment environment = {}) {
    return machine->run(name, std::move(environment), deadline,
                        [this](std::string_view line) { lines.emplace_back(line); });
  }
};

TEST_F(LocalMachineTest, ReadsItsIds) {
  dir.write("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
  dir.write("proc/sys/kernel/random/boot_id", "b007\n");
  const auto identity = machine->identity();
  ASSERT_TRUE(identity) << identity.error().message();
  EXPECT_EQ(identity->machine_id, "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(identity->boot_id, "b007");
  EXPECT_FALSE(identity->host_name.empty());
}

// Makes process 1 and this process of the system in `dir` have these namespaces.
void write_namespaces(const haulout::testing::TempDir& dir, const std::string& other = "") {
  for (const char* process : {"self", "1"}) {
    const std::filesystem::path ns = dir / ("proc/" + std::string(process) + "/ns");
    std::filesystem::create_directories(ns);
    for (const std::string kind : {"mnt", "pid", "net", "cgroup", "user"})
      std::filesystem::create_symlink(kind + (kind == other && ns.parent_path().filename() == "1" ? ":[2]" : ":[1]"),
                                      ns / kind);
  }
}

TEST_F(LocalMachineTest, KnowsThatItIsNotInAContainer) {
  dir.write("proc/sys/kernel/random/boot_id", "b007\n");
  dir.write("proc/self/cgroup", "0::/user.slice/session-1.scope\n");
  EXPECT_THAT(machine->identity().value().elsewhere, HasSubstr("cannot be compared")) << "in doubt, it is elsewhere";
  write_namespaces(dir);
  EXPECT_EQ(machine->identity().value().elsewhere, "");
  dir.write("run/.containerenv", "");
  EXPECT_EQ(machine->identity().value().elsewhere, "/run/.containerenv exists");
  std::filesystem::remove(dir / "run/.containerenv");
  dir.write(".dockerenv", "");
  EXPECT_EQ(machine->identity().value().elsewhere, "/.dockerenv exists");
  std::filesystem::remove(dir / ".dockerenv");
  for (const char* group :
       {"/kubepods.slice/kubepods-pod1.slice/cri-containerd-2.scope", "/kubepods/pod1/3",
        "/machine.slice/libpod-4.scope", "/system.slice/docker-5.scope", "/docker/6", "/system.slice/crio-7.scope"}) {
    dir.write("proc/self/cgroup", "0::" + std::string(group) + "\n");
    EXPECT_THAT(machine->identity().value().elsewhere, HasSubstr("its cgroup is that of a container")) << group;
  }
  std::filesystem::remove(dir / "proc/self/cgroup");
  EXPECT_THAT(machine->identity().value().elsewhere, HasSubstr("its cgroup is unknown"));
}

// A toolbox has the boot id and the machine id of its machine.
TEST_F(LocalMachineTest, AnotherNamespaceThanThatOfProcess1IsAContainer) {
  for (const char* kind : {"mnt", "pid", "net", "cgroup", "user"}) {
    const haulout::testing::TempDir container;
    container.write("proc/sys/kernel/random/boot_id", "b007\n");
    container.write("proc/self/cgroup", "0::/\n");
    write_namespaces(container, kind);
    EXPECT_EQ(this_machine(clock, container.path())->identity().value().elsewhere,
              "it is in another namespace (" + std::string(kind) + ") than process 1");
  }
}

TEST_F(LocalMachineTest, ItsAddressesAreNoLoopbackAddresses) {
  dir.write("proc/sys/kernel/random/boot_id", "b007\n");
  EXPECT_THAT(machine->identity().value().addresses, Not(Contains("127.0.0.1")));
  EXPECT_THAT(machine->identity().value().addresses, Not(Contains("::1")));
}

TEST(AnotherMachine, ANodeWithAnotherNameMustHaveAnAddressOfTheMachine) {
  MachineIdentity machine{.root = true, .host_name = "N1", .machine_id = "m", .boot_id = "b"};
  machine.addresses = {"192.0.2.7", "2001:db8::7"};
  k8s::NodeMachine node;
  node.machine_id = "m";
  node.boot_id = "b";
  node.name = "n1";
  EXPECT_EQ(another_machine(node, machine), "") << "the host name in lower case";
  node.name = "worker";
  EXPECT_THAT(another_machine(node, machine), HasSubstr("its name is not the host name N1"));
  node.addresses = {"192.0.2.8", "not an address"};
  EXPECT_THAT(another_machine(node, machine), HasSubstr("192.0.2.8"));
  node.addresses.emplace_back("2001:db8:0::7");
  EXPECT_EQ(another_machine(node, machine), "");
}

TEST(DeletedByCleanUp, FindsFilesAlsoByWayOfLinks) {
  const haulout::testing::TempDir system;
  const haulout::testing::TempDir home;
  const std::string admin = system.write("etc/kubernetes/admin.conf", "");
  const std::string copy = home.write("config", "");
  std::filesystem::create_symlink(admin, home / "linked");
  const auto found = [&](const std::string& path) { return deleted_by_clean_up({copy, path}, system.path()); };
  EXPECT_EQ(found(admin), admin);
  EXPECT_EQ(found(home / "linked"), home / "linked");
  EXPECT_EQ(found(system / "etc/kubernetes/pki/missing.crt"), system / "etc/kubernetes/pki/missing.crt");
  EXPECT_EQ(found(system / "etc/x/../kubernetes/admin.conf"), system / "etc/x/../kubernetes/admin.conf");
  EXPECT_EQ(found(copy), std::nullopt);
  EXPECT_EQ(found(system / "etc/kubernetes2/admin.conf"), std::nullopt);
  // The directory itself may be a link.
  std::filesystem::create_directories(home / "kubelet");
  std::filesystem::create_directories(system / "var/lib");
  std::filesystem::create_directory_symlink(home / "kubelet", system / "var/lib/kubelet");
  EXPECT_EQ(found(home / "kubelet/plugin"), home / "kubelet/plugin");
}

TEST_F(LocalMachineTest, CanBeClaimedOnce) {
  std::filesystem::create_directories(dir / "run");
  EXPECT_TRUE(machine->claim());
  EXPECT_TRUE(machine->claim()) << "it is claimed already";
  const auto other = this_machine(clock, dir.path());
  ASSERT_FALSE(other->claim());
  EXPECT_THAT(other->claim().error().message(), HasSubstr("still runs"));
  machine.reset();
  EXPECT_TRUE(other->claim());
}

// If the command is killed, its program goes on.
TEST_F(LocalMachineTest, AProgramThatLivesOnKeepsTheClaim) {
  std::filesystem::create_directories(dir / "run");
  ASSERT_TRUE(machine->claim());
  script("10-a", "while [ ! -e '" + (dir / "end") + "' ]; do sleep 0.01; done >/dev/null 2>&1 &");
  EXPECT_TRUE(run(started("10-a", soon())));
  machine.reset();
  const auto other = this_machine(clock, dir.path());
  EXPECT_FALSE(other->claim());
  dir.write("end", "");
  const TimePoint limit = soon();
  while (!other->claim() && clock.now() < limit) std::this_thread::yield();
  EXPECT_TRUE(other->claim());
}

TEST_F(LocalMachineTest, WithoutAMachineIdItHasNone) {
  dir.write("proc/sys/kernel/random/boot_id", "b007\n");
  EXPECT_EQ(machine->identity().value().machine_id, "");
}

TEST_F(LocalMachineTest, ListsProgramsAsHooksAreListed) {
  EXPECT_TRUE(machine->programs().value().names.empty()) << "no directory";
  script("20-b", "");
  script("10-a", "");
  script("10-a.dpkg-old", "");
  dir.write("etc/haulout/retire.d/30-c", "#!/bin/sh\n");
  const auto files = machine->programs().value();
  EXPECT_THAT(files.names, ElementsAre("10-a", "20-b"));
  EXPECT_THAT(files.skipped, ElementsAre(HasSubstr("/etc/haulout/retire.d/30-c")));
  ::chmod((dir / "etc/haulout/retire.d/20-b").c_str(), 0777);
  ASSERT_FALSE(machine->programs());
  EXPECT_THAT(machine->programs().error().message(), AllOf(HasSubstr("20-b"), HasSubstr("no clean-up program is run")));
}

TEST_F(LocalMachineTest, RefusesProgramsThatOthersMayReplace) {
  script("10-a", "");
  const auto refusal = [&](const std::string& open, mode_t mode) {
    ::chmod((dir / open).c_str(), mode);
    const auto files = machine->programs();
    ::chmod((dir / open).c_str(), 0755);
    return files ? std::string() : files.error().message();
  };
  // The target of a link is found beneath the directory of the system.
  dir.write_script("home/tool", "");
  std::filesystem::create_directories(dir / "opt");
  std::filesystem::create_symlink("/opt/link", dir / "etc/haulout/retire.d/20-b");
  std::filesystem::create_symlink("/home/tool", dir / "opt/link");
  EXPECT_THAT(machine->programs().value().names, ElementsAre("10-a", "20-b"));
  for (const std::string open : {"etc", "etc/haulout", "opt", "home"}) {
    EXPECT_THAT(refusal(open, 0775), AllOf(HasSubstr(dir / open), HasSubstr("chmod go-w"))) << open;
    EXPECT_THAT(refusal(open, 0757), HasSubstr("chmod go-w")) << open;
  }
  EXPECT_EQ(refusal("home", 01777), "") << "others cannot replace an entry there";
  EXPECT_THAT(refusal("etc/haulout/retire.d", 01777), HasSubstr("chmod go-w"));
}

// The lines of stdout and stderr arrive in the order in which the program has written them.
TEST_F(LocalMachineTest, ShowsTheOutputLineByLine) {
  script("10-a", "echo one; echo two >&2; echo \"$HAULOUT_NODE\"; printf rest");
  EXPECT_TRUE(run(started("10-a", soon(), {{"HAULOUT_NODE", "n1"}})));
  EXPECT_THAT(lines, ElementsAre("one", "two", "n1", "rest"));
}

// What a person's shell has set would redirect crictl, ctr and kubeadm, or hide programs.
TEST_F(LocalMachineTest, AProgramGetsNoOtherEnvironment) {
  ::setenv("HAULOUT_ROOT", "/elsewhere", 1);
  ::setenv("CONTAINERD_NAMESPACE", "moby", 1);
  ::setenv("https_proxy", "http://proxy", 1);
  script("10-a", "env");
  EXPECT_TRUE(run(started("10-a", soon(), {{"HAULOUT_NODE", "n1"}, {"HAULOUT_DRY_RUN", ""}})));
  ::unsetenv("HAULOUT_ROOT");
  ::unsetenv("CONTAINERD_NAMESPACE");
  ::unsetenv("https_proxy");
  EXPECT_THAT(lines, AllOf(Contains("HAULOUT_NODE=n1"), Contains("HAULOUT_DRY_RUN="), Contains("HOME=/root"),
                           Contains("LANG=C.UTF-8"), Contains("https_proxy=http://proxy"),
                           Contains("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")));
  EXPECT_THAT(lines, Not(Contains(StartsWith("HAULOUT_ROOT="))));
  EXPECT_THAT(lines, Not(Contains(StartsWith("CONTAINERD_NAMESPACE="))));
}

TEST_F(LocalMachineTest, SaysWhyAProgramFailed) {
  script("10-a", "echo first; echo 'no room'; exit 3");
  const auto failed = run(started("10-a", soon()));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Errc::unavailable);
  EXPECT_EQ(failed.error().message(), "exit status 3: no room");
}

TEST_F(LocalMachineTest, AtItsDeadlineAProgramGetsSIGTERM) {
  script("10-a", "trap 'echo ended in order; exit 0' TERM\necho begun\nwhile :; do sleep 0.01; done");
  const auto late = run(started("10-a", clock.now() + std::chrono::milliseconds(300)));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Errc::timeout);
  EXPECT_THAT(late.error().message(), HasSubstr("exceeded its time limit"));
}

// A program that writes without pause must not delay its end, and a terminal is slow. If all that there is were read
// before the deadline is served, these would be the 256 lines that are shown.
TEST_F(LocalMachineTest, AProgramThatFloodsEndsAtItsDeadline) {
  script("10-a", "exec yes \"$(printf %04000d 0)\"");
  const TimePoint deadline = clock.now() + std::chrono::milliseconds(50);
  int late = 0;
  const auto ended = run(machine->run("10-a", {}, deadline, [&](std::string_view) {
    take_two_milliseconds();
    if (clock.now() > deadline) ++late;
  }));
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code(), Errc::timeout);
  EXPECT_LT(late, 128);
}

TEST_F(LocalMachineTest, ShowsOneMiBOfTheOutput) {
  script("10-a", "yes \"$(printf %01023d 0)\" | head -n 1500; echo why >&2; exit 3");
  EXPECT_EQ(run(started("10-a", soon())).error().message(), "exit status 3: why");
  ASSERT_EQ(lines.size(), 1025U);
  EXPECT_EQ(lines.back(), "more output is not shown");
}

// The leader of the group ends at once, and its child goes on.
TEST_F(LocalMachineTest, AtItsDeadlineAProgramEndsWithItsChildren) {
  script("10-a", "(trap '' TERM; while [ ! -e '" + (dir / "end") + "' ]; do sleep 0.01; done) &\necho $!\nwait");
  const auto late = run(started("10-a", clock.now() + std::chrono::milliseconds(300)));
  ASSERT_FALSE(late);
  ASSERT_EQ(lines.size(), 1U);
  const auto runs = [&] {
    std::ifstream stat("/proc/" + lines[0] + "/stat");
    std::string pid, name, state;
    return stat >> pid >> name >> state && state != "Z" && state != "X";
  };
  const TimePoint limit = clock.now() + std::chrono::seconds(5);
  while (runs() && clock.now() < limit) std::this_thread::yield();
  EXPECT_FALSE(runs());
  dir.write("end", "");
}

boost::asio::awaitable<void> until_the_end(LocalMachine& machine, TimePoint deadline, std::vector<std::string>& lines) {
  std::ignore = co_await machine.run("10-a", {}, deadline, [&](std::string_view line) { lines.emplace_back(line); });
}

// The file shows that the program itself got SIGTERM, and not only the shell that starts it.
TEST_F(LocalMachineTest, ACancelledProgramGetsSIGTERM) {
  const std::string mark = dir / "ended";
  script("10-a", "trap 'touch " + mark + "; exit 0' TERM\necho begun\nwhile :; do sleep 0.01; done");
  run([&]() -> boost::asio::awaitable<void> {
    co_await with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
      const auto id = group.spawn(until_the_end(*machine, soon(), lines));
      while (lines.empty()) co_await clock.sleep_until(clock.now() + std::chrono::milliseconds(5));
      group.cancel(id);
    });
  }());
  EXPECT_THAT(lines, ElementsAre("begun"));
  EXPECT_TRUE(std::filesystem::exists(mark));
}

}  // namespace
}  // namespace haulout::cli
