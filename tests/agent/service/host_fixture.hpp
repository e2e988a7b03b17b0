// Fixture with a host that consists of files only. Its D-Bus connection has no address, so no service answers. Owns the
// host's directory.
#pragma once

#include <gmock/gmock.h>

#include "agent/config/agent_config.hpp"
#include "agent/service/host_parts.hpp"
#include "tests/k8s/temp_dir.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::testing {

class HostTest : public VirtualTimeTest {
 protected:
  TempDir dir;
  SeededRng rng{1};
  const agent::HostRoot root{dir.path()};
  agent::Bus bus{context.get_executor(), clock, rng, {}};
  const agent::HostAccess access{context.get_executor(), clock, rng, root, bus};
  agent::AgentConfig config;
};

}  // namespace haulout::testing
