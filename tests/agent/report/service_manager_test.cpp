#include "agent/report/service_manager.hpp"

#include <gmock/gmock.h>

#include "tests/support/notify_socket.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;

using haulout::testing::Environment;
using haulout::testing::Listener;

TEST(ServiceManagerTest, WordsReachASocketOfTheFileSystem) {
  const std::string path = ::testing::TempDir() + "notify-" + std::to_string(::getpid());
  ::unlink(path.c_str());
  const Listener listener(path);
  Environment environment;
  environment.set("NOTIFY_SOCKET", path);
  notify_service_manager("READY=1");
  EXPECT_EQ(listener.next(), "READY=1");
  ::unlink(path.c_str());
}

TEST(ServiceManagerTest, WordsReachAnAbstractSocket) {
  const std::string path = "@haulout-test-" + std::to_string(::getpid());
  const Listener listener(path);
  Environment environment;
  environment.set("NOTIFY_SOCKET", path);
  notify_service_manager("STATUS=draining, BlockedByBudget: pod shop/web-0");
  EXPECT_EQ(listener.next(), "STATUS=draining, BlockedByBudget: pod shop/web-0");
}

// If no service manager has started the agent, or its socket does not exist, nothing is sent and the agent continues.
TEST(ServiceManagerTest, WithoutASocketNothingIsSent) {
  const std::string path = "@haulout-test-" + std::to_string(::getpid());
  const Listener listener(path);
  ::unsetenv("NOTIFY_SOCKET");
  notify_service_manager("READY=1");
  Environment environment;
  environment.set("NOTIFY_SOCKET", "/nonexistent/socket");
  notify_service_manager("READY=1");
  environment.set("NOTIFY_SOCKET", path);
  notify_service_manager("WATCHDOG=1");
  EXPECT_EQ(listener.next(), "WATCHDOG=1") << "the first that arrives";
}

TEST(ServiceManagerTest, AWatchdogIsThatOfThisProcess) {
  ::unsetenv("WATCHDOG_USEC");
  ::unsetenv("WATCHDOG_PID");
  EXPECT_EQ(watchdog_limit(), std::nullopt);
  Environment environment;
  environment.set("WATCHDOG_USEC", "30000000");
  EXPECT_EQ(watchdog_limit(), 30s);
  environment.set("WATCHDOG_PID", std::to_string(::getpid()));
  EXPECT_EQ(watchdog_limit(), 30s);
  environment.set("WATCHDOG_PID", "1");
  EXPECT_EQ(watchdog_limit(), std::nullopt);
  environment.set("WATCHDOG_PID", std::to_string(::getpid()));
  environment.set("WATCHDOG_USEC", "soon");
  EXPECT_EQ(watchdog_limit(), std::nullopt);
}

}  // namespace
}  // namespace haulout::agent
