// The machines of ./dev demo. A script simulates them by changing files, and follow_machines() applies the changes to
// the simulated cluster. DIR/NODE is the root directory of the host for the agent of that Node. While the file
// DIR/NODE/off exists, the machine is off: its Node is NotReady, and its pods stay but are not Ready. Without that
// file, the kubelet reports the boot id in DIR/NODE/proc/sys/kernel/random/boot_id.
#pragma once

#include <string>

#include "demo/judge.hpp"
#include "sim/cluster.hpp"

namespace haulout::demo {

// Reports every machine that goes down or comes up to the cluster and the judge. Polls the files in `directory`; a boot
// id that cannot be read means that the machine is off. Ends only by cancellation. Borrows `clock`, `cluster` and
// `judge`.
boost::asio::awaitable<void> follow_machines(Clock& clock, sim::Cluster& cluster, DemoJudge& judge,
                                             std::string directory);

}  // namespace haulout::demo
