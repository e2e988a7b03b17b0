// Error handling of the whole tree. It has three mechanisms, which are not used for one another:
//   - An expected failure is returned as a value: Result<T>, or Task<T> from a coroutine (retry/task.hpp).
//   - Cancellation is the exception boost::system::system_error(operation_aborted). Only the scope that requested the
//     cancellation may catch it.
//   - A bug terminates the program.
// The values own their contents. No I/O, no coroutines.
#pragma once

#include <boost/system/result.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace haulout {

// The class of a failure. Callers decide by it, and not by the message, which is for people.
enum class Errc {
  timeout,      // the deadline passed before the answer
  dns,          // the host name has no address
  unreachable,  // no connection: refused, no route, or the attempt to connect timed out
  tls,          // the peer's certificate is not valid, or the handshake failed
  reset,        // the connection ended before the answer was complete
  protocol,     // the answer is not HTTP, or exceeds the limits of the HTTP client
  decode,       // the answer is valid HTTP, but its body is not what was requested
  status,       // the server answered with an error status: see PeerStatus
  unavailable,  // something on this machine is missing: a file, a program, a setting
  invalid,      // the caller's input is not valid
};

std::string_view to_string(Errc code);

// The machine-readable content of a server's error answer (metav1.Status of Kubernetes).
struct PeerStatus {
  struct Cause {
    std::string reason;
    std::string message;
    std::string field;
  };
  int code = 0;         // HTTP status
  std::string reason;   // "Conflict", "TooManyRequests", … or empty
  std::string kind;     // details.kind: the kind of object that the error is about
  std::string name;     // details.name: the name of that object
  std::string message;  // the server's message, for people
  std::vector<Cause> causes;
  std::string continue_token;  // metadata.continue of an expired list
  bool structured = false;     // false: the body was not a Status (sent by a proxy, or by a filter of the server)

  bool has_cause(std::string_view cause_reason) const;
};

// Deliberately not an aggregate, so that `Result<int> x = 5` cannot convert the number to an Error.
class Error {
 public:
  Error() = default;
  Error(Errc code, std::string message) : code_(code), message_(std::move(message)) {}

  Errc code() const { return code_; }
  const std::string& message() const { return message_; }
  // Puts `what` and ": " before the message: "evict shop/web-0: …". The outermost context comes first.
  Error with_context(std::string_view what) &&;

  // The Retry-After of the answer: how long the server asks the client to wait before a retry.
  std::optional<std::chrono::milliseconds> retry_after;
  // Set if and only if code() is Errc::status.
  std::optional<PeerStatus> peer;

  bool is_status(int http_status) const { return peer && peer->code == http_status; }

 private:
  Errc code_ = Errc::invalid;
  std::string message_;
};

// boost::system::result calls this if value() is called on a failed Result. That is a bug in the caller, so the program
// terminates.
[[noreturn]] void throw_exception_from_error(const Error& error, const boost::source_location& where);

template <class T = void>
class [[nodiscard]] Result : public boost::system::result<T, Error> {
 public:
  using boost::system::result<T, Error>::result;
};

}  // namespace haulout
