// Queue of this agent's Events (events.k8s.io/v1, regarding its Node). Delivery is best effort, with limits that
// protect the API server. push() never blocks; run() sends the queued Events.
//
//  - If a note repeats while its Event exists, run() increments the count of that Event (series) and creates no new
//    one.
//  - run() sends at most `burst` writes at once, then one per `refill`. If the queue is full, push()
//    drops its oldest Event.
//  - run() retries a transient failure for up to `patience` after push(). Any other failure loses the Event. It calls
//    `done` with each result.
// Borrows client and rng, and must outlive run(). One thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <deque>
#include <functional>
#include <string>

#include "k8s/client.hpp"
#include "retry/notifier.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// An Event to send, without its time and count.
struct EventNote {
  k8s::NodeEvent::Type type = k8s::NodeEvent::Type::normal;
  std::string reason{};
  std::string action{};
  std::string note{};
  bool operator==(const EventNote&) const = default;
};

struct EventQueueOptions {
  std::string node{};
  std::string instance{};  // reportingInstance of Events: the pod, or the host
  std::size_t capacity = 20;
  unsigned burst = 10;
  Duration refill = std::chrono::seconds(30);
  Duration patience = std::chrono::minutes(10);
};

enum class EventResult { written, failed, dropped };
std::string_view to_string(EventResult result);

class EventQueue {
 public:
  EventQueue(boost::asio::any_io_executor executor, k8s::Client& client, Rng& rng, EventQueueOptions options,
             std::function<void(EventResult)> done);

  void push(EventNote note);
  // Sends the Events. Runs until cancelled; the queued Events are then lost.
  boost::asio::awaitable<void> run();
  std::size_t size() const { return waiting_.size(); }

 private:
  struct Waiting {
    EventNote note;
    WallTime at{};
    TimePoint until{};
    std::int32_t times = 1;
    std::string name{};  // set once, so that a retry after a lost response creates no second Event
  };
  struct Written {
    EventNote note;
    std::string name;
    std::int32_t count = 1;
    TimePoint at{};
  };

  boost::asio::awaitable<void> keep_pace();
  boost::asio::awaitable<EventResult> deliver(Waiting event);
  Task<> write(Waiting& event);
  Task<> create(Waiting& event);
  Written* written_before(const EventNote& note);
  std::string new_name(WallTime at);

  k8s::Client& client_;
  Clock& clock_;
  Rng& rng_;
  EventQueueOptions options_;
  std::function<void(EventResult)> done_;
  Notifier news_;
  std::deque<Waiting> waiting_;
  std::deque<Written> written_;
  TimePoint paid_until_{};  // time at which the full `burst` is available again
  std::int64_t last_stamp_ = 0;
};

}  // namespace haulout::agent
