#include "k8s/reflector.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "base/scope_exit.hpp"
#include "k8s/list_budget.hpp"
#include "k8s/status.hpp"

namespace haulout::k8s {
namespace asio = boost::asio;

namespace {

constexpr std::size_t longest_refusal = std::size_t{64} * 1024;
constexpr Duration refusal_timeout = std::chrono::seconds(10);

// Reads the body of a response that is not a stream of watch events. Such a body is short; at most `longest_refusal`
// bytes and one chunk are read.
Task<std::string> read_refusal(http::BodyStream& stream, TimePoint deadline) {
  std::string body;
  while (body.size() < longest_refusal) {
    CO_TRY(const auto bytes, co_await stream.read_some(deadline));
    if (bytes.empty()) break;
    body += bytes;
  }
  co_return body;
}

// Returns the error that the head of the response means, or nullopt if watch events follow.
asio::awaitable<std::optional<Error>> refusal_of(http::BodyStream& stream, Clock& clock) {
  const auto& head = stream.head();
  auto refusal = failure_of(head, "", clock.wall_now());
  if (!refusal || refusal->code() != Errc::status) co_return refusal;
  const auto body = co_await read_refusal(stream, clock.now() + refusal_timeout);
  if (body) refusal = failure_of(head, *body, clock.wall_now());
  co_return refusal;
}

bool blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

template <class T>
Reflector<T>::Reflector(Client& client, Rng& rng, ReflectorOptions options, OnChange on_change, OnBatch on_batch)
    : client_(client),
      rng_(rng),
      options_(std::move(options)),
      store_(std::move(on_change)),
      on_batch_(std::move(on_batch)) {}

template <class T>
void Reflector<T>::seed(List<T> list) {
  replace_all(std::move(list));
}

template <class T>
Task<> Reflector<T>::run() {
  WatchPacing pacing(options_.backoff);
  auto next = health_.synced ? WatchStep::Kind::watch : WatchStep::Kind::list;
  for (;;) {
    if (next == WatchStep::Kind::list) CO_CHECK(co_await relist());
    if (next == WatchStep::Kind::poll) co_await poll();
    auto end = co_await watch_once();
    const auto step = pacing.after(end, now(), rng_);
    next = step.kind;
    if (!end.error && step.delay > Duration::zero()) end.error = Error(Errc::reset, "the server ended the watch early");
    disconnected(std::move(end.error));
    co_await pause(step.delay);
  }
}

template <class T>
asio::awaitable<void> Reflector<T>::run_for_good(Duration longest_pause) {
  Backoff backoff({std::chrono::seconds(1), 2.0, longest_pause, BackoffOptions::Jitter::equal});
  for (;;) {
    const auto gave_up = co_await run();
    co_await pause(backoff.next(rng_, gave_up.error().retry_after));
  }
}

template <class T>
asio::awaitable<void> Reflector<T>::pause(Duration delay) {
  if (delay > Duration::zero()) co_await client_.clock().sleep_until(now() + delay);
}

template <class T>
Task<List<T>> Reflector<T>::list() {
  ListOptions list_options;
  list_options.ns = options_.ns;
  list_options.field_selector = options_.field_selector;
  list_options.label_selector = options_.label_selector;
  list_options.limit = options_.page_size;
  return client_.list<T>(std::move(list_options), TimePoint::max(), options_.page_timeout, store_.wanted());
}

template <class T>
Task<> Reflector<T>::list_once() {
  const TimePoint asked = now();
  CO_TRY(auto listed, co_await list());
  list_asked_ = asked;
  replace_all(std::move(listed));
  list_asked_.reset();
  co_return Result<>();
}

template <class T>
Task<bool> Reflector<T>::look_again() {
  const TimePoint asked = now();
  const std::uint64_t lists = lists_;
  const std::string place = resource_version_;
  const typename ObjectStore<T>::Listening listening(store_);
  CO_TRY(auto listed, co_await list());
  // Another list has replaced the view meanwhile. It has revealed lost events as well, so this list is not used.
  if (lists != lists_) co_return false;
  if (resource_version_ == place) resource_version_ = listed.meta.resource_version;
  list_asked_ = asked;
  store_.overlay(std::move(listed.items));
  told_of_list();
  list_asked_.reset();
  co_return true;
}

template <class T>
Task<> Reflector<T>::relist() {
  ListPacing pacing(options_.backoff);
  if (health_.synced) ++health_.relists;
  for (;;) {
    auto listed = co_await list_once();
    if (listed) co_return Result<>();
    const auto delay = pacing.after(listed.error(), health_.synced, now(), rng_);
    if (!delay) co_return std::move(listed).error();
    disconnected(std::move(listed).error());
    co_await pause(*delay);
  }
}

template <class T>
asio::awaitable<void> Reflector<T>::poll() {
  health_.polling = true;
  const auto until = saturating_add(now(), options_.watch_retry);
  ListPacing pacing(options_.backoff);
  const auto fifth = options_.poll_interval / 5;
  while (now() < until) {
    auto listed = co_await list_once();
    auto delay = rng_.between(options_.poll_interval - fifth, options_.poll_interval + fifth);
    if (listed) {
      pacing = ListPacing(options_.backoff);
      connected();
    } else {
      delay = std::max(delay, *pacing.after(listed.error(), true, now(), rng_));
      disconnected(std::move(listed).error());
    }
    co_await pause(delay);
  }
}

template <class T>
asio::awaitable<WatchEnd> Reflector<T>::watch_once() {
  using std::chrono::seconds;
  const Duration longest = options_.watch_timeout;
  const auto timeout = std::chrono::floor<seconds>(rng_.between(longest - longest / 5, longest));
  const WatchOptions watch_options{options_.field_selector, resource_version_, std::max(timeout, seconds(1)),
                                   options_.label_selector, options_.ns};
  auto request = watch<T>(watch_options);
  auto stream = co_await client_.transport().open(std::move(request), now() + options_.head_timeout);
  if (!stream) co_return WatchEnd{false, {}, std::move(stream).error(), false};
  auto refusal = co_await refusal_of(**stream, client_.clock());
  if (refusal) co_return WatchEnd{false, {}, std::move(refusal), false};

  const auto opened_at = now();
  if (opened_before_) ++health_.reconnects;
  opened_before_ = true;
  health_.polling = false;
  health_.last_heard = opened_at;
  connected();
  auto end = co_await follow(**stream, opened_at + watch_options.timeout + options_.idle_margin);
  end.opened = true;
  end.lived = now() - opened_at;
  co_return end;
}

template <class T>
asio::awaitable<WatchEnd> Reflector<T>::follow(http::BodyStream& stream, TimePoint end_expected) {
  const auto executor = co_await asio::this_coro::executor;
  LineSplitter lines;
  const ScopeExit stop_reading([this] {
    gathered_.reset();
    stream_ = nullptr;
  });
  stream_ = &stream;
  for (;;) {
    const auto deadline = std::min(end_expected, saturating_add(now(), options_.silence_limit));
    auto bytes = co_await stream.read_some(deadline);
    WatchEnd end;
    if (!bytes) {
      end.silent = bytes.error().code() == Errc::timeout;
      end.error = std::move(bytes).error();
      co_return end;
    }
    // An incomplete line at the end of the stream is lost. The next watch begins after the last complete line.
    if (bytes->empty()) co_return end;
    health_.last_heard = now();
    auto applied = apply_bytes(lines, *bytes);
    if (store_.take_news()) on_batch_();
    if (!applied) {
      end.error = std::move(applied).error();
      co_return end;
    }
    gather(executor);
  }
}

template <class T>
void Reflector<T>::gather(asio::any_io_executor executor) {
  gathered_.reset();
  const TimePoint until = options_.gather_until ? options_.gather_until() : TimePoint::min();
  if (until <= now() || !stream_->hold_back()) return;
  gathered_ = client_.clock().set_alarm(executor, until, [this] { read_on(); });
}

template <class T>
void Reflector<T>::read_on() {
  if (stream_) stream_->read_on();
}

template <class T>
Result<> Reflector<T>::apply_bytes(LineSplitter& lines, std::string_view bytes) {
  lines.feed(bytes);
  while (const auto line = lines.next()) {
    if (blank(*line)) continue;
    auto applied = apply_line(*line);
    if (!applied) return applied;
  }
  if (lines.overlong())
    return Error(Errc::decode, fmt::format("a watch event is longer than the limit of {} bytes", longest_answer));
  return {};
}

template <class T>
Result<> Reflector<T>::apply_line(std::string_view line) {
  auto event = decode_watch_event<T>(line);
  if (!event) return std::move(event).error();
  // For a deleted object only its identity is read. Its fields were checked when it was added.
  if (event->type == WatchEventType::added || event->type == WatchEventType::modified) {
    auto checked = check_selected(options_.field_selector, event->object);
    if (!checked) return checked;
  }
  store_.heard_of(event->object.uid);
  switch (event->type) {
    case WatchEventType::error: return std::move(event->error);
    case WatchEventType::bookmark: break;
    case WatchEventType::deleted: store_.erase(event->object.uid, event->resource_version); break;
    case WatchEventType::added:
    case WatchEventType::modified: store_.put(std::move(event->object)); break;
  }
  resource_version_ = std::move(event->resource_version);
  // After this error the Reflector lists. That list is too long as well, and its error message names the objects that
  // are the cause.
  const ListSize size{store_.objects().size(), 0, 0, store_.memory()};
  if (const auto limit = client_.excess_of(Kind<T>::budget, size))
    return Error(Errc::decode, fmt::format("the watch reports more objects than the limit of {}", *limit));
  return {};
}

template <class T>
void Reflector<T>::replace_all(List<T> list) {
  store_.replace(std::move(list.items));
  resource_version_ = std::move(list.meta.resource_version);
  health_.synced = true;
  told_of_list();
}

template <class T>
void Reflector<T>::told_of_list() {
  ++lists_;
  health_.last_heard = now();
  store_.take_news();
  on_batch_();
}

template <class T>
void Reflector<T>::connected() {
  health_.connected = true;
  health_.error.reset();
  on_batch_();
}

template <class T>
void Reflector<T>::disconnected(std::optional<Error> error) {
  health_.connected = false;
  if (error) health_.error = std::move(error);
  on_batch_();
}

template class Reflector<Pod>;
template class Reflector<Replica>;
template class Reflector<Node>;
template class Reflector<PodDisruptionBudget>;
template class Reflector<VolumeAttachment>;
template class Reflector<Lease>;
template class Reflector<ConfigMap>;
template class Reflector<EvictionRequest>;
template class Reflector<EvictionProcess>;

}  // namespace haulout::k8s
