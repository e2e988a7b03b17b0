#include "agent/report/event_queue.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "k8s/status.hpp"
#include "retry/backoff.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

constexpr Duration request_limit = std::chrono::seconds(10);
// An Event that was sent this long ago is not updated any more. Shorter than the one hour after which kube-apiserver
// deletes an Event that has not been written again (default of --event-ttl).
constexpr Duration life = std::chrono::minutes(55);
// Number of sent Events that are remembered, so that a repeated note increments the count of its Event.
constexpr std::size_t remembered = 32;
// A name has at most 253 characters, and a time stamp in hexadecimal needs 16 of them.
constexpr std::size_t longest_prefix = 230;
constexpr std::string_view controller = "haulout.dev/agent";

}  // namespace

std::string_view to_string(EventResult result) {
  switch (result) {
    case EventResult::written: return "written";
    case EventResult::failed: return "failed";
    case EventResult::dropped: return "dropped";
  }
  return "";
}

EventQueue::EventQueue(asio::any_io_executor executor, k8s::Client& client, Rng& rng, EventQueueOptions options,
                       std::function<void(EventResult)> done)
    : client_(client),
      clock_(client.clock()),
      rng_(rng),
      options_(std::move(options)),
      done_(std::move(done)),
      news_(std::move(executor)) {}

void EventQueue::push(EventNote note) {
  const auto same =
      std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& each) { return each.note == note; });
  if (same != waiting_.end()) {
    ++same->times;
    same->at = client_.server_now();
    return;
  }
  waiting_.push_back({std::move(note), client_.server_now(), saturating_add(clock_.now(), options_.patience)});
  if (waiting_.size() > options_.capacity) {
    waiting_.pop_front();
    done_(EventResult::dropped);
  }
  news_.notify();
}

asio::awaitable<void> EventQueue::run() {
  for (;;) {
    while (waiting_.empty()) co_await news_.wait_until(clock_, TimePoint::max());
    co_await keep_pace();
    Waiting event = std::move(waiting_.front());
    waiting_.pop_front();
    done_(co_await deliver(std::move(event)));
  }
}

asio::awaitable<void> EventQueue::keep_pace() {
  paid_until_ = std::max(paid_until_, clock_.now()) + options_.refill;
  const TimePoint earliest = paid_until_ - options_.burst * options_.refill;
  if (earliest > clock_.now()) co_await clock_.sleep_until(earliest);
}

asio::awaitable<EventResult> EventQueue::deliver(Waiting event) {
  Backoff backoff({std::chrono::seconds(1), 2.0, std::chrono::minutes(1), BackoffOptions::Jitter::equal});
  for (;;) {
    auto answer = co_await write(event);
    if (answer) co_return EventResult::written;
    if (!k8s::is_transient(answer.error())) co_return EventResult::failed;
    const TimePoint next = clock_.now() + backoff.next(rng_, answer.error().retry_after);
    if (next > event.until) co_return EventResult::failed;
    co_await clock_.sleep_until(next);
  }
}

EventQueue::Written* EventQueue::written_before(const EventNote& note) {
  std::erase_if(written_, [&](const Written& each) { return each.at + life < clock_.now(); });
  const auto found =
      std::find_if(written_.begin(), written_.end(), [&](const Written& each) { return each.note == note; });
  return found == written_.end() ? nullptr : &*found;
}

Task<> EventQueue::write(Waiting& event) {
  Written* before = written_before(event.note);
  if (!before) co_return co_await create(event);
  const std::int32_t count = before->count + event.times;
  auto repeated =
      co_await client_.repeat_event(k8s::NodeEvent{}.ns, before->name, count, event.at, clock_.now() + request_limit);
  if (repeated) {
    before->count = count;
    before->at = clock_.now();
    co_return Result<>();
  }
  if (!k8s::is_not_found(repeated.error())) co_return repeated;
  std::erase_if(written_, [&](const Written& each) { return each.note == event.note; });
  co_return co_await create(event);
}

Task<> EventQueue::create(Waiting& event) {
  if (event.name.empty()) event.name = new_name(event.at);
  k8s::NodeEvent out;
  out.name = event.name;
  out.node = options_.node;
  // Set to the node's name, as the kubelet does, because `kubectl describe node` searches Events by this name as well
  // as by the Node's UID.
  out.node_uid = options_.node;
  out.type = event.note.type;
  out.reason = event.note.reason;
  out.action = event.note.action;
  out.note = event.note.note;
  out.reporting_controller = controller;
  out.reporting_instance = options_.instance;
  out.event_time = event.at;
  auto created = co_await client_.create_event(out, clock_.now() + request_limit);
  if (!created && !k8s::is_already_exists(created.error())) co_return created;
  written_.push_back({event.note, event.name, event.times, clock_.now()});
  if (written_.size() > remembered) written_.pop_front();
  co_return Result<>();
}

std::string EventQueue::new_name(WallTime at) {
  last_stamp_ = std::max(last_stamp_ + 1, at.time_since_epoch().count());
  std::string prefix = options_.node.substr(0, longest_prefix);
  while (prefix.ends_with('.') || prefix.ends_with('-')) prefix.pop_back();
  return fmt::format("{}.{:x}", prefix, last_stamp_);
}

}  // namespace haulout::agent
