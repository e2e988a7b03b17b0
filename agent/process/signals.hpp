// SIGINT, SIGTERM and SIGHUP as something to wait for. The first one is handed out; from then on a second SIGINT or
// SIGTERM ends the process at once, and a second SIGHUP (a vanishing terminal sends several) is ignored. A SIGINT or
// SIGHUP that the process was started to ignore (nohup, a shell's background job) stays ignored.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/signal_set.hpp>
#include <optional>
#include <vector>

namespace haulout::agent {

// After a signal nobody waits long for a reader that does not read.
inline constexpr int patience_after_signal_ms = 300;

class Signals {
 public:
  explicit Signals(boost::asio::any_io_executor executor);
  // The signal's number. Cancellable. Once.
  boost::asio::awaitable<int> wait();

 private:
  boost::asio::signal_set set_;
};

// Runs `work` to its end or until a signal comes; `helpers` run beside it for as long. Whatever is left is cancelled
// and joined. Returns the signal, or nothing when the work ended by itself.
boost::asio::awaitable<std::optional<int>> until_signal(Signals& signals, boost::asio::awaitable<void> work,
                                                        std::vector<boost::asio::awaitable<void>> helpers);

}  // namespace haulout::agent
