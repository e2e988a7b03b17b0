// Repeats a request of a command as long as waiting may resolve its failure. Client itself makes one attempt.
//
// The error that an object does not exist is always final. Without `fail_fast`, every other error is retried until the
// deadline. With `fail_fast`:
//   - Until a request of this client has succeeded, errors of DNS, TLS and credentials (also 401), responses that
//     cannot be read, and responses that waiting does not change are final. A refused connection, a reset and silence
//     are final after `unreachable_limit`.
//   - After a first success, errors that waiting cannot resolve are final.
//   - A 403 is final the second time, because an authorizer that has just started denies requests at first.
// A server that responds with another error, for example 429 or 503, is reachable: the request is repeated until the
// deadline, but never before its Retry-After has passed. Cancellable.
#pragma once

#include <functional>

#include "k8s/client.hpp"
#include "retry/backoff.hpp"
#include "retry/rng.hpp"

namespace haulout::k8s {

// Returns true if the error is about credentials. They may be renewed, and the service that checks them may become
// reachable again.
bool is_about_credentials(const Error& error);
// Returns true if the request is worth another attempt by a client that has succeeded before.
bool may_heal(const Error& error);

struct Patience {
  TimePoint deadline = TimePoint::max();
  Duration request_timeout = std::chrono::seconds(40);
  Duration unreachable_limit = std::chrono::seconds(10);
  bool fail_fast = true;  // false: every error but a missing object is retried until the deadline
};

// The decisions of patiently(). Pure.
class PatientCall {
 public:
  PatientCall(Patience patience, bool reached, TimePoint now);
  // Returns the deadline of the next attempt: `request_timeout` from now, but not after the deadline of the Patience.
  // An attempt that begins before `limit_` ends at `limit_` at the latest. An attempt begins after `limit_` only if the
  // server has responded to an earlier one.
  TimePoint attempt_until(TimePoint now) const;
  // Returns the time of the next attempt after this failure, or nullopt if the failure is final.
  std::optional<TimePoint> next_try(const Error& error, TimePoint now, Rng& rng);

 private:
  Patience patience_;
  bool reached_;
  TimePoint limit_;  // end of the attempts to reach a server that does not respond
  unsigned refusals_ = 0;
  Backoff backoff_;
};

// Repeats `request` as described above and returns its last result. Calls `failed` before each wait. Borrows `client`
// and `rng`.
template <class T>
Task<T> patiently(Client& client, Rng& rng, Patience patience, std::function<Task<T>(TimePoint)> request,
                  std::function<void(const Error&)> failed) {
  PatientCall call(patience, client.has_succeeded(), client.clock().now());
  for (;;) {
    auto answer = co_await request(call.attempt_until(client.clock().now()));
    if (answer) co_return answer;
    const auto again = call.next_try(answer.error(), client.clock().now(), rng);
    if (!again) co_return answer;
    failed(answer.error());
    co_await client.clock().sleep_until(*again);
  }
}

}  // namespace haulout::k8s
