// What a Reflector knows of one collection: its objects by UID, as events and lists tell of them. Every change is
// handed to `on_change(uid, object or nullptr)`, in place; it must not come back to the store with a change of its own.
//
// A name is taken by one object at a time: the one that had it before has vanished, whether or not anybody said so.
// What speaks of one that was deleted comes from after its deletion (the object had only left what a label selects) or
// is a repetition, until a list has it again (an etcd restored from a backup). Knows no clock and no wire; nothing here
// fails.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace haulout::k8s {

template <class T>
class ObjectStore {
  using Objects = std::map<std::string, T>;

 public:
  using OnChange = std::function<void(const std::string& uid, const T* object)>;
  explicit ObjectStore(OnChange on_change) : on_change_(std::move(on_change)) {}

  // Only objects that it says yes to are kept and told of.
  void keep_only(std::function<bool(const T&)> wanted) { wanted_ = std::move(wanted); }
  // Unset: all are.
  const std::function<bool(const T&)>& wanted() const { return wanted_; }

  // Events.
  void put(T object);
  void erase(const std::string& uid, const std::string& resource_version);
  // An event spoke of it, whatever it said.
  void heard_of(const std::string& uid);

  // While one lives, the store remembers whom events speak of: they know more than a list that is being made meanwhile.
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

  // The whole collection, and nothing is known besides.
  void replace(std::vector<T> listed);
  // The whole collection as of a moment in the life of a Listening: but for those that events have spoken of. Each
  // object is told, also one that is as it was: what its owner has learnt elsewhere may be undone.
  void overlay(std::vector<T> listed);

  const Objects& objects() const { return objects_; }
  // What they take, about (list_budget.hpp).
  std::size_t memory() const { return memory_; }
  // Has anything changed since this was asked last?
  bool take_news() { return std::exchange(news_, false); }

 private:
  enum class Tell { changes, all };
  // By name, of those of one name by UID.
  struct ByName {
    using is_transparent = void;
    using Name = std::pair<std::string_view, std::string_view>;
    bool operator()(typename Objects::const_iterator one, typename Objects::const_iterator other) const;
    bool operator()(typename Objects::const_iterator one, const Name& name) const;
    bool operator()(const Name& name, typename Objects::const_iterator one) const;
  };
  void take_over(std::vector<T> listed, const std::set<std::string>& but, Tell tell);
  void keep(T object, Tell tell);
  void drop(const std::string& uid);
  void drop_namesakes(const T& object);

  OnChange on_change_;
  std::function<bool(const T&)> wanted_;
  Objects objects_;
  std::size_t memory_ = 0;
  std::set<typename Objects::const_iterator, ByName> names_;  // of all objects
  std::map<std::string, std::string> deleted_;                // lately: the resourceVersion of the deletion
  std::set<std::string> heard_;                               // while listening
  unsigned listening_ = 0;
  bool news_ = false;
};

}  // namespace haulout::k8s
