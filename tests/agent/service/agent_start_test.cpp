// Tests the time limit of an attempt to start, and which messages the service manager receives during a start
// (packaging/systemd/haulout.service has Type=notify).
#include <gmock/gmock.h>

#include <filesystem>

#include "agent/service/agent_service.hpp"
#include "retry/task_group.hpp"
#include "tests/support/notify_socket.hpp"
#include "tests/support/test_cluster.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using sim::Json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct AgentStart : haulout::testing::VirtualTimeTest {
  AgentStart() {
    config.host_root = ::testing::TempDir() + "start-" + std::to_string(::getpid());
    std::filesystem::create_directories(config.host_root);
    environment.set("NOTIFY_SOCKET", path);
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
  ~AgentStart() override { std::filesystem::remove_all(config.host_root); }
  void add(const Json& object) { ASSERT_TRUE(cluster.load(object.dump())); }

  // Runs the service for `limit`. Returns the messages to the service manager in order.
  std::vector<std::string> words_of_a_start(Duration limit) {
    run(with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
      group.spawn(cluster.run());
      group.spawn(service.serve());
      co_await clock.sleep_until(clock.now() + limit);
    }));
    std::vector<std::string> words;
    for (std::string next = listener.next(); next != "nothing"; next = listener.next()) words.push_back(next);
    return words;
  }

  const std::string path = "@haulout-start-" + std::to_string(::getpid());
  const haulout::testing::Listener listener{path};
  haulout::testing::Environment environment;
  AgentConfig config;
  SeededRng rng{1}, world_rng{2};
  sim::TestCluster cluster{context.get_executor(), clock, world_rng};
  FdSink out{-1}, err{-1};
  Process process{context.get_executor(), clock, rng, out, err, {}, "haulout"};
  Log log{{}, clock, [](const std::string&) {}};
  AgentService service{{process, config, log, cluster.api()}};
};

TEST_F(AgentStart, IsToldOnceTheAgentServesItsNode) {
  const auto words = words_of_a_start(10s);
  ASSERT_GE(words.size(), 2u);
  EXPECT_EQ(words[0], "STATUS=asking the API server for the identity of this credential");
  EXPECT_EQ(words[1], "READY=1");
  EXPECT_EQ(service.exit_code(), 0);
}

// A right is missing, so the start fails, and the agent sends no READY=1. If it did, systemd would see a successful
// start and then a failed service.
TEST_F(AgentStart, ThatFailsForWantOfARightIsNone) {
  cluster.forbid("list", "leases");
  EXPECT_THAT(words_of_a_start(10s), ElementsAre("STATUS=asking the API server for the identity of this credential"));
  EXPECT_NE(service.exit_code(), 0);
}

// The API server may run on this node and start only at the end of the boot, and the boot waits for the agent. So the
// start of the agent must not wait for the API server.
TEST_F(AgentStart, DoesNotWaitForAnApiServerThatIsAway) {
  cluster.refuse_connections(1h);
  const auto words = words_of_a_start(10s);
  ASSERT_GE(words.size(), 3u);
  EXPECT_EQ(words[1], "READY=1");
  EXPECT_THAT(words[2], StartsWith("STATUS=the API server gives no usable answer yet: "));
  EXPECT_EQ(service.exit_code(), 0);
}

TEST(StartPatienceTest, AnAttemptThatRanOutOfTimeGetsTwiceAsLong) {
  StartPatience patience;
  std::vector<Duration> limits;
  for (int attempt = 0; attempt < 6; ++attempt) {
    limits.push_back(patience.limit());
    patience.failed(Error(Errc::timeout, "slow"));
  }
  EXPECT_EQ(limits, (std::vector<Duration>{30s, 1min, 2min, 4min, 8min, 8min}));
}

TEST(StartPatienceTest, AServerThatIsAwayIsAskedAsBefore) {
  StartPatience patience;
  for (const Errc code : {Errc::unreachable, Errc::unavailable, Errc::reset}) patience.failed(Error(code, "away"));
  EXPECT_EQ(patience.limit(), StartPatience::first);
}

}  // namespace
}  // namespace haulout::agent
