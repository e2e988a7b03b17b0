#include "k8s/child_process.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "base/descriptor.hpp"
#include "retry/deadline.hpp"
#include "retry/task_group.hpp"

namespace haulout::k8s {
namespace asio = boost::asio;

namespace {

using Stream = asio::posix::stream_descriptor;

std::string words_for(int cause) {
  return std::generic_category().message(cause);
}

struct Pipe {
  Descriptor read, write;
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
    return ::fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
  }
};

// glibc 2.36 declares its pidfd_open without C linkage, so the system call is used directly.
int open_pidfd(pid_t pid) {
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
}

// Owns a started process. The destructor kills and reaps it if it still runs.
class Child {
 public:
  Child(pid_t pid, bool own_group, bool asked_first)
      : pid_(pid), own_group_(own_group), asked_first_(asked_first), pidfd_(open_pidfd(pid)) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (reaped_) return;
    pollfd ended{pidfd_.get(), POLLIN, 0};
    if (asked_first_) {
      send(SIGTERM);
      ::poll(&ended, 1, 500);
    }
    send(SIGKILL);
    // A killed process ends within microseconds unless it hangs in the kernel. Then init reaps it after this process
    // has ended.
    ::poll(&ended, 1, 1000);
    int status = 0;
    ::waitpid(pid_, &status, WNOHANG);
  }

  int pidfd() const { return pidfd_.get(); }
  void send(int signal) const {
    // Sends the signal to the process group as well, so that the children of a shell end, too.
    if (own_group_) ::kill(-pid_, signal);
    ::kill(pid_, signal);
  }
  // Call it only after the process has ended; otherwise it blocks.
  int reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    reaped_ = true;
    return status;
  }

 private:
  pid_t pid_;
  bool own_group_;
  bool asked_first_;  // the destructor sends SIGTERM before SIGKILL
  Descriptor pidfd_;
  bool reaped_ = false;
};

std::vector<std::string> environment_of(const ChildCommand& command) {
  const auto& additions = command.env;
  std::vector<std::string> out;
  for (char** entry = command.clean_environment ? nullptr : ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool replaced =
        std::any_of(additions.begin(), additions.end(), [&](const auto& addition) { return addition.first == name; });
    if (!replaced) out.emplace_back(text);
  }
  for (const auto& [name, value] : additions) out.push_back(fmt::format("{}={}", name, value));
  return out;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (std::string& string : strings) out.push_back(string.data());
  out.push_back(nullptr);
  return out;
}

// Returns 0 on success, otherwise the errno of the step that failed, execve included.
int spawn(const ChildCommand& command, int out, int err, pid_t& pid) {
  std::vector<std::string> args = command.args;
  args.insert(args.begin(), command.program);
  std::vector<std::string> env = environment_of(command);
  const std::vector<char*> argv = pointers_to(args);
  const std::vector<char*> envp = pointers_to(env);

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  if (!command.inherits_stdin) ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  // Closes all other descriptors, because Asio's sockets are not close-on-exec.
  constexpr int kept = STDERR_FILENO + 1;
  if (command.kept >= 0) ::posix_spawn_file_actions_adddup2(&actions, command.kept, kept);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, command.kept >= 0 ? kept + 1 : kept);
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  const int group = command.own_group ? POSIX_SPAWN_SETPGROUP : 0;
  ::posix_spawnattr_setflags(&attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group));
  const int failure = ::posix_spawnp(&pid, command.program.c_str(), &actions, &attributes, argv.data(), envp.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return failure;
}

enum class Drained { all, more, ended };

// What pump() reads before it gives the others a turn.
constexpr std::size_t turn = std::size_t{64} * 1024;

// Reads the bytes that are available without waiting, but not much more than `most`: a program may write faster than it
// is read, for ever. Returns `ended` at the end of the stream, on an error, or if `take` returns false.
Drained drain(int fd, std::size_t most, const std::function<bool(std::string_view)>& take) {
  char chunk[16 * 1024];
  for (std::size_t taken = 0; taken < most;) {
    const ssize_t count = ::read(fd, chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN ? Drained::all : Drained::ended;
    if (count == 0) return Drained::ended;
    taken += static_cast<std::size_t>(count);
    if (!take(std::string_view(chunk, static_cast<std::size_t>(count)))) return Drained::ended;
  }
  return Drained::more;
}

// Reads what the pipe holds now. The child has ended, but a grandchild may write for ever.
void drain_rest(int fd, const std::function<bool(std::string_view)>& take) {
  const int size = ::fcntl(fd, F_GETPIPE_SZ);
  drain(fd, size > 0 ? static_cast<std::size_t>(size) : turn, take);
}

asio::awaitable<void> pump(Stream& stream, const std::function<bool(std::string_view)>& take) {
  for (;;) {
    const Drained drained = drain(stream.native_handle(), turn, take);
    if (drained == Drained::ended) co_return;
    if (drained == Drained::all)
      co_await stream.async_wait(Stream::wait_read, asio::use_awaitable);
    else
      co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
  }
}

struct Running {
  Stream ended;  // the pidfd; it becomes readable when the process ends
  Stream out, err;
  // The last member, so that it ends before the pipes are closed. Otherwise a child that prints something when it gets
  // SIGTERM would be killed by SIGPIPE, before it has ended in order.
  Child child;
};

// With `late`, the limit of the child has passed, and what is left of its process group is killed when it has ended.
Task<> wait_for(Running& running, const ChildCommand& command, ChildOutcome& outcome, bool late) {
  const std::function<bool(std::string_view)> take_out = [&](std::string_view chunk) {
    outcome.too_much_output = outcome.too_much_output || outcome.output.size() + chunk.size() > command.stdout_limit;
    if (outcome.too_much_output)
      running.child.send(SIGKILL);
    else
      outcome.output += chunk;
    return !outcome.too_much_output;
  };
  const std::function<bool(std::string_view)> take_err = [&](std::string_view chunk) {
    if (command.on_stderr) command.on_stderr(chunk);
    std::string& tail = outcome.error_tail;
    tail += chunk;
    if (tail.size() > command.stderr_tail) tail.erase(0, tail.size() - command.stderr_tail);
    return true;
  };
  const std::function<asio::awaitable<void>(TaskGroup&)> body = [&](TaskGroup& group) {
    group.spawn(pump(running.out, take_out));
    group.spawn(pump(running.err, take_err));
    return running.ended.async_wait(Stream::wait_read, asio::use_awaitable);
  };
  co_await with_task_group(body);
  // The child has ended, and the pipes hold the rest of its output. wait_for() does not wait for the end of the pipes,
  // because grandchildren may keep them open for ever.
  drain_rest(running.out.native_handle(), take_out);
  drain_rest(running.err.native_handle(), take_err);
  // Not after reap(): until then, the zombie keeps the id of the group from being used again.
  if (late) running.child.send(SIGKILL);
  const int status = running.child.reap();
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  co_return Result<>();
}

}  // namespace

Task<ChildOutcome> run_child(Clock& clock, ChildCommand command, TimePoint deadline) {
  Pipe out;
  Pipe err;
  if (!out.open() || !err.open()) co_return Error(Errc::unavailable, words_for(errno));
  pid_t pid = 0;
  if (const int failure = spawn(command, out.write.get(), err.write.get(), pid); failure != 0)
    co_return Error(Errc::unavailable, words_for(failure));
  out.write = Descriptor();
  err.write = Descriptor();

  auto executor = co_await asio::this_coro::executor;
  Running running{
      Stream(executor), Stream(executor), Stream(executor), {pid, command.own_group, command.grace > Duration::zero()}};
  Descriptor watched(::fcntl(running.child.pidfd(), F_DUPFD_CLOEXEC, 0));
  if (!watched.is_open()) co_return Error(Errc::unavailable, words_for(errno));
  running.ended.assign(watched.release());
  running.out.assign(out.read.release());
  running.err.assign(err.read.release());
  ChildOutcome outcome;
  auto ended = co_await with_deadline(clock, deadline, wait_for(running, command, outcome, false));
  outcome.timed_out = !ended;
  if (!ended && command.grace > Duration::zero()) {
    running.child.send(SIGTERM);
    ended = co_await with_deadline(clock, saturating_add(clock.now(), command.grace),
                                   wait_for(running, command, outcome, true));
  }
  co_return outcome;
}

}  // namespace haulout::k8s
