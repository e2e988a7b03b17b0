#include "http/resolve.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <semaphore>

#include "retry/deadline.hpp"
#include "retry/real_clock.hpp"
#include "retry/task_group.hpp"

namespace haulout::http {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

// A name server on which each look-up waits until the test lets it answer. Three names fail in different ways; all
// others have the address 10.0.0.1.
struct NameServer {
  std::counting_semaphore<> may_answer{0};
  std::atomic<int> asked{0}, busy{0}, most_busy{0};

  HostAddresses look_up(const std::string& host) {
    ++asked;
    const int now = ++busy;
    for (int most = most_busy; now > most && !most_busy.compare_exchange_weak(most, now);) {
    }
    may_answer.acquire();
    --busy;
    if (host == "nowhere") return {EAI_NONAME};
    if (host == "empty") return {EAI_NODATA};
    if (host == "broken") return {EAI_FAIL};
    return {0, {asio::ip::make_address("10.0.0.1")}};
  }
};

class LookUpsTest : public ::testing::Test {
 protected:
  asio::io_context context{1};
  RealClock clock;
  std::shared_ptr<NameServer> server = std::make_shared<NameServer>();
  LookUps look_ups{2, [server = server](const std::string& host) { return server->look_up(host); }};
  int answers = 0;
  std::vector<std::string> failures;

  // Lets all look-ups answer, so that their threads end even if the test has failed.
  ~LookUpsTest() override { server->may_answer.release(1000); }

  asio::awaitable<void> ask(std::string host, Duration patience = 30s) {
    const auto found = co_await with_deadline(clock, clock.now() + patience, look_ups.addresses_of(std::move(host)));
    if (found) {
      EXPECT_EQ(found->at(0).to_string(), "10.0.0.1");
      ++answers;
    } else {
      failures.push_back(found.error().message());
    }
  }
  void start(asio::awaitable<void> work) {
    asio::co_spawn(context, std::move(work), [](std::exception_ptr thrown) { EXPECT_FALSE(thrown); });
  }
  // Runs until the condition holds, but no longer than ten seconds.
  template <class Condition>
  bool runs_until(Condition condition) {
    context.restart();
    const auto until = clock.now() + 10s;
    while (!condition() && clock.now() < until) context.run_one_for(10ms);
    return condition();
  }
};

TEST_F(LookUpsTest, NoMoreThanTheBoundAtATimeAndAllAreAnswered) {
  for (const char* host : {"a", "b", "c", "d", "e"}) start(ask(host));
  ASSERT_TRUE(runs_until([&] { return server->busy == 2; }));
  runs_until([end = clock.now() + 100ms, this] { return clock.now() > end; });
  EXPECT_EQ(server->asked, 2);
  server->may_answer.release(5);
  EXPECT_TRUE(runs_until([&] { return answers == 5; }));
  EXPECT_EQ(server->asked, 5);
  EXPECT_LE(server->most_busy, 2);
}

TEST_F(LookUpsTest, ANameThatIsBeingLookedUpIsNotLookedUpAgain) {
  for (int i = 0; i < 4; ++i) start(ask("a"));
  ASSERT_TRUE(runs_until([&] { return server->busy == 1; }));
  server->may_answer.release(1);
  EXPECT_TRUE(runs_until([&] { return answers == 4; }));
  EXPECT_EQ(server->asked, 1);
  // When a look-up has ended, the next caller with the same name starts a new one.
  server->may_answer.release(1);
  start(ask("a"));
  EXPECT_TRUE(runs_until([&] { return answers == 5; }));
  EXPECT_EQ(server->asked, 2);
}

// If each attempt of a client started a look-up, a name server that does not answer would cost a thread for each. So
// all attempts share the look-up that runs.
TEST_F(LookUpsTest, CancelledCallersLeaveOneLookUpThatALaterCallerShares) {
  for (int i = 0; i < 3; ++i) {
    start(ask("a", 20ms));
    ASSERT_TRUE(runs_until([&] { return failures.size() == static_cast<std::size_t>(i + 1); }));
  }
  EXPECT_EQ(server->asked, 1);
  start(ask("a"));
  runs_until([end = clock.now() + 20ms, this] { return clock.now() > end; });
  server->may_answer.release(1);
  EXPECT_TRUE(runs_until([&] { return answers == 1; }));
  EXPECT_EQ(server->asked, 1);
}

TEST_F(LookUpsTest, ACallerWaitsForAPlaceOnlyUntilItsDeadline) {
  start(ask("a"));
  start(ask("b"));
  ASSERT_TRUE(runs_until([&] { return server->busy == 2; }));
  start(ask("c", 20ms));
  ASSERT_TRUE(runs_until([&] { return failures.size() == 1; }));
  // The caller whose deadline has passed does not wait any more, so another caller gets the next look-up.
  server->may_answer.release(3);
  start(ask("d"));
  EXPECT_TRUE(runs_until([&] { return answers == 3; }));
  EXPECT_EQ(server->asked, 3);
}

TEST_F(LookUpsTest, AnUnknownNameIsAFailure) {
  server->may_answer.release(1);
  start(ask("nowhere"));
  ASSERT_TRUE(runs_until([&] { return !failures.empty(); }));
  EXPECT_EQ(failures.front(), "the name servers of this machine do not know host nowhere; check the name");
}

// Only EAI_NONAME says that the name is unknown.
TEST_F(LookUpsTest, OtherFailuresDoNotSayThatTheNameIsUnknown) {
  server->may_answer.release(2);
  start(ask("empty"));
  ASSERT_TRUE(runs_until([&] { return failures.size() == 1; }));
  EXPECT_EQ(failures[0], "host empty has no IP address; check its DNS record");
  start(ask("broken"));
  ASSERT_TRUE(runs_until([&] { return failures.size() == 2; }));
  EXPECT_THAT(failures[1], ::testing::StartsWith("host broken could not be looked up ("));
}

}  // namespace
}  // namespace haulout::http
