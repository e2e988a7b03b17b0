// EvictionRequests of the simulated cluster (KEP-4563): the controller that makes Evictions of them and gives each
// responder its turn, and the responders themselves. Borrows the world. No I/O; nothing fails.
//
// The annotation sim.haulout.dev/responders of a pod says what its responders do, in the order of
// spec.evictionResponders, separated by commas; those without an entry are silent:
//   silent       never answers
//   moves 30s    reports that it works, and deletes the pod after this time
//   stops 30s    reports that it works, and falls silent after this time
//   works        reports for ever that it works
//   declines 5s  gives its turn up after this time
// The responder of Kubernetes that follows them reports that it evicts the pod, but does not: the drain does the same.
#pragma once

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/world.hpp"

namespace haulout::sim {

class EvictionRequestController {
 public:
  // How long a responder may be silent. The value is the API's.
  static constexpr Duration heartbeat_deadline = std::chrono::minutes(20);

  explicit EvictionRequestController(World& world);

 private:
  struct Target {
    std::string ns, name, uid;
    auto operator<=>(const Target&) const = default;
  };
  void look_later(const Target& target, Duration delay);
  void sync(const Target& target);
  std::vector<Object> requests_for(const Target& target) const;
  // Returns the Eviction of the target that has not ended; nullptr if there is none.
  Object eviction_of(const Target& target) const;
  Object create(const Target& target, const Json& pod, const std::vector<Object>& requests);
  void label(const Object& eviction, const std::vector<Object>& requests);
  void advance(const Target& target, const Object& eviction);
  void activate(const Target& target, const Key& eviction, std::size_t index, const char* ended_as);
  void end(const Key& eviction, const char* condition, const char* reason, const char* state);
  void copy_conditions(const std::vector<Object>& requests, const Json* eviction);
  void reject(const std::vector<Object>& requests, const std::string& message);
  // A step of the responder whose turn began at `start`.
  void respond(const Target& target, const Key& eviction, std::size_t index, TimePoint start);
  bool acts() const;

  World& world_;
  std::set<Target> planned_;
};

}  // namespace haulout::sim
