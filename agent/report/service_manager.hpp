// Messages to the service manager of this process, in the protocol of sd_notify(3), over the datagram socket in
// $NOTIFY_SOCKET. Without that variable, nothing is sent.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <string>

#include "retry/clock.hpp"

namespace haulout::agent {

// Sends "READY=1", "STATUS=…" and so on; line breaks separate several messages. Best effort: errors are ignored.
void notify_service_manager(const std::string& words);

// Returns the watchdog's limit (WATCHDOG_USEC): the service manager kills a service that sends no WATCHDOG=1 for
// longer. Returns nothing if there is no watchdog, or if it is for another process.
std::optional<Duration> watchdog_limit();

// Sends WATCHDOG=1 twice per limit, as sd_watchdog_enabled(3) recommends, until cancelled. Run it on the event loop
// that does all the work: if that loop hangs, the service manager restarts the agent. Borrows the clock. Never fails.
boost::asio::awaitable<void> feed_watchdog(Clock& clock, Duration limit,
                                           std::function<void(const std::string&)> notify = notify_service_manager);

}  // namespace haulout::agent
