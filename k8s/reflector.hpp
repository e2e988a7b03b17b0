// Maintains a view of one collection: lists it, then watches it for ever, and lists it again if the watch cannot be
// continued from its resourceVersion.
//
// The view (`objects`, by UID) is always a state that the server really had, never older than the last list. Calls
// `on_change(uid, object)` for every change, with nullptr for a deletion. If the watch missed a deletion, the next list
// reveals it. After lost connections, incomplete lines, silence, 410 and throttling it tries again with jittered
// backoff. If the watch is forbidden, the Reflector lists every 5 s ± 20 % instead, and tries the watch again every
// five minutes. A response with objects that the field selector does not select is an error, and none of it is used.
//
// run() returns only if the first list fails with an error that no retry can resolve (401, 403 twice, not found, not
// Kubernetes), or by cancellation. After a first list it tries again for ever: health().error has the current error,
// and the caller decides whether to cancel run(). Callbacks run synchronously and must not destroy the Reflector.
// Borrows client and rng.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "k8s/client.hpp"
#include "k8s/list_budget.hpp"
#include "k8s/object_store.hpp"
#include "k8s/watch_pacing.hpp"
#include "retry/backoff.hpp"
#include "retry/rng.hpp"

namespace haulout::k8s {

// Splits the bytes of a watch into lines. Only '\n' ends a line, because chunks and TLS records can end anywhere. No
// I/O; nothing fails.
class LineSplitter {
 public:
  // Limit of a line in bytes. A line is one watch event with one object, and no object is longer than a response may
  // be.
  static constexpr std::size_t default_limit = longest_answer;

  explicit LineSplitter(std::size_t limit = default_limit) : limit_(limit) {}

  void feed(std::string_view bytes);
  // Returns the next complete line without its '\n', valid until the next feed(). Returns nullopt if there is none: the
  // bytes after the last '\n' stay in the buffer.
  std::optional<std::string_view> next();
  // Returns true if the incomplete line is longer than the limit. Call it after next() has returned nullopt.
  bool overlong() const { return buffer_.size() - begin_ > limit_; }

 private:
  std::size_t limit_;
  std::string buffer_;
  std::size_t begin_ = 0;    // start of the line that next() returns
  std::size_t scanned_ = 0;  // there is no '\n' between begin_ and here
};

inline void LineSplitter::feed(std::string_view bytes) {
  buffer_.erase(0, begin_);
  scanned_ -= begin_;
  begin_ = 0;
  buffer_.append(bytes);
}

inline std::optional<std::string_view> LineSplitter::next() {
  const auto end = buffer_.find('\n', scanned_);
  if (end == std::string::npos) {
    scanned_ = buffer_.size();
    return std::nullopt;
  }
  const auto line = std::string_view(buffer_).substr(begin_, end - begin_);
  begin_ = scanned_ = end + 1;
  return line;
}

// How current the view is.
struct ReflectorHealth {
  bool synced = false;        // a list has been received
  bool connected = false;     // the watch is open (or, when polling, the last list succeeded)
  bool polling = false;       // watching is forbidden; the Reflector lists instead
  TimePoint last_heard{};     // time of the last bytes or list from the server
  std::uint64_t relists = 0;  // number of lists after the first, without polls
  std::uint64_t reconnects = 0;
  std::optional<Error> error;  // why the Reflector is not connected; unset while it is connected
};

struct ReflectorOptions {
  std::string field_selector;
  std::string label_selector{};
  std::string ns{};  // empty: all namespaces
  std::uint32_t page_size = 500;
  std::chrono::seconds watch_timeout{290};  // requested from the server, with a jitter of -20 % … 0
  // If a watch lasts this much longer than requested, its connection counts as dead.
  Duration idle_margin = std::chrono::seconds(10);
  // If nothing is received for this long, the connection counts as dead. Bookmarks come every 60 s (measured).
  Duration silence_limit = std::chrono::seconds(100);
  Duration poll_interval = std::chrono::seconds(5);
  Duration watch_retry = std::chrono::minutes(5);  // while polling: interval at which the watch is tried again
  Duration page_timeout = longest_page;
  Duration head_timeout = std::chrono::seconds(30);
  // Called after each batch of watch events. Returns the time at which to read the next ones, unless read_on() is
  // called or many bytes arrive earlier. A later time gathers more events per wake-up, but the view is older. Unset:
  // events are read as soon as they arrive.
  std::function<TimePoint()> gather_until{};
  // The values are those of client-go's reflector.
  BackoffOptions backoff{std::chrono::milliseconds(800), 2.0, std::chrono::seconds(30), BackoffOptions::Jitter::full};
};

template <class T>
class Reflector {
 public:
  using OnChange = typename ObjectStore<T>::OnChange;
  // Called after each batch of changes and after each change of health.
  using OnBatch = std::function<void()>;

  Reflector(Client& client, Rng& rng, ReflectorOptions options, OnChange on_change, OnBatch on_batch);

  // Keeps only objects for which `wanted` returns true and passes only those to `on_change`. For collections for which
  // the API has no suitable selector. If `wanted` begins to return true for more objects, those that have not changed
  // since then are missing until the next list (look_again()).
  void keep_only(std::function<bool(const T&)> wanted) { store_.keep_only(std::move(wanted)); }
  // Sets the view to a list that the caller already has, so that run() begins with a watch.
  void seed(List<T> list);
  Task<> run();
  // Calls run(), and calls it again after a pause if it fails. The pause grows up to `longest_pause`. Ends only by
  // cancellation.
  boost::asio::awaitable<void> run_for_good(Duration longest_pause);
  // Ends the wait of `gather_until`, so that the events that have arrived are read now.
  void read_on();
  // Lists once, concurrently with the watch. The watch may have lost events without a sign of it, or may wait for a
  // revision that is hours away (after an etcd was restored from a backup, its revisions start again). The list
  // replaces the view, except for objects that have appeared in watch events since it was requested. If there were no
  // watch events since then, the next watch starts from the list. Every object that is taken from the list is passed to
  // `on_change`, also unchanged ones, because what the owner knows of them from other sources may be outdated. If
  // another list replaces the view in the meantime, this one is not used. Returns whether it was. Call it only after
  // the first list. Fails with the error of the list; the view is then unchanged.
  Task<bool> look_again();

  const std::map<std::string, T>& objects() const { return store_.objects(); }
  const ReflectorHealth& health() const { return health_; }
  // Valid during on_change: the time at which the list that contains the change was requested. Unset for a watch event
  // and for the seed. A list is at least as new as the moment of its request, whereas a watch event may have been
  // delayed.
  std::optional<TimePoint> list_asked() const { return list_asked_; }

 private:
  Task<List<T>> list();
  // Lists once and replaces the view with the list.
  Task<> list_once();
  // Lists until it succeeds, or until an error is final and there is no earlier list.
  Task<> relist();
  // Lists repeatedly until it is time to try the watch.
  boost::asio::awaitable<void> poll();
  boost::asio::awaitable<WatchEnd> watch_once();
  // Reads events until the stream ends or fails.
  boost::asio::awaitable<WatchEnd> follow(http::BodyStream& stream, TimePoint end_expected);
  boost::asio::awaitable<void> pause(Duration delay);
  void gather(boost::asio::any_io_executor executor);

  Result<> apply_bytes(LineSplitter& lines, std::string_view bytes);
  Result<> apply_line(std::string_view line);
  void replace_all(List<T> list);
  void told_of_list();
  void connected();
  void disconnected(std::optional<Error> error);
  TimePoint now() { return client_.clock().now(); }

  Client& client_;
  Rng& rng_;
  ReflectorOptions options_;
  ObjectStore<T> store_;
  OnBatch on_batch_;
  std::string resource_version_;
  ReflectorHealth health_;
  std::optional<TimePoint> list_asked_;  // set while a list replaces the view
  http::BodyStream* stream_ = nullptr;   // the stream of the watch while it is read, otherwise null; borrowed
  std::unique_ptr<Alarm> gathered_;
  std::uint64_t lists_ = 0;  // number of lists that have replaced the view so far
  bool opened_before_ = false;
};

}  // namespace haulout::k8s
