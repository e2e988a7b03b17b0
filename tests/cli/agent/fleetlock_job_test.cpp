// Tests `haulout fleetlock-serve` over real sockets, on the simulated cluster.
#include "cli/agent/fleetlock_job.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "agent/slots/fleetlock_slots.hpp"
#include "cli/options/command_line.hpp"
#include "retry/task_group.hpp"
#include "tests/support/real_time.hpp"
#include "tests/support/test_cluster.hpp"
#include "tests/support/text_sink.hpp"

namespace haulout::cli {
namespace {
namespace asio = boost::asio;
using ::testing::HasSubstr;

Task<std::string> default_group(TimePoint) {
  co_return "default";
}

class FleetLockJobTest : public haulout::testing::RealTimeTest {
 protected:
  FleetLockJobTest() {
    EXPECT_TRUE(cluster.load(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"haulout"}})"));
  }
  ~FleetLockJobTest() override { ::close(nowhere_fd); }

  static Settings settings(std::vector<std::string> args) {
    args.insert(args.begin(), "fleetlock-serve");
    return std::get<Settings>(parse_command_line("haulout", args));
  }
  std::unique_ptr<FleetLockJob> job(std::vector<std::string> args) {
    return std::make_unique<FleetLockJob>(process, Tools{client, clock, rng, console, nowhere, denied, "haulout"},
                                          settings(std::move(args)));
  }
  std::string url(const FleetLockJob& job) const { return "http://127.0.0.1:" + std::to_string(job.port()); }
  asio::awaitable<int> status_of(const FleetLockJob& job, http::Request request) {
    http::Endpoint endpoint{http::Endpoint::Kind::tcp, "127.0.0.1", job.port()};
    auto http_client = http::Client::create(context.get_executor(), clock, endpoint, {});
    const auto answer = co_await (*http_client)->round_trip(std::move(request), soon());
    co_return answer ? answer->status : 0;
  }
  // Runs `body` while the job and the simulated cluster run.
  void serve(FleetLockJob& job, const std::function<asio::awaitable<void>()>& body) {
    run(with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
      group.spawn(cluster.run());
      group.spawn(job.run());
      while (job.port() == 0) co_await asio::post(context, asio::use_awaitable);
      co_await body();
    }));
  }

  SeededRng rng{1};
  SeededRng world_rng{2};
  sim::TestCluster cluster{context.get_executor(), clock, world_rng};
  k8s::Client client{cluster.api(), clock, {}};
  const int nowhere_fd = ::memfd_create("output", MFD_CLOEXEC);
  agent::FdSink out{nowhere_fd}, err{nowhere_fd};
  agent::Process process{context.get_executor(), clock, rng, out, err, {}, "haulout"};
  haulout::testing::TextSink nowhere;
  Console console{nowhere, nowhere};
  agent::DeniedRequest denied;
};

TEST_F(FleetLockJobTest, ServesTheClientOfAnAgent) {
  const auto job = this->job({"--listen", "127.0.0.1:0"});
  serve(*job, [&]() -> asio::awaitable<void> {
    auto one = agent::fleetlock_server(context.get_executor(), clock, url(*job));
    auto two = agent::fleetlock_server(context.get_executor(), clock, url(*job));
    agent::FleetLockSlots first(*one->client, clock, rng, {.group = &default_group, .id = "m1"});
    agent::FleetLockSlots second(*two->client, clock, rng, {.group = &default_group, .id = "m2"});
    const auto taken = co_await first.take(soon());
    EXPECT_TRUE(taken && taken->ours);
    const auto refused = co_await second.take(soon());
    EXPECT_TRUE(refused && !refused->ours);
    if (refused) EXPECT_THAT(refused->why, HasSubstr("outside machine m1"));
    const auto released = co_await first.release(soon());
    EXPECT_TRUE(released);
    EXPECT_TRUE(cluster.all("leases").empty());
  });
}

TEST_F(FleetLockJobTest, ProbesAndHostileRequestsGetTheirAnswers) {
  const auto job = this->job({"--listen", "127.0.0.1:0", "--pool", "web", "--max-unavailable=2"});
  serve(*job, [&]() -> asio::awaitable<void> {
    http::Request probe;
    probe.target = "/healthz";
    EXPECT_EQ(co_await status_of(*job, probe), 200);
    http::Request request;
    request.method = "POST";
    request.target = "/v1/pre-reboot";
    request.headers.set("fleet-lock-protocol", "true");
    request.body = agent::encode_fleetlock_request("m1", "default");
    EXPECT_EQ(co_await status_of(*job, request), 403) << "only the pool web is served";
    request.body = std::string(20'000, ' ') + agent::encode_fleetlock_request("m1", "web");
    EXPECT_EQ(co_await status_of(*job, request), 413);
    EXPECT_TRUE(cluster.all("leases").empty());
    for (const auto& [id, status] : {std::pair{"m1", 200}, {"m2", 200}, {"m3", 423}}) {
      request.body = agent::encode_fleetlock_request(id, "web");
      EXPECT_EQ(co_await status_of(*job, request), status) << id;
    }
  });
}

TEST_F(FleetLockJobTest, AnAddressThatIsTakenEndsIt) {
  const auto first = job({"--listen", "127.0.0.1:0"});
  serve(*first, [&]() -> asio::awaitable<void> {
    const auto second = job({"--listen", "127.0.0.1:" + std::to_string(first->port())});
    co_await second->run();
    EXPECT_EQ(second->finish(std::nullopt), agent::exit_connection);
    EXPECT_THAT(nowhere.text, HasSubstr("cannot listen on 127.0.0.1"));
  });
  EXPECT_EQ(first->finish(SIGTERM), 143);
}

}  // namespace
}  // namespace haulout::cli
