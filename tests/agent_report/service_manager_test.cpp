#include "agent/report/service_manager.hpp"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;

class Environment {
 public:
  void set(const char* name, const std::string& value) {
    names_.emplace_back(name);
    ::setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& name : names_) ::unsetenv(name.c_str());
  }

 private:
  std::vector<std::string> names_;
};

// A service manager's socket; one in the abstract namespace has a name of its own for each process.
class Listener {
 public:
  explicit Listener(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    if (path[0] == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), size), 0) << path;
  }
  ~Listener() { ::close(fd_); }
  std::string next() const {
    std::array<char, 512> buffer{};
    const auto size = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    return size < 0 ? "nothing" : std::string(buffer.data(), static_cast<std::size_t>(size));
  }

 private:
  int fd_;
};

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

TEST(ServiceManagerTest, WithoutASocketNobodyIsTold) {
  ::unsetenv("NOTIFY_SOCKET");
  notify_service_manager("READY=1");
  Environment environment;
  environment.set("NOTIFY_SOCKET", "/nonexistent/socket");
  notify_service_manager("READY=1");
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
