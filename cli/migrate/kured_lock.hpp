// The lock of kured: an annotation of a DaemonSet, which a node holds from before its drain until after its reboot. A
// person who changes over holds it by this, so that kured begins no further node. What a node holds is not taken, and
// only what is held by this is given back. With --lock-ttl the entry of a node expires: then kured counts it as free,
// and so does this. Pure.
//
// With --concurrency 1 the annotation is the entry of one node. With more it is an object with the entries of several.
// kured gives away no place of it if it has as many entries as places. So this adds an entry for each place, also
// beside those of nodes: then a place that a node gives back is not free for the next one.
#pragma once

#include <string>
#include <string_view>

#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::cli {

// The name under which Haulout holds kured's lock. No Node has it.
inline constexpr std::string_view lock_holder = "haulout-change-over";

struct LockStep {
  enum class What { write, done, refused } what = What::done;
  std::string message;   // one sentence for people; for `write`: what is true after it
  std::string patch{};   // for `write`: the merge patch of the DaemonSet, guarded by its resourceVersion
  bool complete = true;  // false, for `write`: nodes still hold places of the lock after it
};

// The DaemonSet with the annotation. It is kured's own one, unless --ds-namespace and --ds-name say otherwise.
struct LockPlace {
  std::string ns;
  std::string name;
  friend bool operator==(const LockPlace&, const LockPlace&) = default;
};

// The functions get DaemonSets as the API server sends them: `kured` has the options of kured, `place` has the
// annotation. They fail with Errc::decode if these cannot be read, or do not say how the lock works.
Result<LockPlace> place_of_lock(std::string_view kured);
// Return what to do next.
Result<LockStep> step_to_hold(std::string_view kured, std::string_view place, WallTime now);
Result<LockStep> step_to_release(std::string_view kured, std::string_view place);

}  // namespace haulout::cli
