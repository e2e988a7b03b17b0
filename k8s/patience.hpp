// A request of a command, repeated while waiting may heal its failure. Client itself tries once.
//
// Until the server has done anything for this client, `fail_fast` holds: DNS, TLS, a wrong answer and 401 end it at
// once, 403 the second time (an authorizer that has just started refuses at first), a refused connection and silence
// after `unreachable_limit`. A server that answers, were it with 429 or 503, is there: it is asked again until the
// deadline, and never sooner than its Retry-After says. Once it has done something, only what no waiting heals is
// final. An object that does not exist is an answer. Cancellable.
#pragma once

#include <functional>

#include "k8s/client.hpp"
#include "retry/backoff.hpp"
#include "retry/rng.hpp"

namespace haulout::k8s {

// Credentials are renewed, and the service that judges them comes back.
bool is_about_credentials(const Error& error);
// After the first success of a client: worth another try.
bool may_heal(const Error& error);

struct Patience {
  TimePoint deadline = TimePoint::max();
  Duration request_timeout = std::chrono::seconds(40);
  Duration unreachable_limit = std::chrono::seconds(10);
  bool fail_fast = true;  // false: everything but an object that does not exist is tried again
};

// What patiently() decides. Pure.
class PatientCall {
 public:
  PatientCall(Patience patience, bool reached, TimePoint now);
  // Until when the next try may last; past the limit it still gets its time once.
  TimePoint attempt_until(TimePoint now) const;
  // When to try again after this failure; nothing: it is final.
  std::optional<TimePoint> next_try(const Error& error, TimePoint now, Rng& rng);

 private:
  Patience patience_;
  bool reached_;
  TimePoint limit_;  // for a server that does not answer
  unsigned refusals_ = 0;
  Backoff backoff_;
};

// `failed` is called before each wait.
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
