// Plays a service manager: sets environment variables, and receives what a process sends to the socket NOTIFY_SOCKET.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace haulout::testing {

// Sets environment variables of this process. The destructor unsets them.
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

// A service manager's socket. A path with a leading '@' is in the abstract namespace; the caller must make it unique
// for each process.
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

}  // namespace haulout::testing
