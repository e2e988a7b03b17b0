// `--dry-run`: reports what would happen, and waits for nothing. The server-side form sends each eviction with
// dryRun=All, so that admission and budgets are evaluated. A dry run reserves nothing. So the number of pods that a
// budget lets go at once is computed from its status.
#pragma once

#include "drain/pipeline.hpp"
#include "drain/session.hpp"

namespace haulout::drain {

// Ends the drain: as `drained` if all pods could be evicted, else as `blocked`. Returns true in the first case. Borrows
// both. Cancellable.
boost::asio::awaitable<bool> dry_run(Session& session, Pipeline& pipeline);

}  // namespace haulout::drain
