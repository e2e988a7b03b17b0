// Addresses of a host. A literal is its own; a name is looked up by getaddrinfo on a helper thread, because nothing can
// cancel getaddrinfo: a caller that is cancelled walks away and the helper ends on its own. The helper shares no memory
// with us, only a socket, so it may outlive everything here.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <string>
#include <vector>

#include "retry/task.hpp"

namespace haulout::http {

// In the order in which they should be tried; never empty. Errc::dns. Cancellable.
Task<std::vector<boost::asio::ip::address>> resolve(std::string host);

}  // namespace haulout::http
