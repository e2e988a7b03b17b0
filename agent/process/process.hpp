// What every process of the program has: version, output, signals, exit codes, and the environment that `main` passes
// to each command.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/signal_set.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drain/report.hpp"
#include "k8s/credentials.hpp"
#include "retry/clock.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// Returns the version of this program, for example "1.2.3".
std::string_view version();
// Returns the name for the API server's audit log: "haulout/1.2.3 (drain)".
std::string user_agent(std::string_view command);

// An output for text. Writing never blocks the drain and never fails. The program waits for a slow reader only before
// it exits, in flush(). Text for a reader that does not exist any more (closed pipe, closed terminal) is dropped.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void write(std::string_view text) = 0;
  // Returns false once the written text has no reader any more.
  virtual bool has_reader() { return true; }
};

// Writes to a file descriptor, which it borrows. The process must ignore SIGPIPE.
class FdSink final : public Sink {
 public:
  // Largest amount of unwritten text, in bytes; text that exceeds it is dropped.
  static constexpr std::size_t backlog_limit = std::size_t{32} * 1024 * 1024;

  explicit FdSink(int fd) : fd_(fd) {}
  FdSink(const FdSink&) = delete;
  FdSink& operator=(const FdSink&) = delete;

  // From now on, collects the text of one iteration of the event loop and writes it afterwards. Call flush() before the
  // loop is destroyed, so that all text is written.
  void gather(boost::asio::any_io_executor executor) { executor_ = std::move(executor); }
  // Calls pump() of `other` before each write to this sink, so that their output keeps its order. Borrows `other`.
  void write_after(FdSink& other) { before_ = &other; }

  void write(std::string_view text) override;
  // Checks for a reader without writing: poll() reports a pipe whose other end is closed.
  bool has_reader() override;
  // Writes as much as is possible without waiting.
  void pump();
  // Waits until everything is written, or until the reader accepts nothing for `patience_ms`. A negative value sets no
  // limit.
  void flush(int patience_ms);
  bool broken() const { return broken_; }
  // Returns the errno of the failed write, for example for a full disk; 0 if no write failed, or if the reader has
  // closed its end.
  int failure() const { return failure_; }
  std::size_t backlog() const { return pending_.size() - written_; }

 private:
  bool wait_writable(int timeout_ms);
  bool write_some();

  int fd_;
  std::string pending_;
  std::size_t written_ = 0;  // number of bytes of pending_ already written
  boost::asio::any_io_executor executor_;
  bool gathers_ = false;
  FdSink* before_ = nullptr;
  bool broken_ = false;
  int failure_ = 0;
};

// After a signal, the final flush of output waits at most this long (milliseconds) for a reader that does not read.
inline constexpr int patience_after_signal_ms = 300;

// Waits for SIGINT, SIGTERM or SIGHUP. After the first signal, a second SIGINT or SIGTERM ends the process at once. A
// second SIGHUP is ignored, because a closing terminal sends several. If the process was started with SIGINT or SIGHUP
// ignored (nohup, a shell's background job), that signal stays ignored.
class Signals {
 public:
  explicit Signals(boost::asio::any_io_executor executor);
  // Returns the signal's number. Cancellable. Call it only once.
  boost::asio::awaitable<int> wait();

 private:
  boost::asio::signal_set set_;
};

// Runs `work` until it ends or a signal arrives, and `helpers` concurrently with it. Then cancels and joins all
// coroutines that are still running. Returns the signal, or nothing if `work` ended by itself.
boost::asio::awaitable<std::optional<int>> until_signal(Signals& signals, boost::asio::awaitable<void> work,
                                                        std::vector<boost::asio::awaitable<void>> helpers);

// The environment of the program, which each command receives: executor, clock, output, environment variables. `main`
// owns this object and everything that it refers to.
struct Process {
  boost::asio::any_io_executor executor;
  Clock& clock;
  Rng& rng;
  FdSink& out;
  FdSink& err;
  k8s::Environment environment;
  std::string program;  // the program's name as the user called it
};

// Exit codes of the program, computed from results. Pure. Documented in docs/cli.md; scripts rely on them.

inline constexpr int exit_done = 0;
inline constexpr int exit_not_done = 1;  // blocked, refused, node unknown or deleted, failed
inline constexpr int exit_usage = 2;
inline constexpr int exit_connection = 3;  // kubeconfig, connection or permission

int exit_code(const drain::Report& report);
// Returns the largest exit code of several drains.
int exit_code(const std::vector<drain::Report>& reports);
// Returns the exit code for a failed request outside a drain (cordon, resolving a selector).
int exit_code(const Error& error);
// Returns the exit code of an agent whose configuration was accepted. Never returns exit_usage, because a service
// manager does not restart the agent after it, and an error that the agent finds by a request, such as a missing label,
// may be resolved later.
int exit_code_of_service(const Error& error);
// Returns the exit code as a shell does: 129 for SIGHUP, 130 for SIGINT, 143 for SIGTERM.
int exit_code_of_signal(int signal);

}  // namespace haulout::agent
