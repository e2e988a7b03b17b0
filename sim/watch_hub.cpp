#include "sim/watch_hub.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/status_bodies.hpp"

namespace haulout::sim {

WatchHub::WatchHub(World& world, Texts& texts, boost::asio::any_io_executor executor)
    : world_(world), texts_(texts), executor_(executor) {
  world_.store.listen([this](const Change& change) { on_change(change); });
}

void WatchHub::send(WatchChannel& channel, std::string line) {
  if (channel.end != WatchChannel::End::open) return;
  const Timing& timing = world_.timing;
  const TimePoint arrival =
      world_.now() + timing.watch_latency + world_.rng.between(Duration::zero(), timing.watch_latency_jitter);
  channel.last_arrival = std::max({channel.last_arrival, arrival, behind_until_});
  channel.lines.emplace_back(channel.last_arrival, std::move(line));
  channel.changed.notify();
}

void WatchHub::send_object(WatchChannel& channel, std::string_view type, const Object& object) {
  const std::string& text = texts_.of(object);
  std::string line = fmt::format(R"({{"type":"{}","object":)", type);
  line.reserve(line.size() + text.size() + 2);
  line += text;
  line += "}\n";
  send(channel, std::move(line));
}

void WatchHub::send_bookmark(const Watch& watch, WatchChannel& channel, bool initial_events_end) {
  const ResourceInfo& info = *find_resource(watch.request.selection.resource);
  const bool bare = info.kind == "ConfigMap" || info.kind == "Event";
  const std::string_view spec = bare ? "" : info.kind == "Pod" ? R"(,"spec":{"containers":null})" : R"(,"spec":{})";
  const std::string_view status = bare || info.kind == "Lease" ? "" : R"(,"status":{})";
  const std::string_view annotations =
      initial_events_end ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : "";
  send(channel, fmt::format(R"({{"type":"BOOKMARK","object":{{"kind":"{}","apiVersion":"{}",)"
                            R"("metadata":{{"resourceVersion":"{}"{}}}{}{}}}}})"
                            "\n",
                            info.kind, info.api_version(), world_.store.revision(), annotations, spec, status));
}

std::shared_ptr<WatchChannel> WatchHub::open(WatchRequest request) {
  auto channel = std::make_shared<WatchChannel>(executor_);
  auto name = request.selection.fields.demand("/metadata/name");
  auto watch = std::make_shared<Watch>(Watch{std::move(request), std::move(name), channel});
  const WatchRequest& wanted = watch->request;
  if (wanted.after && *wanted.after < world_.store.history_start()) {
    StatusBody lost = expired_list();
    lost.message = fmt::format("too old resource version: {} ({})", *wanted.after, world_.store.history_start());
    send(*channel, fmt::format("{{\"type\":\"ERROR\",\"object\":{}}}\n", lost.json()));
    channel->end = WatchChannel::End::proper;
    return channel;
  }
  if (wanted.after) {
    const std::deque<Change>& history = world_.store.history();
    const auto older = [](std::uint64_t revision, const Change& change) { return revision < change.revision; };
    for (auto change = std::upper_bound(history.begin(), history.end(), *wanted.after, older); change != history.end();
         ++change)
      offer(*watch, *change);
  } else {
    for (const Object& object : world_.store.select(wanted.selection)) send_object(*channel, "ADDED", object);
    if (wanted.initial_events_end && wanted.bookmarks) send_bookmark(*watch, *channel, true);
  }
  watches_.push_back(watch);

  const TimePoint end = world_.now() + wanted.timeout;
  world_.agenda.at(end, [watch] {
    const auto open = watch->channel.lock();
    if (!open || open->end != WatchChannel::End::open || watch->silent) return;
    open->end = WatchChannel::End::proper;
    open->changed.notify();
  });
  if (wanted.bookmarks) plan_bookmark(watch, end);
  return channel;
}

void WatchHub::plan_bookmark(const std::shared_ptr<Watch>& watch, TimePoint end) {
  // A bookmark is sent every `bookmark_every`, and once about 2 s before the end of the watch (measured on a real
  // server).
  const TimePoint last = end - std::chrono::seconds(2);
  if (world_.now() >= last) return;
  world_.agenda.at(std::min(world_.now() + world_.timing.bookmark_every, last), [this, watch, end] {
    const auto channel = watch->channel.lock();
    if (!channel || channel->end != WatchChannel::End::open) return;
    const bool passed = !watch->request.after || world_.store.revision() >= *watch->request.after;
    if (!watch->silent && passed) send_bookmark(*watch, *channel, false);
    plan_bookmark(watch, end);
  });
}

void WatchHub::forget_closed() {
  if (watches_.size() <= many_) return;
  std::erase_if(watches_, [](const auto& watch) {
    const auto channel = watch->channel.lock();
    return !channel || channel->end != WatchChannel::End::open;
  });
  constexpr std::size_t few = 16;
  many_ = 2 * watches_.size() + few;
}

void WatchHub::on_change(const Change& change) {
  forget_closed();
  for (const auto& watch : watches_) offer(*watch, change);
}

void WatchHub::offer(const Watch& watch, const Change& change) {
  const WatchRequest& request = watch.request;
  if (watch.silent || change.key.resource != request.selection.resource) return;
  if (watch.name && *watch.name != change.key.name) return;
  if (request.after && change.revision <= *request.after) return;
  const auto channel = watch.channel.lock();
  if (!channel || channel->end != WatchChannel::End::open) return;
  const bool matches = change.type != ChangeType::deleted && request.selection.matches(*change.object);
  const bool matched = change.before && request.selection.matches(*change.before);
  if (matches) {
    send_object(*channel, matched ? "MODIFIED" : "ADDED", change.object);
  } else if (matched) {
    // The object does not match the selectors any more. The event has its last matching state, with the revision of the
    // change.
    Json last = *change.before;
    last["metadata"]["resourceVersion"] = std::to_string(change.revision);
    send_object(*channel, "DELETED", object_from(std::move(last)));
  }
}

void WatchHub::end_all(WatchChannel::End how) {
  for (const auto& watch : watches_) {
    const auto channel = watch->channel.lock();
    if (!channel || channel->end != WatchChannel::End::open) continue;
    if (watch->silent && how == WatchChannel::End::proper) continue;
    channel->end = how;
    channel->changed.notify();
  }
  watches_.clear();
}

void WatchHub::silence_all() {
  for (const auto& watch : watches_) watch->silent = true;
}

std::size_t WatchHub::open_watches() const {
  return static_cast<std::size_t>(std::count_if(watches_.begin(), watches_.end(), [](const auto& watch) {
    const auto channel = watch->channel.lock();
    return channel && channel->end == WatchChannel::End::open;
  }));
}

}  // namespace haulout::sim
