// Tests what `haulout agent --check` prints, a line for each check.
#include "agent/service/agent_check.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "agent/process/process.hpp"
#include "agent/service/agent_service.hpp"
#include "sim/cluster.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::agent {
namespace {
using namespace std::chrono_literals;
using sim::Json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct AgentCheckTest : haulout::testing::VirtualTimeTest {
  AgentCheckTest() {
    config.host_root = ::testing::TempDir() + "check-" + std::to_string(::getpid());
    const auto boot_id = std::filesystem::path(config.host_root) / "proc/sys/kernel/random/boot_id";
    std::filesystem::create_directories(boot_id.parent_path());
    if (std::FILE* const file = std::fopen(boot_id.c_str(), "w")) {
      std::fputs("b0070000-0000-4000-8000-000000000001\n", file);
      std::fclose(file);
    }
    add({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "haulout"}}}});
    add({{"apiVersion", "v1"},
         {"kind", "Node"},
         {"metadata", {{"name", "n1"}}},
         {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
    config.backend = BackendChoice::file;
    config.sentinel = "/run/reboot-required";
    config.reboot_methods = {RebootMethod::none};
    config.authority = AuthorityChoice::service_account;
    config.node_name = "n1";
    config.metrics_address.clear();
  }
  ~AgentCheckTest() override {
    std::filesystem::remove_all(config.host_root);
    std::fclose(printed);
  }
  void add(const Json& object) { ASSERT_TRUE(cluster.load(object.dump())); }

  std::string lines_of_a_check() {
    run(with_task_group([&](TaskGroup& group) {
      group.spawn(cluster.run());
      return service.check();
    }));
    std::string text(1 << 16, '\0');
    std::rewind(printed);
    text.resize(std::fread(text.data(), 1, text.size(), printed));
    return text;
  }

  std::FILE* const printed = std::tmpfile();
  AgentConfig config;
  SeededRng rng{1}, world_rng{2};
  sim::Cluster cluster{context.get_executor(), clock, world_rng};
  FdSink out{::fileno(printed)}, err{-1};
  Process process{context.get_executor(), clock, rng, out, err, {}, "haulout"};
  Log log{{}, clock, [](const std::string&) {}};
  AgentService service{{process, config, log, cluster.api()}};
};

TEST_F(AgentCheckTest, PrintsALineForEachPart) {
  const std::string lines = lines_of_a_check();
  EXPECT_THAT(lines, StartsWith("ok      node         n1\n"
                                "ok      authority    serviceaccount, as "));
  EXPECT_THAT(
      lines,
      AllOf(HasSubstr("\nok      slots        lease\n"),
            HasSubstr("\nok      backend      file: no reboot is needed\nok      host         boot id "
                      "b0070000-0000-4000-8000-000000000001\noff     reboot       reboot-method is none: "
                      "another program or a person must reboot this machine when the state of its node is ready\n"),
            HasSubstr("\nok      pool         "), HasSubstr("\noff     gate         prometheus: "),
            Not(HasSubstr("FAILED"))));
  EXPECT_EQ(service.exit_code(), 0);
}

TEST_F(AgentCheckTest, WavesWithoutVersionsAreNoted) {
  config.ramp = "1,2";
  EXPECT_THAT(lines_of_a_check(),
              AllOf(HasSubstr("\nnote    ramp         ramp has no effect, because versions of back end file cannot be "
                              "compared between nodes"),
                    HasSubstr("max-unavailable 1, in waves of 1,2"), Not(HasSubstr("FAILED"))));
  EXPECT_EQ(service.exit_code(), 0);
}

TEST_F(AgentCheckTest, AHaltWithoutVersionsIsNoted) {
  config.halt_after = 2;
  EXPECT_THAT(lines_of_a_check(), HasSubstr("\nnote    halt-after   halt-after has no effect, because versions"));
}

TEST_F(AgentCheckTest, FailsIfOnePartFails) {
  std::filesystem::remove_all(config.host_root + "/proc");
  const std::string lines = lines_of_a_check();
  EXPECT_THAT(lines, HasSubstr("\nFAILED  host         "));
  EXPECT_THAT(lines, HasSubstr("\nok      pool         "));
  EXPECT_EQ(service.exit_code(), exit_not_done);
}

TEST_F(AgentCheckTest, OfAnAgentThatCannotStartIsOneLine) {
  cluster.forbid("list", "leases");
  const std::string lines = lines_of_a_check();
  EXPECT_THAT(lines, StartsWith("FAILED  start        "));
  EXPECT_EQ(lines.find('\n'), lines.size() - 1);
  EXPECT_NE(service.exit_code(), 0);
}

TEST_F(AgentCheckTest, PackageUpdatesThatTheAgentCannotInstallAreAnError) {
  config.update = UpdateChoice::after_drain;
  EXPECT_THAT(lines_of_a_check(), AllOf(StartsWith("FAILED  start        "), HasSubstr("set update to off")));
  EXPECT_NE(service.exit_code(), 0);
}

}  // namespace
}  // namespace haulout::agent
