// Waits for SIGINT, SIGTERM or SIGHUP. After the first signal, a second SIGINT or SIGTERM ends the process at once. A
// second SIGHUP is ignored, because a closing terminal sends several. If the process was started with SIGINT or SIGHUP
// ignored (nohup, a shell's background job), that signal stays ignored.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/signal_set.hpp>
#include <optional>
#include <vector>

namespace haulout::agent {

// After a signal, the final flush of output waits at most this long (milliseconds) for a reader that does not read.
inline constexpr int patience_after_signal_ms = 300;

class Signals {
 public:
  explicit Signals(boost::asio::any_io_executor executor);
  // Returns the signal's number. Cancellable. Call it only once.
  boost::asio::awaitable<int> wait();

 private:
  boost::asio::signal_set set_;
};

// Runs `work` until it ends or a signal arrives, and runs `helpers` beside it. Then cancels and joins all coroutines
// that are still running. Returns the signal, or std::nullopt if `work` ended by itself.
boost::asio::awaitable<std::optional<int>> until_signal(Signals& signals, boost::asio::awaitable<void> work,
                                                        std::vector<boost::asio::awaitable<void>> helpers);

}  // namespace haulout::agent
