// The lists of the simulated API server, in pages, and the parsing of watch requests: selectors, resourceVersion and
// limits have the same meaning as in kube-apiserver. No I/O.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/call.hpp"
#include "sim/texts.hpp"
#include "sim/watch_hub.hpp"

namespace haulout::sim {

// The namespaces that have objects, by all changes of a store since it was empty.
class UsedNamespaces {
 public:
  void note(const Change& change);
  // Returns true if the name of one begins with the name of another one.
  bool are_nested() const;

 private:
  std::map<std::string, std::size_t> objects_;  // their numbers
  mutable std::optional<bool> are_nested_;      // unset: not known since a namespace came or went
};

class Lists {
 public:
  // The world must have no objects yet.
  explicit Lists(World& world);

  // Responds to a list request. Calls `reply` exactly once: immediately, or 3 s later if the resourceVersion does not
  // exist yet.
  void list(const Call& call, const Reply& reply);
  // Until `when`, lists with resourceVersion=0 return the state at the moment of this call. Simulates a stale watch
  // cache.
  void hold_cache_until(TimePoint when);
  // Expires the continue tokens of all lists that have begun: the server responds to requests for their later pages
  // with 410.
  void expire_continue_tokens() { snapshots_.clear(); }

 private:
  struct Snapshot {
    std::uint64_t revision;
    std::vector<Object> objects;
  };
  struct OldCache {
    TimePoint until{};
    std::uint64_t revision = 0;
    // All objects at `revision`. Key: plural of the resource.
    std::map<std::string, std::vector<Object>, std::less<>> objects;
  };

  http::Response page(const Call& call, const Selection& selection);
  http::Response from_old_cache(const Call& call, const Selection& selection);

  static constexpr std::size_t most_snapshots = 64;
  World& world_;
  UsedNamespaces namespaces_;
  Texts items_{Texts::Form::item, 8'000};
  // The states that later pages of lists return. Key: resource, namespace and revision of the list.
  std::map<std::string, Snapshot> snapshots_;
  OldCache old_cache_;
};

// Parses a watch request. Sets *answer to the head of the stream. If the request is invalid, returns nullopt and sets
// *answer to the refusal.
std::optional<WatchRequest> watch_request(const Timing& timing, const Call& call, http::Response* answer);

}  // namespace haulout::sim
