// Stores the objects of one collection by UID. A Reflector fills it from watch events and lists. Calls `on_change(uid,
// object)` for every change at once, with nullptr for a deletion. `on_change` must not change the store. Keeps at most
// one object of each name: a new object of the same name replaces the old one, even if there was no watch event for the
// deletion of the old one.
//
// The store remembers recent deletions. It ignores a watch event about a deleted object unless the event's
// resourceVersion is newer than the deletion: then the object had only stopped matching the label selector. It forgets
// the deletion when a list contains the object again (after an etcd was restored from a backup). No I/O, no clock;
// nothing fails.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace haulout::k8s {

template <class T>
class ObjectStore {
  using Objects = std::map<std::string, T>;

 public:
  using OnChange = std::function<void(const std::string& uid, const T* object)>;
  explicit ObjectStore(OnChange on_change) : on_change_(std::move(on_change)) {}

  // Sets a filter: only objects for which `wanted` returns true are kept and passed to `on_change`.
  void keep_only(std::function<bool(const T&)> wanted) { wanted_ = std::move(wanted); }
  // Returns the filter. Unset: all objects are kept.
  const std::function<bool(const T&)>& wanted() const { return wanted_; }

  // Apply watch events: put() those of type added and modified, erase() those of type deleted.
  void put(T object);
  void erase(const std::string& uid, const std::string& resource_version);
  // Records, during a Listening, that a watch event of any type was about this object.
  void heard_of(const std::string& uid);

  // While an instance exists, the store records the UIDs of objects in watch events. Such an event may be newer than a
  // list that is requested during this time, so overlay() does not take these objects from the list.
  class Listening {
   public:
    explicit Listening(ObjectStore& store) : store_(store) {
      if (store_.listening_++ == 0) store_.heard_.clear();
    }
    ~Listening() { --store_.listening_; }
    Listening(const Listening&) = delete;
    Listening& operator=(const Listening&) = delete;

   private:
    ObjectStore& store_;
  };

  // Replaces the whole content with a list, and forgets all deletions.
  void replace(std::vector<T> listed);
  // Replaces the content with a list that was requested during the life of a Listening. Objects that have appeared in
  // watch events since the Listening began stay as they are in the store. Passes every other object of the list to
  // `on_change`, also unchanged ones, because what the owner of the store knows of them from other sources may be
  // outdated.
  void overlay(std::vector<T> listed);

  const Objects& objects() const { return objects_; }
  // Returns the approximate memory of the objects in bytes (list_budget.hpp).
  std::size_t memory() const { return memory_; }
  // Returns whether anything has changed since the last call.
  bool take_news() { return std::exchange(news_, false); }

 private:
  enum class Tell { changes, all };
  using Name = std::pair<std::string_view, std::string_view>;  // name and namespace
  using Place = typename Objects::const_iterator;
  struct HashOfName {
    using is_transparent = void;
    std::size_t operator()(const Name& name) const { return std::hash<std::string_view>()(name.first); }
    std::size_t operator()(Place one) const;
  };
  struct EqualNames {
    using is_transparent = void;
    bool operator()(Place one, Place other) const;
    bool operator()(Place one, const Name& name) const;
    bool operator()(const Name& name, Place one) const { return (*this)(one, name); }
  };
  void take_over(std::vector<T> listed, const std::set<std::string>& but, Tell tell);
  void keep(T object, Tell tell);
  void drop(const std::string& uid);
  void drop_namesakes(const T& object);
  void forget_name(Place known);

  OnChange on_change_;
  std::function<bool(const T&)> wanted_;
  Objects objects_;
  std::size_t memory_ = 0;
  std::unordered_multiset<Place, HashOfName, EqualNames> names_;  // all objects, found by name
  std::unordered_map<std::string, std::string> deleted_;  // recent deletions: UID → resourceVersion of the deletion
  std::set<std::string> heard_;                           // UIDs in watch events during a Listening
  unsigned listening_ = 0;
  bool news_ = false;
};

}  // namespace haulout::k8s
