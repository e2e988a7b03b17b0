// Resolves a host to addresses. An address literal is returned as it is. A name is looked up by getaddrinfo on a helper
// thread, because getaddrinfo cannot be cancelled. A cancelled caller does not wait for the helper, which ends by
// itself.
//
// The number of helper threads is bounded. If all are busy, a caller waits for one of them. Callers that ask for a name
// that is being looked up already get the answer of that look-up, also if the caller that started it was cancelled.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "retry/task.hpp"

namespace haulout::http {

// Addresses in the order in which they should be tried, at least one and at most 16. Errc::dns. Cancellable. Starts at
// most most_look_ups threads in this process.
Task<std::vector<boost::asio::ip::address>> resolve(std::string host);

// A process uses few names: those of the API server, of a proxy and of a FleetLock server. A name server that does not
// answer holds a helper thread for up to half a minute.
inline constexpr std::size_t most_look_ups = 4;

struct HostAddresses {
  int failure = 0;  // 0 or EAI_…
  std::vector<boost::asio::ip::address> addresses{};
};

// Looks names up on at most `most` helper threads at a time. For use from one thread. The helpers share only sockets
// and pipes with their callers, so they may outlive this object.
class LookUps {
 public:
  // Blocks until it has an answer. Called on a helper thread; must not throw.
  using LookUp = std::function<HostAddresses(const std::string& host)>;
  LookUps(std::size_t most, LookUp look_up);

  // Errc::dns, also if no thread can be started. Cancellable. This object must outlive the call.
  Task<std::vector<boost::asio::ip::address>> addresses_of(std::string host);

 private:
  // Holds one byte for each helper thread that may be started. A helper puts its byte back when it has its answer.
  struct Places {
    Descriptor take_from, give_back_to;
  };
  void forget_answered();
  Result<> start(const std::string& host);

  LookUp look_up_;
  std::shared_ptr<const Places> places_;
  // The sockets on which the answers of the running helpers arrive.
  std::map<std::string, Descriptor> running_;
};

}  // namespace haulout::http
