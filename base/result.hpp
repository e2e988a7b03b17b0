// How things fail here. Three channels that are never mixed:
//   - an expected failure is a value: Result<T>, and Task<T> for a coroutine that yields one (retry/task.hpp);
//   - cancellation unwinds, as boost::system::system_error(operation_aborted), and only the scope that asked for it may
//     catch it;
//   - a bug terminates.
// Values own all they hold; nothing here suspends or does I/O.
#pragma once

#include <boost/system/result.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace haulout {

// What programs decide on. Messages are for people and are never matched.
enum class Errc {
  timeout,      // our deadline passed first
  dns,          // the host name has no address
  unreachable,  // no connection: refused, no route, connect timed out
  tls,          // the peer's certificate or the handshake is wrong
  reset,        // the connection ended before the answer was complete
  protocol,     // not HTTP, or HTTP that breaks our limits
  decode,       // HTTP was fine, the content is not what was asked for
  status,       // the server answered with a failure: see PeerStatus
  unavailable,  // something on this machine is missing: a file, a program, a setting
  invalid,      // the caller's input makes no sense
};

std::string_view to_string(Errc code);

// What the peer said about its refusal, in its own machine-readable words (metav1.Status for Kubernetes).
struct PeerStatus {
  struct Cause {
    std::string reason;
    std::string message;
    std::string field;
  };
  int code = 0;         // HTTP status
  std::string reason;   // "Conflict", "TooManyRequests", … or empty
  std::string kind;     // details.kind: what the refusal is about
  std::string name;     // details.name
  std::string message;  // the peer's own sentence, for people
  std::vector<Cause> causes;
  std::string continue_token;  // metadata.continue of an expired list
  bool structured = false;     // false: the body was no Status (a proxy, or the server's own filters)

  bool has_cause(std::string_view cause_reason) const;
};

// Not an aggregate on purpose: Result<int> x = 5 must not become an Error.
class Error {
 public:
  Error() = default;
  Error(Errc code, std::string message) : code_(code), message_(std::move(message)) {}

  Errc code() const { return code_; }
  const std::string& message() const { return message_; }
  // "evict shop/web-0: …"; outermost context first.
  Error with_context(std::string_view what) &&;

  // The peer asked not to come back earlier.
  std::optional<std::chrono::milliseconds> retry_after;
  // Set exactly when code() is Errc::status.
  std::optional<PeerStatus> peer;

  bool is_status(int http_status) const { return peer && peer->code == http_status; }

 private:
  Errc code_ = Errc::invalid;
  std::string message_;
};

// Asked for by boost::system::result when value() is called on a failure: that is a bug in the caller, so it
// terminates.
[[noreturn]] void throw_exception_from_error(const Error& error, const boost::source_location& where);

template <class T = void>
class [[nodiscard]] Result : public boost::system::result<T, Error> {
 public:
  using boost::system::result<T, Error>::result;
};

}  // namespace haulout
