// The open watches of the simulated API server. The hub first sends a watch the changes since its resourceVersion, from
// the history of the store, then every change, bookmarks and its end, one JSON line at a time. A watch exists as long
// as its reader keeps the channel. Borrows the world. No I/O; nothing fails.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "retry/notifier.hpp"
#include "sim/objects.hpp"
#include "sim/store.hpp"
#include "sim/texts.hpp"
#include "sim/world.hpp"

namespace haulout::sim {

// The reader's side of a watch: the lines that the server has sent and the reader has not read yet.
struct WatchChannel {
  explicit WatchChannel(boost::asio::any_io_executor executor) : changed(executor) {}
  enum class End { open, proper, reset };

  std::deque<std::pair<TimePoint, std::string>> lines;  // watch events as JSON lines, with their times of arrival
  TimePoint last_arrival{};
  End end = End::open;
  Notifier changed;
};

struct WatchRequest {
  Selection selection;
  // The resourceVersion after which the watch continues. Unset: the watch begins with all objects that exist.
  std::optional<std::uint64_t> after;
  bool bookmarks = false;
  bool initial_events_end = false;  // true for sendInitialEvents: a bookmark follows after the objects that exist
  std::chrono::seconds timeout{1800};
};

class WatchHub {
 public:
  // Borrows `texts`, the cache of whole objects.
  WatchHub(World& world, Texts& texts, boost::asio::any_io_executor executor);

  // Opens a watch. If its resourceVersion is too old, the channel contains only an ERROR event (410) and its end.
  std::shared_ptr<WatchChannel> open(WatchRequest request);

  // Ends all open watches: properly, or with a reset. A silenced watch receives only a reset.
  void end_all(WatchChannel::End how);
  // From now on, the open watches deliver nothing, as if the network dropped their packets. They stay open until they
  // are reset or their readers drop them.
  void silence_all();
  // Delays watch events: none arrives before `when`, as if the watch cache were behind the storage. Lists are not
  // delayed.
  void lag_until(TimePoint when) { behind_until_ = when; }
  std::size_t open_watches() const;

 private:
  struct Watch {
    WatchRequest request;
    std::optional<std::string> name;  // the name that the field selector requires, if it selects one object
    std::weak_ptr<WatchChannel> channel;
    bool silent = false;
  };

  void on_change(const Change& change);
  void forget_closed();
  void offer(const Watch& watch, const Change& change);
  void send(WatchChannel& channel, std::string line);
  void send_object(WatchChannel& channel, std::string_view type, const Object& object);
  void send_bookmark(const Watch& watch, WatchChannel& channel, bool initial_events_end);
  void plan_bookmark(const std::shared_ptr<Watch>& watch, TimePoint end);

  World& world_;
  Texts& texts_;
  boost::asio::any_io_executor executor_;
  std::deque<std::shared_ptr<Watch>> watches_;  // also some that are closed
  std::size_t many_ = 0;                        // with more watches than this, the closed ones are removed
  TimePoint behind_until_{};
};

}  // namespace haulout::sim
