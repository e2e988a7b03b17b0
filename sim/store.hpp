// The storage of the simulated API server: every object by resource, namespace and name, one strictly increasing
// revision for all objects, and the history of changes from which watches are served. Also the field selectors, by
// which a request selects objects, and the selection of objects by fields and labels. No I/O.
//
// The store calls its listeners during each change, in the order in which they were added. A listener may only record
// the change; it must not change the store. Single-threaded.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "placement/selector.hpp"
#include "retry/rng.hpp"
#include "sim/objects.hpp"

namespace haulout::sim {

using placement::Selector;

// The query option ?fieldSelector=. As in the API, it compares fields only for equality or inequality.
class FieldSelector {
 public:
  // Parses the selector. If it is invalid, returns nullopt and sets *problem to the real server's message.
  static std::optional<FieldSelector> parse(std::string_view text, const ResourceInfo& info, std::string* problem);
  bool matches(const Json& object) const;
  bool is_empty() const { return terms_.empty(); }
  // Returns the value that the field at the JSON pointer must have; nullopt if the selector requires none.
  std::optional<std::string> demand(std::string_view pointer) const;

 private:
  struct Term {
    std::string pointer;
    std::string value;
    bool negated;
  };
  std::vector<Term> terms_;
};

// The objects that a list or watch selects.
struct Selection {
  std::string resource;
  std::string ns;
  Selector labels = Selector::from_object(Json::object());
  FieldSelector fields;
  bool narrowed = false;  // true if there is a field or label selector

  // Returns true if the selection is the whole resource or, with `ns`, the resource's objects of that namespace.
  bool is_whole() const { return labels.matches_everything() && fields.is_empty(); }
  bool matches(const Json& object) const {
    return (ns.empty() || is_text(object, "/metadata/namespace", ns)) && labels.matches(object) &&
           fields.matches(object);
  }
};

// The searches that the index of the store supports. The comment of each enumerator gives the form of the searched
// value, and the kinds of objects that the search finds.
enum class By {
  label,       // "key=value": all objects, each under every of its labels
  controller,  // UID of the controlling owner; empty if there is none: pods, ReplicaSets
  node,        // spec.nodeName; empty finds the unbound pods: pods
  claim,       // name of a mounted PersistentVolumeClaim: pods
  disrupted,   // "True": pods whose condition DisruptionTarget is True
  // One "key=value" that the selector demands; empty if it demands none: PodDisruptionBudgets.
  demand,
  claim_ref,  // "namespace/name" of the claim in spec.claimRef: PersistentVolumes
  volume,     // name of the attached PersistentVolume: VolumeAttachments
};

std::string label_term(const std::string& key, const std::string& value);

// All objects, ordered by resource, namespace and name. The addresses of the entries do not change.
using Objects = std::map<Key, Object>;

// Secondary index of the objects in the store, updated with every write. With it, a search by label, controller, node
// and the like reads only the objects that it returns. It refers to the entries of the store, so a write that changes
// nothing of what it knows changes nothing here.
class Index {
 public:
  using Entry = Objects::value_type;
  // Some labels have thousands of objects, so these are in no order: a write would have to search among their keys.
  struct Found {
    std::map<std::string, std::unordered_set<const Entry*>, std::less<>> by_namespace;
    std::size_t size = 0;
  };

  // Updates the index for a write that replaces `before` with `after`. `before` is null for a new object, `after` for a
  // deleted one. `entry` has the key of the object; the index refers to it until the object is deleted.
  void change(const Entry& entry, const Object& before, const Object& after);
  const Found& find(By by, const std::string& value) const;

 private:
  using Term = std::pair<By, std::string>;
  struct HashOfTerm {
    std::size_t operator()(const Term& term) const {
      return std::hash<std::string>()(term.second) + static_cast<std::size_t>(term.first);
    }
  };
  static std::vector<Term> terms_of(const Key& key, const Object& object);

  std::unordered_map<Term, Found, HashOfTerm> found_;
};

enum class ChangeType { added, modified, deleted };

// One write to the store.
struct Change {
  ChangeType type;
  std::uint64_t revision;
  TimePoint time;
  Key key;
  Object object;  // state after the change; if deleted, the last state, with the revision of the deletion
  Object before;  // state before the change; null if added
  // True if the change comes from a simulated restore of etcd (Store::restore()): clients find the difference only when
  // they list again.
  bool restored = false;
};

class Store {
 public:
  Store(Clock& clock, Rng& rng) : clock_(clock), rng_(rng) {}

  Object get(const Key& key) const;
  // Returns the objects of the resource, sorted by namespace and name. An empty namespace means all namespaces.
  std::vector<Object> list(std::string_view resource, std::string_view ns = {}) const;
  // Like list(resource, ns), but returns only the objects that the index has under `value`.
  std::vector<Object> list(std::string_view resource, std::string_view ns, By by, const std::string& value) const;
  // Like list(resource, ns), but returns only objects that match the selection.
  std::vector<Object> select(const Selection& selection) const;
  // Returns the number of objects that list() and select() have returned or examined so far, as a measure of work.
  std::uint64_t listed() const { return listed_; }

  // Stores a new object. Adds uid, creationTimestamp and generation if they are absent, and sets resourceVersion.
  // Returns null if an object with this name exists.
  Object create(std::string_view resource, Json object);
  // Stores the new state under the next revision. Writes nothing if the new state is equal to the old one. Returns null
  // if the object does not exist. If the object is terminating with a grace period of 0 and the new state has no
  // finalizers any more, removes it instead.
  Object update(const Key& key, Json object);
  // Reads the object, applies `change` and stores the result, as update() does.
  Object modify(const Key& key, const std::function<void(Json&)>& change);
  Object remove(const Key& key);

  std::uint64_t revision() const { return revision_; }
  std::string new_uid();

  // Returns the changes that watches can still deliver, oldest first: those after the revision history_start().
  const std::deque<Change>& history() const { return history_; }
  std::uint64_t history_start() const { return history_start_; }
  // From now on, more than `changes` are kept only while they are younger than `age`. For long simulations: what is
  // kept long is not in the processor's caches any more when it is freed. A watch that gets bookmarks more often than
  // once in `age` notices no difference.
  void limit_history(std::size_t changes, Duration age) {
    enough_history_ = changes;
    history_age_ = age;
  }
  void forget_history() {
    history_.clear();
    history_start_ = revision_;
  }
  // Simulates an etcd that was restored from an older backup: sets the state back to `revision`, which must still be in
  // the history. Listeners get a `restored` change for each object that differs. The history is empty afterwards.
  void restore(std::uint64_t revision);

  void listen(std::function<void(const Change&)> listener) { listeners_.push_back(std::move(listener)); }

  Clock& clock() const { return clock_; }
  Rng& rng() const { return rng_; }

 private:
  std::vector<Object> in(const Index::Found& found, std::string_view resource, std::string_view ns) const;
  // Returns a superset of the objects that match the selection, found through the index.
  std::vector<Object> candidates(const Selection& selection) const;
  void put(const Key& key, const Object& before, const Object& after);
  void record(ChangeType type, Key key, Object object, Object before);
  void tell_restored(const Key& key, const Object& before, const Object& now);

  static constexpr std::size_t longest_history = 20'000;
  struct HashOfPlace {
    std::size_t operator()(const Key* key) const { return HashOfKey()(*key); }
  };
  struct SameKey {
    bool operator()(const Key* one, const Key* other) const { return *one == *other; }
  };
  Clock& clock_;
  Rng& rng_;
  std::uint64_t revision_ = 100;  // a real cluster always has objects, and revisions 0 and 1 have special meanings
  Objects objects_;
  // The entries of `objects_`, by their keys. Most reads are of one object, and a search in the ordered map compares
  // many long keys.
  std::unordered_map<const Key*, Objects::iterator, HashOfPlace, SameKey> entries_;
  Index index_;
  mutable std::uint64_t listed_ = 0;
  std::deque<Change> history_;
  std::uint64_t history_start_ = 100;
  std::size_t enough_history_ = longest_history;
  Duration history_age_ = Duration::max();
  std::vector<std::function<void(const Change&)>> listeners_;
};

}  // namespace haulout::sim
