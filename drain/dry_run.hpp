// `--dry-run`: reports what the drain would do, and changes nothing. With `server` it sends each eviction with
// dryRun=All, so that the server evaluates admission and budgets. A dry-run eviction uses up no disruption of a budget,
// so the number of pods that a budget allows to be evicted at once is computed from its status.
#pragma once

#include "drain/pipeline.hpp"
#include "drain/session.hpp"

namespace haulout::drain {

// Ends the drain: as `drained` if all pods could be evicted, else as `blocked`. Returns true if all could. Borrows
// session and pipeline. Cancellable.
boost::asio::awaitable<bool> dry_run(Session& session, Pipeline& pipeline);

}  // namespace haulout::drain
