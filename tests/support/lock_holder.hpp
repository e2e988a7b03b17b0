// A process that holds the POSIX lock of a file, as apt and dpkg hold theirs. A process cannot see its own locks, so a
// test needs another one.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace haulout::testing {

class LockHolder {
 public:
  // Starts the process and returns when it holds the lock. It holds the lock until this object is destroyed.
  explicit LockHolder(const std::string& path) {
    int ready[2];
    if (::pipe(ready) != 0) {
      ADD_FAILURE() << "no pipe";
      return;
    }
    pid_ = ::fork();
    if (pid_ == 0) {
      const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
      struct flock held{};
      held.l_type = F_WRLCK;
      const bool ok = ::fcntl(file, F_SETLK, &held) == 0 && ::write(ready[1], "x", 1) == 1;
      if (ok) ::pause();
      ::_exit(1);
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "the lock of " << path << " is not held";
    ::close(ready[0]);
  }
  LockHolder(const LockHolder&) = delete;
  LockHolder& operator=(const LockHolder&) = delete;
  ~LockHolder() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

}  // namespace haulout::testing
