// Reads the Node and takes over its record, at the start and each time that the Node has to be read again. Also records
// a boot of the machine for which the state has no event. Cancellable. Borrows the context.
#pragma once

#include <optional>

#include "agent/lifecycle/context.hpp"

namespace haulout::agent {

class Loading {
 public:
  explicit Loading(const Context& context) : context_(context) {}

  // Reads the Node and takes over its record; retries until it succeeds. Removes the ready file first, because the API
  // server may be unavailable for long.
  boost::asio::awaitable<void> run();
  // Called when the duties of the state are established. If the machine has booted and the state has no event for a
  // boot, writes the new boot id. Such a boot also serves a reboot request that was made before it.
  boost::asio::awaitable<void> note_boot();

 private:
  void tell_unread(const Error& error);

  const Context& context_;
  // Whether a reboot was requested when this process started. A request that was made later cannot have been served by
  // an earlier boot.
  std::optional<bool> requested_at_start_;
};

}  // namespace haulout::agent
