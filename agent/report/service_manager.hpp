// What a service tells its service manager, in the protocol of sd_notify(3): over the datagram socket that
// $NOTIFY_SOCKET names. Without one, nobody is told anything.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <string>

#include "retry/clock.hpp"

namespace haulout::agent {

// "READY=1", "STATUS=…", …; lines may be put together by line breaks. Best effort.
void notify_service_manager(const std::string& words);

// How often the service manager wants to hear WATCHDOG=1 (WATCHDOG_USEC): it kills a service that is silent for longer.
// Nothing: no watchdog, or not one of this process.
std::optional<Duration> watchdog_limit();

// Says WATCHDOG=1 twice in each limit, as sd_watchdog_enabled(3) recommends, until cancelled. To run on the loop that
// does all the work: when that hangs, the service manager starts another agent.
boost::asio::awaitable<void> feed_watchdog(Clock& clock, Duration limit,
                                           std::function<void(const std::string&)> notify = notify_service_manager);

}  // namespace haulout::agent
