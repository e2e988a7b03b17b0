// Slots of servers that do more, or say less, than the API server does about Leases: FleetLock servers answer without
// confirming a slot, or cordon the node to which they give one.
#include "tests/fleet/gated_fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Slots of a server that can be told to neither confirm nor deny a slot, and that calls a function whenever it has
// given a slot or got one back.
class ServerSlots final : public agent::Slots {
 public:
  ServerSlots(agent::Slots& inner, const bool& unsure, std::function<void(bool given)> acts)
      : inner_(inner), unsure_(unsure), acts_(std::move(acts)) {}
  std::string name() const override { return inner_.name(); }
  void aim_at(const std::string& version) override { inner_.aim_at(version); }
  Task<agent::Turn> take(TimePoint deadline) override {
    auto turn = co_await inner_.take(deadline);
    if (turn && turn->ours) acts_(true);
    co_return turn;
  }
  Task<agent::Turn> confirm(TimePoint deadline) override {
    if (unsure_) co_return agent::Turn{.why = "all slots are locked already (HTTP 500)", .uncertain = true};
    co_return co_await inner_.confirm(deadline);
  }
  Task<> release(TimePoint deadline) override {
    auto released = co_await inner_.release(deadline);
    if (released) acts_(false);
    co_return released;
  }
  boost::asio::awaitable<void> changed() override { co_await inner_.changed(); }

 private:
  agent::Slots& inner_;
  const bool& unsure_;
  std::function<void(bool given)> acts_;
};

struct SlotServers : GatedFleet {
  SlotServers() {
    decorate_slots = [this](agent::Slots& inner) { return std::make_unique<ServerSlots>(inner, unsure, acts); };
  }
  bool unsure = false;
  std::function<void(bool given)> acts = [](bool) {};
};

// Who reboots the machine because of the file does not ask again, and another node may have the slot by now. The state
// stays, because the server may have failed.
TEST_F(SlotServers, AReadyNodeHidesItsFileWhileItsSlotIsNotConfirmed) {
  Machine& n1 = machine("n1", {.methods = {}});
  after(5min, [&] {
    EXPECT_TRUE(n1.shows_ready()) << story();
    unsure = true;
    annotate("noise", "1");  // the event of the Node starts the next proof
  });
  after(5min + 2s, [&] {
    EXPECT_FALSE(n1.shows_ready()) << story();
    EXPECT_EQ(state("n1"), "ready") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "SlotsUnavailable") << story();
    EXPECT_THAT(node("n1").dump(), HasSubstr("all slots are locked already"));
    unsure = false;
  });
  after(8min, [&] {
    EXPECT_TRUE(n1.shows_ready()) << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "") << story();
  });
  run_for(9min);
}

// The server cordons the node to which it gives a slot. The agent leaves such a node alone and gives the slot back, and
// the server uncordons the node. Without a pause they would do that many times in a minute.
TEST_F(SlotServers, AServerThatCordonsTheNodeIsNotAskedAgainAtOnce) {
  std::size_t given = 0;
  acts = [&](bool gives) {
    given += gives ? 1 : 0;
    checks.by_a_person([&] { cluster.patch("nodes", "", "n1", {{"spec", {{"unschedulable", gives}}}}); });
  };
  machine("n1");
  after(4min, [&] {
    EXPECT_EQ(given, 1u) << story();
    EXPECT_EQ(state("n1"), "pending") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "BackingOff") << story();
    EXPECT_THAT(node("n1").dump(), HasSubstr("did not succeed"));
  });
  run_for(30min);
  EXPECT_LE(given, 4u) << "the pauses grow\n" << story();
  EXPECT_GE(given, 2u) << "it is tried again\n" << story();
}

}  // namespace
}  // namespace haulout::fleet
