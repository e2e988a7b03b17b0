#include "drain/pods_feed.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

asio::awaitable<void> PodsFeed::follow() {
  k8s::ReflectorOptions options;
  options.field_selector = "spec.nodeName=" + session_.node_name();
  options.page_size = session_.options().page_size;
  options.gather_until = [this] { return gathered_at(session_.now(), pipeline_.patience()); };
  view_ = std::make_unique<k8s::Reflector<k8s::Pod>>(
      session_.client(), session_.rng(), options,
      [this](const std::string& uid, const k8s::Pod* pod) {
        const auto asked = view_->list_asked();
        if (!pod && asked)
          pipeline_.pod_missing(uid, *asked, session_.now(), session_.wall_now());
        else if (!pod)
          pipeline_.pod_gone(uid, session_.now(), session_.wall_now());
        else if (asked)
          pipeline_.pod_listed(*pod, *asked, session_.now());
        else
          pipeline_.pod_changed(*pod, session_.now());
      },
      [this] {
        // The view does not report the deletion of pods that the drain knows only from other lists. So the pipeline
        // compares its pods with the whole list.
        if (const auto asked = view_->list_asked())
          pipeline_.only_listed(view_->objects(), *asked, session_.now(), session_.wall_now());
        session_.changed().notify();
      });
  view_->seed({listed_.meta, std::exchange(listed_.items, {})});
  // The view was seeded with a list, so run() ends only by cancellation.
  static_cast<void>(co_await view_->run());
}

void PodsFeed::read_on() {
  if (view_) view_->read_on();
}

// Runs concurrently with the main loop, so that a list that stalls delays nothing.
asio::awaitable<void> PodsFeed::doubt() {
  if (co_await node_.read()) static_cast<void>(co_await view_->look_again());
}

// Lists the pods again if one has waited for long. After etcd was restored from a backup, a watch may wait for a
// revision that is hours away, or may have lost earlier events. It would then never report that the waiting pod has
// changed or was deleted.
void PodsFeed::look(TaskGroup& group) {
  if (session_.now() >= doubt_not_before_ && pipeline_.any_in_doubt()) {
    doubt_not_before_ = session_.now() + doubt_interval;
    group.spawn(doubt());
  }
  if (held_.due(view_ && pipeline_.any_parked(), session_.now())) group.spawn(doubt());
}

void PodsFeed::watch_health() {
  if (!view_) return;
  const auto& health = view_->health();
  // A watch that was closed without an error is reopened at once and misses nothing (load balancers close idle
  // connections), so it does not count as lost.
  const bool lost = !health.connected && health.error.has_value();
  disconnected_since_ = lost ? std::min(disconnected_since_, session_.now()) : TimePoint::max();
  const Told tell = lost && session_.now() >= disconnected_since_ + worth_a_word ? Told::disconnected : Told::connected;
  if (tell == told_) return;
  told_ = tell;
  if (tell == Told::disconnected)
    session_.emit(EventType::disconnected, health.error->message());
  else
    session_.emit(EventType::reconnected);
}

TimePoint PodsFeed::next_wake(TimePoint at) const {
  TimePoint next = held_.next();
  if (const TimePoint told = saturating_add(disconnected_since_, worth_a_word); told > at) next = std::min(next, told);
  if (doubt_not_before_ > at && pipeline_.any_in_doubt()) next = std::min(next, doubt_not_before_);
  return next;
}

}  // namespace haulout::drain
