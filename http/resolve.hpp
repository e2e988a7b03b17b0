// Resolves a host to addresses. An address literal is returned as it is. A name is looked up by getaddrinfo on a helper
// thread, because getaddrinfo cannot be cancelled. A cancelled caller does not wait for the helper thread, which ends
// when getaddrinfo returns.
//
// The number of helper threads is bounded. If all are busy, a caller waits for one of them. Concurrent callers with the
// same name share one look-up, which continues if the caller that started it is cancelled.
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

// Returns the addresses in the order in which they should be tried, at least one and at most 16. Fails with Errc::dns.
// Cancellable. At most most_look_ups helper threads run at a time in this process.
Task<std::vector<boost::asio::ip::address>> resolve(std::string host);

// Limit for the helper threads of resolve(). A process uses few names: those of the API server, of a proxy and of a
// FleetLock server. A name server that does not respond occupies a helper thread for up to half a minute.
inline constexpr std::size_t most_look_ups = 4;

// The result of one call of getaddrinfo.
struct HostAddresses {
  int failure = 0;  // 0 or the error code of getaddrinfo (EAI_…)
  std::vector<boost::asio::ip::address> addresses{};
};

// Looks names up on at most `most` helper threads at a time. For use from one thread. The helpers share only sockets
// and pipes with their callers, so they may outlive this object.
class LookUps {
 public:
  // Looks up one name. Called on a helper thread, which it blocks; must not throw.
  using LookUp = std::function<HostAddresses(const std::string& host)>;
  LookUps(std::size_t most, LookUp look_up);

  // Looks up a name (not an address literal) as resolve() does. Fails with Errc::dns, also if no thread can be started.
  // Cancellable. This object must outlive the call.
  Task<std::vector<boost::asio::ip::address>> addresses_of(std::string host);

 private:
  // A pipe with one byte for each helper thread that may be started. A caller takes a byte to start a helper thread,
  // which puts the byte back when its look-up has ended.
  struct Places {
    Descriptor take_from, give_back_to;
  };
  void forget_answered();
  Result<> start(const std::string& host);

  LookUp look_up_;
  std::shared_ptr<const Places> places_;
  // For each name that is being looked up, the socket on which its helper thread sends the result.
  std::map<std::string, Descriptor> running_;
};

}  // namespace haulout::http
