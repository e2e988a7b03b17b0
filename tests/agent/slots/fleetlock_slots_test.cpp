#include "agent/slots/fleetlock_slots.hpp"

#include <gmock/gmock.h>

#include "agent/slots/none_slots.hpp"
#include "retry/task_group.hpp"
#include "tests/agent/slots/fake_fleetlock.hpp"
#include "tests/support/scripted_transport.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::agent {
namespace {
using namespace std::chrono_literals;
using haulout::testing::json_response;
using ::testing::AllOf;
using ::testing::HasSubstr;

class FleetLockTest : public haulout::testing::VirtualTimeTest {
 protected:
  FleetLockTest() { server.prefix = "/base"; }
  SeededRng rng{1};
  haulout::testing::FakeFleetLock server{clock};
  // The node's pool, or an error if it is unknown.
  Result<std::string> pool = std::string("workers");
  FleetLockOptions options() {
    return {.prefix = "/base", .group = [this](TimePoint) { return pool_now(); }, .id = "me"};
  }
  Task<std::string> pool_now() { co_return pool; }
  FleetLockSlots slots{server, clock, rng, options()};
  TimePoint soon() const { return clock.now() + 30s; }
  boost::asio::awaitable<void> carry_out_late(Duration delay) {
    co_await clock.sleep_until(clock.now() + delay);
    server.carry_out_late();
  }
};

TEST_F(FleetLockTest, SpeaksTheProtocol) {
  const auto turn = run(slots.take(soon()));
  ASSERT_TRUE(turn);
  EXPECT_EQ(*turn, (Turn{.ours = true, .slot = "fleetlock/workers@me"}));
  EXPECT_TRUE(server.holders["workers"].contains("me"));
  const http::Request& request = server.requests.front();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/base/v1/pre-reboot");
  EXPECT_EQ(request.headers.find("fleet-lock-protocol"), "true");
  EXPECT_EQ(request.headers.find("Content-Type"), "application/json");
  EXPECT_EQ(nlohmann::json::parse(request.body),
            (nlohmann::json{{"client_params", {{"id", "me"}, {"group", "workers"}}}}));
  ASSERT_TRUE(run(slots.release(soon())));
  EXPECT_EQ(server.requests.back().target, "/base/v1/steady-state");
  EXPECT_TRUE(server.holders["workers"].empty());
}

TEST_F(FleetLockTest, MayBeAskedAgainAndAgain) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(run(slots.take(soon()))->ours);
    EXPECT_TRUE(run(slots.confirm(soon()))->ours);
  }
  EXPECT_EQ(server.holders["workers"].size(), 1u);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(run(slots.release(soon())));
}

TEST_F(FleetLockTest, ShowsWhyThereIsNoTurn) {
  server.holders["workers"] = {"other"};
  // Some servers return 500 if all slots are taken. So a refusal means "no slot", whatever its status is.
  for (const int full : {400, 409, 423, 500}) {
    server.full = full;
    const auto turn = run(slots.take(soon()));
    ASSERT_TRUE(turn);
    EXPECT_FALSE(turn->ours);
    EXPECT_THAT(turn->why, AllOf(HasSubstr("workers"), HasSubstr("all slots are locked already"),
                                 HasSubstr("failed_lock_semaphore_full")));
  }
}

// Only an answer that denies the slot shows that the node has lost it. A server that fails has perhaps not given the
// slot to another node.
TEST_F(FleetLockTest, ATurnIsLostByADenialAndNotByAFault) {
  const char* body = R"({"kind":"internal_error","value":"error getting reboot lease"})";
  for (const int status : {500, 502, 503, 408, 429}) {
    server.canned = json_response(status, body);
    const auto turn = run(slots.confirm(soon()));
    ASSERT_TRUE(turn) << status;
    EXPECT_TRUE(!turn->ours && turn->uncertain) << status;
    EXPECT_THAT(turn->why, HasSubstr("error getting reboot lease"));
  }
  for (const int status : {403, 409, 423}) {
    server.canned = json_response(status, body);
    const auto turn = run(slots.confirm(soon()));
    ASSERT_TRUE(turn) << status;
    EXPECT_FALSE(turn->ours || turn->uncertain);
  }
}

// P4, P6: the node has the slot only after a 200 from a FleetLock server.
TEST_F(FleetLockTest, AnswersThatNoSuchServerGivesAreNoTurn) {
  struct Row {
    int status;
    std::string type, body;
  };
  for (const auto& [status, type, body] : std::vector<Row>{{200, "text/html", "<html>Please log in</html>"},
                                                           {200, "", "  <!DOCTYPE html>"},
                                                           {204, "", ""},
                                                           {201, "application/json", "{}"},
                                                           {302, "", ""},
                                                           {400, "application/json", R"({"kind":"","value":""})"},
                                                           {403, "application/json", R"({"kind":"x"})"},
                                                           {409, "application/json", R"(["kind","value"])"},
                                                           {404, "text/plain", "404 page not found\n"},
                                                           {500, "text/plain", "oops"},
                                                           {0, "", ""}}) {
    server.canned = http::Response{status, {}, body};
    if (!type.empty()) server.canned->headers.set("Content-Type", type);
    const auto taken = run(slots.take(soon()));
    EXPECT_FALSE(taken) << status << body;
    if (!taken) EXPECT_THAT(taken.error().message(), HasSubstr("fleetlock-url"));
    EXPECT_FALSE(run(slots.confirm(soon()))) << status << body;
    EXPECT_FALSE(run(slots.release(soon()))) << status << body;
  }
}

TEST_F(FleetLockTest, PassesOnWhenToComeBack) {
  server.canned = http::Response{503, {}, "busy"};
  server.canned->headers.set("Retry-After", "7");
  const auto turn = run(slots.take(soon()));
  ASSERT_FALSE(turn);
  EXPECT_EQ(turn.error().retry_after, 7s);
}

TEST_F(FleetLockTest, WhoHoldsNothingHasReleasedIt) {
  server.holders["workers"] = {"other"};
  EXPECT_TRUE(run(slots.release(soon())));
  server.refuses_strangers = true;
  EXPECT_TRUE(run(slots.release(soon())));
  EXPECT_TRUE(server.holders["workers"].contains("other"));
}

// The node has released its slot in group `workers`. A second node with the same ID then takes that slot; the server
// cannot distinguish the two. So the first node must not release it again when its pool changes.
TEST_F(FleetLockTest, WhatWasGivenBackIsNotGivenBackAgain) {
  EXPECT_TRUE(run(slots.take(soon()))->ours);
  EXPECT_TRUE(run(slots.release(soon())));
  server.holders["workers"] = {"me"};
  pool = std::string("db");
  EXPECT_EQ(run(slots.take(soon()))->slot, "fleetlock/db@me");
  EXPECT_TRUE(server.holders["workers"].contains("me"));
}

TEST_F(FleetLockTest, AReleaseThatFailsIsNone) {
  server.canned = json_response(500, R"({"kind":"internal_error","value":"error uncordoning node"})");
  const auto released = run(slots.release(soon()));
  ASSERT_FALSE(released);
  EXPECT_THAT(released.error().message(), HasSubstr("error uncordoning node"));
}

// The server may carry out an abandoned request after the release. Then the fleet would wait for a node that needs no
// slot. So the release waits for a moment.
TEST_F(FleetLockTest, ReleasesWhatAnAbandonedDemandTakesAfterAll) {
  server.delay = 60s;
  EXPECT_FALSE(run(slots.confirm(soon())));
  server.delay = {};
  run(with_task_group([this](TaskGroup& group) -> boost::asio::awaitable<void> {
    group.spawn(carry_out_late(2s));
    const auto released = co_await slots.release(soon());
    EXPECT_TRUE(released);
  }));
  EXPECT_TRUE(server.carried_out_late);
  EXPECT_TRUE(server.holders["workers"].empty());
  // No request was abandoned since the last release, so the release does not wait.
  const TimePoint before = clock.now();
  EXPECT_TRUE(run(slots.take(soon())));
  EXPECT_TRUE(run(slots.release(soon())));
  EXPECT_EQ(clock.now(), before);
}

// The server identifies a node's slot by the group. So a slot is confirmed and released in the group in which it was
// taken, also if the node's pool has changed.
TEST_F(FleetLockTest, ATurnIsGivenBackWhereItWasTaken) {
  EXPECT_EQ(run(slots.take(soon()))->slot, "fleetlock/workers@me");
  pool = std::string("db");
  EXPECT_EQ(run(slots.confirm(soon()))->slot, "fleetlock/workers@me");
  EXPECT_TRUE(server.holders["db"].empty());
  pool = Error(Errc::invalid, "no label");
  EXPECT_TRUE(run(slots.confirm(soon()))->ours);
  EXPECT_TRUE(run(slots.release(soon())));
  EXPECT_TRUE(server.holders["workers"].empty());
}

// P7: a restarted agent releases the slot that its predecessor took, although the node has moved to another pool.
TEST_F(FleetLockTest, ATurnOfAnEarlierLifeIsGivenBackWhereItWasTaken) {
  const std::string taken = run(slots.take(soon()))->slot;
  pool = std::string("db");
  FleetLockSlots successor(server, clock, rng, options());
  successor.remember(taken);
  EXPECT_EQ(run(successor.confirm(soon()))->slot, taken);
  EXPECT_TRUE(run(successor.release(soon())));
  EXPECT_TRUE(server.holders["workers"].empty());
  EXPECT_TRUE(server.holders["db"].empty());
  // From now on the node has the new slot, even if an older record names another one.
  EXPECT_EQ(run(successor.take(soon()))->slot, "fleetlock/db@me");
  successor.remember(taken);
  EXPECT_EQ(run(successor.confirm(soon()))->slot, "fleetlock/db@me");
}

// P7: a machine gets another id when its agent can read /etc/machine-id for the first time, or when that file is made
// anew. The server knows the slot by the old one, and frees it only for that one.
TEST_F(FleetLockTest, ATurnIsGivenBackWithTheIdWithWhichItWasTaken) {
  const std::string taken = run(slots.take(soon()))->slot;
  FleetLockOptions renamed = options();
  renamed.id = "new";
  FleetLockSlots successor(server, clock, rng, renamed);
  successor.remember(taken);
  EXPECT_EQ(run(successor.take(soon()))->slot, taken);
  EXPECT_EQ(run(successor.confirm(soon()))->slot, taken);
  EXPECT_EQ(server.holders["workers"], std::set<std::string>{"me"});
  EXPECT_TRUE(run(successor.release(soon())));
  EXPECT_TRUE(server.holders["workers"].empty());
  EXPECT_EQ(run(successor.take(soon()))->slot, "fleetlock/workers@new");
  // A record of an older agent has no id.
  server.holders["workers"] = {"new"};
  FleetLockSlots of_older(server, clock, rng, renamed);
  of_older.remember("fleetlock/workers");
  EXPECT_TRUE(run(of_older.release(soon())));
  EXPECT_TRUE(server.holders["workers"].empty());
}

TEST_F(FleetLockTest, AnotherPoolsTurnIsGivenBackBeforeOneIsTaken) {
  EXPECT_TRUE(run(slots.take(soon()))->ours);
  pool = std::string("db");
  EXPECT_EQ(run(slots.take(soon()))->slot, "fleetlock/db@me");
  EXPECT_TRUE(server.holders["workers"].empty());
  EXPECT_TRUE(server.holders["db"].contains("me"));
}

TEST_F(FleetLockTest, WithoutAPoolNobodyKnows) {
  pool = Error(Errc::invalid, "no label");
  EXPECT_EQ(run(slots.take(soon())).error().message(), "no label");
  EXPECT_FALSE(run(slots.confirm(soon())));
  EXPECT_FALSE(run(slots.release(soon())));
  EXPECT_TRUE(server.requests.empty());
  // The name of a Lease slot does not identify a FleetLock group.
  slots.remember("haulout-default-0");
  EXPECT_FALSE(run(slots.release(soon())));
  slots.remember("fleetlock/workers@me");
  EXPECT_TRUE(run(slots.release(soon())));
}

TEST_F(FleetLockTest, ALostAnswerIsAnError) {
  server.broken = Error(Errc::reset, "connection reset");
  EXPECT_FALSE(run(slots.take(soon())));
  EXPECT_FALSE(run(slots.confirm(soon())));
  EXPECT_FALSE(run(slots.release(soon())));
}

// The server may carry out a request late, and undo the opposite request in that way. So the client waits before the
// opposite request, unless nothing was sent. It also waits after a failed TLS handshake, because the request may have
// been lost on an earlier connection.
TEST_F(FleetLockTest, WhatMayHaveBeenSentIsGivenTimeBeforeItsOpposite) {
  struct Row {
    Errc code;
    Duration wait;
  };
  for (const Row& row : {Row{Errc::dns, 0s}, Row{Errc::unreachable, 0s}, Row{Errc::tls, 5s}, Row{Errc::reset, 5s},
                         Row{Errc::timeout, 5s}}) {
    server.broken = Error(row.code, "broken");
    EXPECT_FALSE(run(slots.take(soon())));
    server.broken.reset();
    const TimePoint before = clock.now();
    EXPECT_TRUE(run(slots.release(soon())));
    EXPECT_EQ(clock.now() - before, row.wait) << to_string(row.code);
  }
}

TEST_F(FleetLockTest, LooksAgainAboutTwiceAMinute) {
  for (int i = 0; i < 20; ++i) {
    const TimePoint before = clock.now();
    run(slots.changed());
    EXPECT_GE(clock.now() - before, 24s);
    EXPECT_LE(clock.now() - before, 36s);
  }
}

TEST(FleetLockGroup, IsThePool) {
  EXPECT_EQ(*fleetlock_group({.pool = "blue"}, "n1", {}), "blue");
  EXPECT_EQ(*fleetlock_group({.pool_label = "role"}, "n1", {{"role", "Web.1"}}), "Web.1");
  EXPECT_THAT(fleetlock_group({.pool_label = "role"}, "n1", {{"role", "a_b"}}).error().message(), HasSubstr("a_b"));
  EXPECT_EQ(*fleetlock_group({.pool = "azAZ09.-"}, "n1", {}), "azAZ09.-");
  // The ASCII neighbours of the permitted characters.
  for (const char* pool : {"`", "{", "@", "[", "/", ":", ","}) EXPECT_FALSE(fleetlock_group({.pool = pool}, "n1", {}));
  EXPECT_FALSE(fleetlock_group({.pool_label = "role"}, "n1", {}));
}

class NoneSlotsTest : public haulout::testing::VirtualTimeTest {};

TEST_F(NoneSlotsTest, TheNodeAlwaysHasItsSlot) {
  NoneSlots slots(clock);
  EXPECT_TRUE(run(slots.take(clock.now()))->ours);
  EXPECT_TRUE(run(slots.release(clock.now())));
  EXPECT_TRUE(run(slots.confirm(clock.now()))->ours);
}

}  // namespace
}  // namespace haulout::agent
