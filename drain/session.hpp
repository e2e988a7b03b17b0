// The state that all parts of one drain share: client, clock, random numbers, options, deadline, observer, and how the
// drain has ended. The Drain owns one Session, and all its other parts borrow it. Single-threaded.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "drain/observer.hpp"
#include "drain/options.hpp"
#include "drain/report.hpp"
#include "k8s/client.hpp"
#include "k8s/patience.hpp"
#include "k8s/status.hpp"
#include "retry/backoff.hpp"
#include "retry/notifier.hpp"
#include "retry/rng.hpp"

namespace haulout::drain {

// Limit of a single request. A list has a limit for each of its pages instead (k8s::longest_page).
inline constexpr Duration request_timeout = std::chrono::seconds(40);
// How long a drain retries to read what it can do without: DaemonSets, the number of replicas in the Scale of a custom
// controller, a controller that was read before, and the objects for a fit check that cannot refuse the drain. After
// that it continues without the answer.
inline constexpr Duration patience_with_others = std::chrono::minutes(1);
// How long a request that the drain depends on may fail before that is reported.
inline constexpr Duration worth_a_word = std::chrono::seconds(5);

// Returns true if the failure does not result from the state of the cluster, but from credentials, the network,
// permissions, or an endpoint that is not an API server.
bool is_connection_failure(const Error& error);

// Records how a drain has ended. The functions that end it return false, so that a stage of the drain can return their
// result: false means that the drain has ended. If several of them are called, the last call counts.
class Ending {
 public:
  explicit Ending(Clock& clock) : clock_(clock) {}

  bool end(Outcome outcome, std::string message, std::optional<Error> error = {});
  // Ends the drain as `failed` because of this error.
  bool fail(const Error& error, std::string_view what);
  // Ends the drain after the last retry of a request failed. If the failure may be transient, only the deadline stopped
  // the retries, and the outcome is `blocked`. Otherwise it is `failed`.
  bool give_up(const Error& error, std::string_view what);
  // Ends the drain as `failed` because a right is missing. `what` names the action that is not permitted.
  bool lacks_right(const std::string& node, const k8s::ResourceAttributes& right, std::string_view what);
  // Appends text to the message of a drain that has ended.
  void add(std::string_view text) { message_ += text; }

  bool has_come() const { return outcome_.has_value(); }
  bool is(Outcome outcome) const { return outcome_ == outcome; }
  const std::string& message() const { return message_; }
  // Writes outcome, message, error and time to the report. A drain that has not ended is reported as cancelled now.
  void write_to(Report& report) const;

 private:
  Clock& clock_;
  std::optional<Outcome> outcome_;
  std::string message_;
  WallTime at_{};
  std::optional<Error> error_;
  bool connection_failed_ = false;
};

class Session {
 public:
  // Borrows client, rng and observer.
  Session(k8s::Client& client, Rng& rng, DrainObserver& observer, Options options, std::string node);

  k8s::Client& client() const { return client_; }
  Clock& clock() const { return client_.clock(); }
  Rng& rng() const { return rng_; }
  const Options& options() const { return options_; }
  const std::string& node_name() const { return node_name_; }
  Ending& ending() { return ending_; }
  const Ending& ending() const { return ending_; }

  TimePoint now() const { return clock().now(); }
  WallTime wall_now() const { return clock().wall_now(); }
  TimePoint deadline() const { return deadline_; }
  TimePoint within(Duration duration) const { return std::min(deadline_, saturating_add(now(), duration)); }
  // Returns true if the drain's own deadline ended the request. Such an error does not show a fault of the server.
  bool cut_off(const Error& error) const { return error.code() == Errc::timeout && now() >= deadline_; }
  // Sets the start time of the report to now, and the deadline to now plus Options::timeout.
  void start_time();
  WallTime started_at() const { return started_at_; }
  // Replaces the deadline by `duration` from now, for a last request of a drain that has ended.
  void allow(Duration duration) { deadline_ = saturating_add(now(), duration); }

  // Returns the Notifier that wakes the main loop. Valid after open().
  Notifier& changed() { return *changed_; }
  void open(boost::asio::any_io_executor executor) { changed_ = std::make_unique<Notifier>(std::move(executor)); }

  // Sets the function that returns the progress for each event.
  void set_progress(std::function<Progress()> progress) { progress_ = std::move(progress); }
  void emit(EventType type, std::string message = {});
  void emit(EventType type, const PodReport& pod, std::string message = {});
  void emit(EventType type, const Diagnosis& diagnosis);
  void emit(EventType type, const VolumeReport& volume);

  // Sends a request and repeats it with backoff while its failure may be transient. Stops at the deadline of the drain
  // or at `limit`, whichever comes first, and returns the last failure. Sends the request at least once, even if that
  // time has passed. Near the end it halves its delays to use the remaining time. Repeats the request after the first
  // 403, because an authorizer that has just started may refuse wrongly, and returns the second one. Each attempt may
  // take `timeout`, or until the deadline if `timeout` is unset. If failures continue, emits an event with `what`, a
  // sentence that states which request fails (Trouble). Cancellable.
  template <class T>
  Task<T> insist(std::string what, std::function<Task<T>(TimePoint)> request, std::optional<Duration> timeout = {},
                 TimePoint limit = TimePoint::max());

 private:
  void send(Event event);

  k8s::Client& client_;
  Rng& rng_;
  DrainObserver& observer_;
  Options options_;
  std::string node_name_;
  TimePoint deadline_ = TimePoint::max();
  WallTime started_at_;
  Ending ending_;
  std::unique_ptr<Notifier> changed_;
  std::function<Progress()> progress_;
};

// Reports a request that fails repeatedly, by the events `disconnected` and `reconnected`: when it has failed for
// `worth_a_word`, again whenever its error then changes, and at the end, whether it has succeeded or is given up.
class Trouble {
 public:
  Trouble(Session& session, std::string what) : session_(session), what_(std::move(what)), since_(session.now()) {}
  void tell(const Error& error) { tell(error.message()); }
  void tell(const std::string& why);
  void over() const;

 private:
  Session& session_;
  std::string what_;
  TimePoint since_;
  std::string told_;
};

template <class T>
Task<T> Session::insist(std::string what, std::function<Task<T>(TimePoint)> request, std::optional<Duration> timeout,
                        TimePoint limit) {
  using std::chrono::milliseconds, std::chrono::seconds;
  Backoff backoff({milliseconds(200), 2.0, seconds(10), BackoffOptions::Jitter::full});
  Backoff slow_backoff({seconds(1), 2.0, seconds(60), BackoffOptions::Jitter::equal});
  unsigned refusals = 0;
  Trouble trouble(*this, std::move(what));
  for (;;) {
    auto answer = co_await request(timeout ? within(*timeout) : deadline_);
    const bool cold = !answer && k8s::is_forbidden(answer.error()) && ++refusals < 2;
    if (answer || (!cold && !k8s::may_heal(answer.error()))) {
      trouble.over();
      co_return answer;
    }
    const Error& error = answer.error();
    Duration delay = (k8s::is_about_credentials(error) ? slow_backoff : backoff).next(rng_, error.retry_after);
    if (cold) delay = std::max<Duration>(delay, milliseconds(500));
    const Duration left = std::min(deadline_, limit) - now();
    if (delay >= left) {
      delay = left / 2;
      if (delay < milliseconds(100)) {
        trouble.over();
        co_return answer;
      }
    }
    trouble.tell(error);
    co_await clock().sleep_until(now() + delay);
  }
}

}  // namespace haulout::drain
