#include "agent/slots/fleetlock_slots.hpp"

#include <gmock/gmock.h>

#include "tests/k8s/temp_dir.hpp"

namespace haulout::agent {
namespace {
using ::testing::HasSubstr;

// Output of `systemd-id128 machine-id -a de35106b6ec24688b63afddaa156679b` on a machine with this machine ID.
TEST(FleetLockId, IsTheOneThatZincatiHas) {
  EXPECT_EQ(*fleetlock_id("1c09ca98649c4c7abc779cd04c96812e"), "978a225b3d7b40e9acd7ce9b62f68444");
}

TEST(FleetLockId, NeedsAMachineId) {
  for (const char* text : {"", "uninitialized", "00000000000000000000000000000000", "1c09ca98649c4c7abc779cd04c96812",
                           "1c09ca98649c4c7abc779cd04c96812ef", "1c09ca98649c4c7abc779cd04c96812g",
                           "+c09ca98649c4c7abc779cd04c96812e", "1c09ca98-649c-4c7a-bc77-9cd04c96812e"})
    EXPECT_FALSE(fleetlock_id(text)) << text;
}

class FleetLockIdFile : public ::testing::Test {
 protected:
  haulout::testing::TempDir dir;
  const HostRoot root{dir.path()};
  const OwnNode node{"n1", "6f6a0f6e-4a6c-4a3c-9a55-0c2f3a1b7d10"};
};

TEST_F(FleetLockIdFile, ComesFromTheHost) {
  dir.write("etc/machine-id", "1c09ca98649c4c7abc779cd04c96812e\n");
  EXPECT_EQ(*fleetlock_id(root, node), "978a225b3d7b40e9acd7ce9b62f68444");
}

TEST_F(FleetLockIdFile, IsTheNodesUidWithoutOne) {
  EXPECT_EQ(*fleetlock_id(root, node), node.uid);
  dir.write("etc/machine-id", "");
  EXPECT_EQ(*fleetlock_id(root, node), node.uid);
}

// A node that took a slot under another ID could never release it. So there is no ID before the machine has its machine
// ID.
TEST_F(FleetLockIdFile, IsNotMadeUpWhileTheMachineGetsItsId) {
  dir.write("etc/machine-id", "uninitialized\n");
  const auto id = fleetlock_id(root, node);
  ASSERT_FALSE(id);
  EXPECT_THAT(id.error().message(), HasSubstr("/etc/machine-id"));
}

TEST(FleetLockIdRoot, ThatIsNotThereIsAnError) {
  EXPECT_FALSE(fleetlock_id(HostRoot("/nonexistent-host"), OwnNode{"n1", "u1"}));
}

}  // namespace
}  // namespace haulout::agent
