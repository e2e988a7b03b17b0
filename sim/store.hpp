// The storage behind the API: every object by resource, namespace and name, one strictly increasing revision for all of
// them, and the history that watches are served from.
//
// Listeners are called inside the change, in the order they were added; they only take note and must not change the
// store. One thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "retry/rng.hpp"
#include "sim/index.hpp"
#include "sim/selectors.hpp"

namespace haulout::sim {

enum class ChangeType { added, modified, deleted };

struct Change {
  ChangeType type;
  std::uint64_t revision;
  TimePoint time;
  Key key;
  Object object;  // for deleted: the last state, carrying the revision of the deletion
  Object before;  // null for added
  // The storage as a whole became an older one: this is the difference that everybody finds who lists anew.
  bool restored = false;
};

class Store {
 public:
  Store(Clock& clock, Rng& rng) : clock_(clock), rng_(rng) {}

  Object get(const Key& key) const;
  // Sorted by namespace and name; an empty namespace means all.
  std::vector<Object> list(std::string_view resource, std::string_view ns = {}) const;
  // Of these, those which the index has under that value.
  std::vector<Object> list(std::string_view resource, std::string_view ns, By by, const std::string& value) const;
  // Of these, those that match.
  std::vector<Object> select(const Selection& selection) const;
  // How many objects have been given out by these three so far: what somebody has looked at.
  std::uint64_t listed() const { return listed_; }

  // Fills in uid, creationTimestamp, resourceVersion and generation unless they are there. Null if the name is taken.
  Object create(std::string_view resource, Json object);
  // Stores the new state under the next revision; a state equal to the old one is no write. Null if there is no such
  // object. An object that is terminating with a grace period of 0 and has just lost its last finalizer is removed.
  Object update(const Key& key, Json object);
  // Reads, changes, stores.
  Object modify(const Key& key, const std::function<void(Json&)>& change);
  Object remove(const Key& key);

  std::uint64_t revision() const { return revision_; }
  std::string new_uid();

  // History, oldest first; nothing at or below history_start() is kept.
  const std::deque<Change>& history() const { return history_; }
  std::uint64_t history_start() const { return history_start_; }
  void forget_history() {
    history_.clear();
    history_start_ = revision_;
  }
  // An etcd restored from an older backup: the state of that revision, which must still be in the history. Listeners
  // are told of each object that is another one now; no history has that.
  void restore(std::uint64_t revision);

  void listen(std::function<void(const Change&)> listener) { listeners_.push_back(std::move(listener)); }

  Clock& clock() const { return clock_; }
  Rng& rng() const { return rng_; }

 private:
  std::vector<Object> in(const Index::Objects& objects, std::string_view resource, std::string_view ns) const;
  // Whatever matches is among these.
  std::vector<Object> candidates(const Selection& selection) const;
  void put(const Key& key, const Object& before, const Object& after);
  void record(ChangeType type, Key key, Object object, Object before);
  void tell_restored(const Key& key, const Object& before, const Object& now);

  static constexpr std::size_t longest_history = 20'000;
  Clock& clock_;
  Rng& rng_;
  std::uint64_t revision_ = 100;  // a cluster is never empty: revision 0 and 1 have meanings of their own
  Index::Objects objects_;
  Index index_;
  mutable std::uint64_t listed_ = 0;
  std::deque<Change> history_;
  std::uint64_t history_start_ = 100;
  std::vector<std::function<void(const Change&)>> listeners_;
};

}  // namespace haulout::sim
