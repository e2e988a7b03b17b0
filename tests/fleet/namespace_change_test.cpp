// An agent that is restarted with another namespace for slots, while its node holds a slot in the old one.
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct NamespaceChanged : Fleet {
  NamespaceChanged() { add({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "elsewhere"}}}}); }
  // Restarts the agent of a ready node with another namespace.
  Machine& moved_machine() {
    Machine& n1 = machine("n1", {.methods = {}});
    after(5min, [&] {
      EXPECT_EQ(state("n1"), "ready") << story();
      n1.slots().ns = "elsewhere";
      n1.kill_agent();
    });
    return n1;
  }
};

TEST_F(NamespaceChanged, ATurnIsGivenBackInTheNamespaceInWhichItWasTaken) {
  Machine& n1 = moved_machine();
  after(20min, [&] {
    EXPECT_TRUE(cluster.get("leases", "haulout", "haulout-default-0").is_null()) << story();
    EXPECT_FALSE(cluster.get("leases", "elsewhere", "haulout-default-0").is_null()) << story();
    EXPECT_EQ(state("n1"), "ready");
    n1.want("");
  });
  run_fleet();
  EXPECT_EQ(slots_held(), 0u) << story();
}

TEST_F(NamespaceChanged, ATurnThatMayNotBeGivenBackThereIsNotForgotten) {
  moved_machine();
  after(5min, [&] { cluster.forbid("delete", "leases"); });
  after(20min, [&] {
    EXPECT_EQ(slots_held(), 1u) << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "CannotRelease");
    const std::string message = node("n1")["metadata"]["annotations"].value("haulout.dev/message", "");
    EXPECT_THAT(message, HasSubstr("Lease haulout-default-0 is in namespace haulout"));
    EXPECT_THAT(message, HasSubstr("haulout.dev/record"));
    EXPECT_FALSE(unschedulable("n1"));
    cluster.permit("delete", "leases");
  });
  after(30min, [&] {
    EXPECT_TRUE(cluster.get("leases", "haulout", "haulout-default-0").is_null()) << story();
    EXPECT_EQ(state("n1"), "ready");
  });
  run_for(31min);
}

}  // namespace
}  // namespace haulout::fleet
