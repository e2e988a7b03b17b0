// A level-triggered view of one collection: list, then watch for ever, relist when the server says the place is lost.
//
// The view (`objects`, by UID) is always a state that the server really had, never older than the last relist. Every
// change is handed to `on_change(uid, object or nullptr)`; objects whose deletion was missed are reported gone by the
// relist. Lost connections, half lines, silence, 410 and throttling are survived with jittered backoff; a watch that is
// forbidden becomes a list every 5 s ± 20 %, and is tried again every five minutes. An answer about objects that the
// field selector does not select is an error like any other, and nothing of it is taken over.
//
// run() returns only by cancellation, or with the error when the very first list is answered by something that no retry
// can heal (401, 403 twice, not found, not Kubernetes). Once synced it never gives up: health().error says what is
// wrong, and the caller decides. Callbacks run in place and must not destroy the Reflector. Borrows client and rng.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "k8s/client.hpp"
#include "k8s/line_splitter.hpp"
#include "k8s/object_store.hpp"
#include "k8s/watch_pacing.hpp"
#include "retry/backoff.hpp"
#include "retry/rng.hpp"

namespace haulout::k8s {

struct ReflectorHealth {
  bool synced = false;        // a list has been taken
  bool connected = false;     // the watch is open (or, when polling, the last list worked)
  bool polling = false;       // watching is forbidden
  TimePoint last_heard{};     // last byte or list from the server
  std::uint64_t relists = 0;  // lists after the first, polls not counted
  std::uint64_t reconnects = 0;
  std::optional<Error> error;  // why not connected
};

struct ReflectorOptions {
  std::string field_selector;
  std::string label_selector{};
  std::string ns{};  // empty: all namespaces
  std::uint32_t page_size = 500;
  std::chrono::seconds watch_timeout{290};          // asked of the server, jittered -20 % … 0
  Duration idle_margin = std::chrono::seconds(10);  // past timeoutSeconds without the end: the connection is dead
  // Bookmarks come every 60 s (measured): silence longer than this is a black hole.
  Duration silence_limit = std::chrono::seconds(100);
  Duration poll_interval = std::chrono::seconds(5);
  Duration watch_retry = std::chrono::minutes(5);  // while polling: is the watch still forbidden?
  Duration page_timeout = longest_page;
  Duration head_timeout = std::chrono::seconds(30);
  // Asked after each batch of events: when to read on, unless read_on() is called before or much has come. The later,
  // the more events come with one wake-up, and the older is the view. Unset: at once.
  std::function<TimePoint()> gather_until{};
  // kube client-go's reflector uses the same figures.
  BackoffOptions backoff{std::chrono::milliseconds(800), 2.0, std::chrono::seconds(30), BackoffOptions::Jitter::full};
};

template <class T>
class Reflector {
 public:
  using OnChange = typename ObjectStore<T>::OnChange;
  // Called after each batch of changes and after each change of health.
  using OnBatch = std::function<void()>;

  Reflector(Client& client, Rng& rng, Resource resource, ReflectorOptions options, OnChange on_change,
            OnBatch on_batch);

  // Only objects that it says yes to are kept and told of; for collections that the server cannot select from.
  void keep_only(std::function<bool(const T&)> wanted) { store_.keep_only(std::move(wanted)); }
  // Takes over a list that the caller has already made.
  void seed(List<T> list);
  Task<> run();
  // run(), and where that gives up once more, after a pause that grows to `longest_pause`. Ends only by cancellation.
  boost::asio::awaitable<void> run_for_good(Duration longest_pause);
  // Now somebody waits for the news that are still being gathered.
  void read_on();
  // Lists once beside the watch, which may have lost events without knowing it, or wait for a revision that is hours
  // away (an etcd restored from a backup counts anew). The list is taken over but for the objects that the watch has
  // told of meanwhile, and where it has told of nothing it is opened again from the list, once it ends. Each
  // object of the list is told, also one that is as it was: what its owner has learnt elsewhere may be undone. Once
  // synced; fails as the list fails, and the view stays as it is.
  Task<> look_again();

  const std::map<std::string, T>& objects() const { return store_.objects(); }
  const ReflectorHealth& health() const { return health_; }
  // During on_change: when the list was asked for that tells of it; unset for an event and for the seed. A list is at
  // least as new as the moment it was asked for, an event may have been under way for long.
  std::optional<TimePoint> list_asked() const { return list_asked_; }

 private:
  Task<List<T>> list();
  // One list, taken over into the view.
  Task<> list_once();
  // Lists until it works, or until it is hopeless and was never synced.
  Task<> relist();
  // Lists again and again until it is time to try the watch.
  boost::asio::awaitable<void> poll();
  boost::asio::awaitable<WatchEnd> watch_once();
  // Reads events until the stream ends, one way or another.
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
  Resource resource_;
  ReflectorOptions options_;
  ObjectStore<T> store_;
  OnBatch on_batch_;
  std::string resource_version_;
  ReflectorHealth health_;
  std::optional<TimePoint> list_asked_;  // while a list is taken over
  http::BodyStream* stream_ = nullptr;   // while events are read
  std::unique_ptr<Alarm> gathered_;
  std::uint64_t lists_ = 0;  // taken over so far
  bool opened_before_ = false;
};

}  // namespace haulout::k8s
