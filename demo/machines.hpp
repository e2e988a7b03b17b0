// The machines of ./dev demo, as far as the simulated cluster knows them: directories that a script plays. DIR/NODE is
// what the agent of that Node takes for its host's root. While there is a file DIR/NODE/off the machine is off: its
// Node is NotReady, and its pods run on no one. Without it the kubelet reports the boot id it finds beneath
// DIR/NODE/proc/sys/kernel/random/boot_id.
#pragma once

#include <string>

#include "demo/judge.hpp"
#include "sim/cluster.hpp"

namespace haulout::demo {

// Tells cluster and judge of every machine that goes down or comes up; until cancelled. All arguments must outlive it.
boost::asio::awaitable<void> follow_machines(Clock& clock, sim::Cluster& cluster, DemoJudge& judge,
                                             std::string directory);

}  // namespace haulout::demo
