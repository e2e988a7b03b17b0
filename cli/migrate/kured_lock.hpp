// The lock of kured: an annotation of its DaemonSet, which a node holds from before its drain until after its reboot. A
// person who changes over holds it by this, so that kured begins no further node. Only a free lock is taken, and only
// the own one is given back. Pure.
//
// With --concurrency 1 the annotation is the entry of one node. With more it is an object with the entries of several,
// and then this takes all their places.
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
  std::string message;  // one sentence for people; for `write`: what is true after it
  std::string patch{};  // for `write`: the merge patch of the DaemonSet, guarded by its resourceVersion
};

// Return what to do next, by the DaemonSet as the API server sends it. Fail with Errc::decode if it cannot be read, or
// if the annotation or the options of kured do not say how the lock works.
Result<LockStep> step_to_hold(std::string_view daemon_set, WallTime now);
Result<LockStep> step_to_release(std::string_view daemon_set);

}  // namespace haulout::cli
