// Connects to the first of a server's addresses that responds (RFC 8305, "happy eyeballs"). A dead address therefore
// delays the connection by `next_after`, not by the whole time limit of an attempt.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::http {

// Returns the addresses in the order in which they are tried. `preferred` comes first if it is in the list. IPv4 and
// IPv6 addresses alternate, beginning with the family of the first address. Each family keeps its order. Pure.
std::vector<boost::asio::ip::address> order_of_trial(std::vector<boost::asio::ip::address> addresses,
                                                     const std::optional<boost::asio::ip::address>& preferred);

// State of the attempt to connect to one address.
struct Trial {
  boost::asio::ip::address address;
  std::optional<std::string> failure;  // unset while the attempt is in progress
};

// Describes the attempts in words, for example "10.0.0.1: no reaction within 5 s; fd00::1: no reaction yet; and 3
// more". Omits an address that is equal to `host`. Pure.
std::string in_words(const std::vector<Trial>& trials, std::string_view host);

struct RaceLimits {
  Duration next_after;   // time from the start of one attempt to the start of the next
  Duration per_address;  // an attempt fails if it takes longer
};

// Opens and connects the socket. Its error message describes the failure without naming the address.
using ConnectOne = std::function<Task<>(boost::asio::ip::tcp::socket&, boost::asio::ip::address)>;

// Tries the addresses in order. Starts each further attempt when the previous one has failed, or `next_after` after it
// began. When an attempt connects, cancels and closes all others, moves its socket to `socket` and returns its address.
// Fails with Errc::unreachable, with the text of in_words(), if all attempts have failed. Writes each attempt to
// *trials. Cancellable. `clock`, `socket` and `trials` must outlive the call.
Task<boost::asio::ip::address> connect_to_first(Clock& clock, RaceLimits limits, std::string host,
                                                std::vector<boost::asio::ip::address> addresses, ConnectOne connect_one,
                                                boost::asio::ip::tcp::socket& socket, std::vector<Trial>* trials);

}  // namespace haulout::http
