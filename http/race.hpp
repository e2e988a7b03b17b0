// Connecting to whichever of a server's addresses reacts first (RFC 8305, "happy eyeballs"): a dead one costs a moment,
// not its whole limit.
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

// `preferred` first, if it is among them; from the first on the two families take turns, each in its own order.
std::vector<boost::asio::ip::address> order_of_trial(std::vector<boost::asio::ip::address> addresses,
                                                     const std::optional<boost::asio::ip::address>& preferred);

// What became of an address.
struct Trial {
  boost::asio::ip::address address;
  std::optional<std::string> failure;  // unset: it has not reacted yet
};

// "10.0.0.1: no reaction within 5 s; fd00::1: no reaction yet; and 3 more". What is the host itself is not named anew.
std::string in_words(const std::vector<Trial>& trials, std::string_view host);

struct RaceLimits {
  Duration next_after;   // the next address begins this long after the one before
  Duration per_address;  // no reaction for this long is a failure
};

// Connects the socket, which is not open yet. Its errors are told of the address.
using ConnectOne = std::function<Task<>(boost::asio::ip::tcp::socket&, boost::asio::ip::address)>;

// Begins with the first; with each other one when the one before has failed, or `next_after` after that began. The
// first that takes the connection has the socket and is returned; before that the others are cancelled and closed.
// Errc::unreachable, in the words of in_words(), when all have failed. *trials is written as it goes. Cancellable.
// `clock`, `socket` and `trials` must outlive the call.
Task<boost::asio::ip::address> connect_to_first(Clock& clock, RaceLimits limits, std::string host,
                                                std::vector<boost::asio::ip::address> addresses, ConnectOne connect_one,
                                                boost::asio::ip::tcp::socket& socket, std::vector<Trial>* trials);

}  // namespace haulout::http
