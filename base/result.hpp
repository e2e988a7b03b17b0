// Error handling of the whole tree. It has three mechanisms, which are not used for one another:
//   - An expected failure is returned as a value: Result<T>, or Task<T> from a coroutine (retry/task.hpp).
//   - Cancellation is the exception boost::system::system_error(operation_aborted). Only the scope that requested the
//     cancellation may catch it.
//   - A bug terminates the program. Exception: the wrong number of a reboot method is an Error, so that the agent can
//     report it.
// The values own their contents. No I/O (a bug prints its place before it ends the program), no coroutines.
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
  dns,          // the host name has no address, or it could not be looked up
  unreachable,  // no connection: refused, no route, or the attempt to connect timed out
  tls,          // the peer's certificate or the own TLS settings are not valid, or the handshake failed
  reset,        // the connection ended before the answer was complete
  protocol,     // the answer is not HTTP, or exceeds the limits of the HTTP client
  decode,       // the text of an answer, a file or a program is not in the expected format
  status,       // the server or the D-Bus service answered with an error: see PeerStatus
  unavailable,  // something that is needed is missing, fails or refuses: a file, a program, a setting, a proxy
  invalid,      // the caller's input is not valid, or not any more: the Node was replaced
};

std::string_view to_string(Errc code);

// The machine-readable content of an error answer: metav1.Status of Kubernetes, or as much of it as another server or a
// D-Bus service states.
struct PeerStatus {
  struct Cause {
    std::string reason;
    std::string message;
    std::string field;
  };
  int code = 0;         // HTTP status; 0 for D-Bus
  std::string reason;   // "Conflict", "TooManyRequests", …, or empty; the name of the error for D-Bus
  std::string kind;     // details.kind: the kind of object that the error is about
  std::string name;     // details.name: the name of that object
  std::string message;  // the server's message, for people; code reads it only where nothing else shows the cause
  std::vector<Cause> causes;
  std::string continue_token;  // metadata.continue of an expired list
  bool structured = false;     // false: the body was not a Status (sent by a proxy, or by a filter of the server)

  bool has_cause(std::string_view cause_reason) const;
};

// Deliberately not an aggregate. C++20 can construct an aggregate from its first member alone, and a Result<T> cannot
// be constructed from a T from which an Error could be constructed, too.
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
