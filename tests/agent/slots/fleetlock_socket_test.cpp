// Tests the FleetLock client over its real transport: HTTP on TCP, with a path in the URL.
#include <gmock/gmock.h>

#include "agent/slots/fleetlock_slots.hpp"
#include "http/server.hpp"
#include "retry/task_group.hpp"
#include "tests/agent/slots/fake_fleetlock.hpp"
#include "tests/support/real_time.hpp"

namespace haulout::agent {
namespace {
namespace asio = boost::asio;

Task<std::string> a_group(TimePoint) {
  co_return "default";
}

class FleetLockSocketTest : public haulout::testing::RealTimeTest {
 protected:
  SeededRng rng{1};
  haulout::testing::FakeFleetLock fake{clock};

  asio::awaitable<void> answer(http::Exchange& exchange) {
    const auto replied = co_await exchange.reply(fake.answer(exchange.request()));
    static_cast<void>(replied);  // the client reports a failure
  }
};

TEST_F(FleetLockSocketTest, TakesAndGivesBack) {
  fake.prefix = "/fleet";
  auto listening = http::Server::listen(context.get_executor(), clock, {},
                                        [this](http::Exchange& exchange) { return answer(exchange); });
  ASSERT_TRUE(listening);
  auto server = fleetlock_server(context.get_executor(), clock,
                                 "http://127.0.0.1:" + std::to_string((*listening)->port()) + "/fleet/");
  ASSERT_TRUE(server);
  FleetLockSlots slots(*server->client, clock, rng, {.prefix = server->prefix, .group = &a_group, .id = "me"});
  run(with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
    group.spawn((*listening)->run());
    const auto turn = co_await slots.take(soon());
    EXPECT_TRUE(turn && turn->ours);
    EXPECT_TRUE(fake.holders["default"].contains("me"));
    const auto released = co_await slots.release(soon());
    EXPECT_TRUE(released);
    EXPECT_TRUE(fake.holders["default"].empty());
  }));
}

TEST_F(FleetLockSocketTest, AnAddressThatIsNoneIsRefused) {
  EXPECT_FALSE(fleetlock_server(context.get_executor(), clock, "fleet.example"));
}

}  // namespace
}  // namespace haulout::agent
