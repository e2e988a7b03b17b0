// Events of this node's agent (events.k8s.io/v1, regarding its Node) on their way to the API server: best effort, and
// kind to it. push() never blocks; run() works the queue off.
//
//  - The same thing again within the life of its Event is counted on that one (series), not written anew.
//  - A burst of `burst` writes, then one in `refill`. What does not fit into the queue pushes the oldest out.
//  - A write that fails for a passing reason is sent again for `patience`; any other failure loses the Event. Each end
//    is told to `done`.
// Borrows the client; must outlive run(). One thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <deque>
#include <functional>
#include <string>

#include "k8s/client.hpp"
#include "retry/notifier.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

struct EventNote {
  k8s::NodeEvent::Type type = k8s::NodeEvent::Type::normal;
  std::string reason{};
  std::string action{};
  std::string note{};
  bool operator==(const EventNote&) const = default;
};

struct EventQueueOptions {
  std::string node{};
  std::string instance{};  // reportingInstance: the pod, or the host
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
  // Until cancelled; what is in the queue then is lost.
  boost::asio::awaitable<void> run();
  std::size_t size() const { return waiting_.size(); }

 private:
  struct Waiting {
    EventNote note;
    WallTime at{};
    TimePoint until{};
    std::int32_t times = 1;
    std::string name{};  // given once: an answer that was lost must not make two of it
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
  TimePoint paid_until_{};  // when the writes so far are paid off, at one in `refill`
  std::int64_t last_stamp_ = 0;
};

}  // namespace haulout::agent
