// Fixture that runs plugins as real processes: scripts in a temporary directory. Starts processes, and reads and writes
// files. Owns all of these.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <fstream>
#include <optional>

#include "k8s/exec_plugin.hpp"
#include "retry/real_clock.hpp"
#include "tests/k8s/temp_dir.hpp"

namespace haulout::k8s {

namespace asio = boost::asio;

inline const std::string v1 = "client.authentication.k8s.io/v1";

// Redirects one of this process's file descriptors for as long as the object lives.
class Redirected {
 public:
  Redirected(int fd, int to) : fd_(fd), before_(::dup(fd)) { ::dup2(to, fd_); }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;
  ~Redirected() {
    ::dup2(before_, fd_);
    ::close(before_);
  }

 private:
  int fd_, before_;
};

class Null {
 public:
  int fd() const { return fd_; }
  ~Null() { ::close(fd_); }

 private:
  int fd_ = ::open("/dev/null", O_RDWR | O_CLOEXEC);
};

class Terminal {
 public:
  Terminal() {
    EXPECT_EQ(::grantpt(ours_), 0);
    EXPECT_EQ(::unlockpt(ours_), 0);
    fd_ = ::open(::ptsname(ours_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    EXPECT_EQ(::isatty(fd_), 1);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    ::close(fd_);
    ::close(ours_);
  }
  int fd() const { return fd_; }

 private:
  int ours_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), fd_ = -1;
};

// What the person who uses the plugin sees.
struct Seen {
  std::string text;
  PluginStage stage() {
    return {[this] { text += "<"; }, [this](std::string_view said) { text += said; }, [this] { text += ">"; }};
  }
};

class ExecPluginTest : public ::testing::Test {
 protected:
  // In every test, stdin and stderr are no terminals, however the tests are started.
  Null null;
  Redirected no_input{STDIN_FILENO, null.fd()};
  std::optional<Redirected> no_errors;
  haulout::testing::TempDir dir;
  RealClock clock;
  asio::io_context context{1};
  ExecPlugin plugin;
  Seen seen;

  ExecPluginTest() {
    if (::isatty(STDERR_FILENO) == 1) no_errors.emplace(STDERR_FILENO, null.fd());
    plugin.api_version = v1;
    plugin.install_hint = "get it\x1b[1m from us";
  }

  template <class T>
  Result<T> run(Task<T> task) {
    std::optional<Result<T>> out;
    std::exception_ptr failure;
    asio::co_spawn(context, std::move(task), [&](std::exception_ptr thrown, Result<T> result) {
      failure = thrown;
      out.emplace(std::move(result));
    });
    context.restart();
    context.run();
    if (failure) std::rethrow_exception(failure);
    return std::move(*out);
  }
  Result<ExecCredential> run_script(const std::string& body) {
    plugin.command = dir.write_script("login", body);
    return run(run_exec_plugin(clock, plugin, "CA", seen.stage()));
  }
  static std::string print(const std::string& status) {
    return "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" + v1 + "\",\"status\":" + status + "}'\n";
  }
  std::string file(const std::string& name) const {
    std::ifstream in(dir / name);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  // Returns true if this process still has children that it must reap.
  static bool has_children() { return ::waitpid(-1, nullptr, WNOHANG) >= 0; }
};

}  // namespace haulout::k8s
