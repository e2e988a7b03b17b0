// Resolves a host to addresses. An address literal is returned as it is. A name is looked up by getaddrinfo on a helper
// thread, because getaddrinfo cannot be cancelled. A cancelled caller does not wait for the helper, which ends by
// itself. The helper shares only a socket with its caller, no memory, so it may outlive all objects here.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <string>
#include <vector>

#include "retry/task.hpp"

namespace haulout::http {

// Addresses in the order in which they should be tried, at least one and at most 16. Errc::dns. Cancellable.
Task<std::vector<boost::asio::ip::address>> resolve(std::string host);

}  // namespace haulout::http
