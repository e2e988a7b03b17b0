// Reads the Node and takes over its record, at the start and each time that the Node has to be read again, and notes a
// boot of the machine that is no event of the state. Cancellable. Borrows the context.
#pragma once

#include <optional>

#include "agent/lifecycle/context.hpp"

namespace haulout::agent {

class Loading {
 public:
  explicit Loading(const Context& context) : context_(context) {}

  // Retries until it succeeds. May take as long as the API server is unavailable, so it removes the ready file first.
  boost::asio::awaitable<void> run();
  // Called when the duties of the state are established. If the machine has booted and the state has no event for that,
  // writes the new boot id. Such a boot also serves a reboot request that was there before.
  boost::asio::awaitable<void> note_boot();

 private:
  void tell_unread(const Error& error);

  const Context& context_;
  // Whether a reboot was requested when this process started. A later request cannot have been served by an earlier
  // boot.
  std::optional<bool> requested_at_start_;
};

}  // namespace haulout::agent
