#include "agent/assembly/options_of_config.hpp"

#include <gtest/gtest.h>

namespace haulout::agent {
namespace {

using drain::VolumeWait;

TEST(SuitVolumes, WhatMayBeSeenIsRequiredAndWhatMayNotIsNotWaitedFor) {
  struct Row {
    bool wait, turns, permitted;
    VolumeWait volumes, volume_turns;
  };
  const Row table[] = {
      {true, false, true, VolumeWait::required, VolumeWait::off},
      {true, true, true, VolumeWait::required, VolumeWait::required},
      {false, true, true, VolumeWait::off, VolumeWait::required},
      {true, true, false, VolumeWait::off, VolumeWait::off},
  };
  for (const Row& row : table) {
    AgentConfig config;
    config.wait_volumes = row.wait;
    config.serialize_volumes = row.turns;
    drain::Options options = drain_options_of(config);
    suit_volumes(options, row.permitted);
    EXPECT_EQ(options.volumes, row.volumes) << row.wait << row.turns << row.permitted;
    EXPECT_EQ(options.volume_turns, row.volume_turns) << row.wait << row.turns << row.permitted;
  }
}

}  // namespace
}  // namespace haulout::agent
