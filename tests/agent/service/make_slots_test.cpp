#include "agent/service/make_slots.hpp"

#include "tests/agent/service/host_fixture.hpp"
#include "tests/support/scripted_transport.hpp"

namespace haulout::agent {
namespace {

using haulout::testing::json_response;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct MakeSlots : haulout::testing::HostTest {
  MakeSlots() {
    config.slots = SlotsChoice::fleetlock;
    config.fleetlock_url = "http://127.0.0.1:1";
  }
  haulout::testing::ScriptedTransport server{clock};
  k8s::Client client{server, clock};
  const OwnNode own{"n1", "u1"};
  const SlotsAccess slots_access{context.get_executor(), client, rng, root, own};
};

// The Node's label that names its pool (--pool-label) may be set, removed and changed while the agent runs. Without the
// label the node gets no slot, and the error names the cause.
TEST_F(MakeSlots, TheLabelOfThePoolIsReadForEachTurn) {
  config.pool_label = "pool";
  auto made = make_slots(config, slots_access);
  ASSERT_TRUE(made);
  // Nothing listens at the address of the FleetLock server. So a turn with a label fails, too, but for that reason.
  const std::string unlabelled = "kubectl label --overwrite node n1 pool=";
  const auto take = [&](const std::string& labels) {
    server.answer(json_response(200, R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","uid":"u1",)"
                                     R"("resourceVersion":"5","labels":)" +
                                         labels + "}}"));
    const auto turn = run(made->slots->take(clock.now() + std::chrono::minutes(1)));
    EXPECT_FALSE(turn) << labels;
    return turn ? std::string() : turn.error().message();
  };
  EXPECT_THAT(take("{}"), HasSubstr(unlabelled));
  EXPECT_THAT(take(R"({"pool":"db"})"), AllOf(Not(HasSubstr(unlabelled)), HasSubstr("127.0.0.1:1")));
  EXPECT_THAT(take("{}"), HasSubstr(unlabelled));
  EXPECT_EQ(server.requests().size(), 3u) << "the Node is read for each turn";
}

TEST_F(MakeSlots, APoolThatCanBeNoGroupIsAMistake) {
  config.pool = "a_b";
  EXPECT_EQ(make_slots(config, slots_access).error().code(), Errc::invalid);
}

TEST(OwnPool, IsThatOfTheRoleUnlessOneIsNamed) {
  k8s::Node worker, control_plane;
  control_plane.labels = {{"node-role.kubernetes.io/control-plane", ""}, {"pool", "db"}};
  AgentConfig config;
  EXPECT_EQ(own_pool(config, worker), (OwnPool{"default", {}, true}));
  EXPECT_EQ(own_pool(config, control_plane), (OwnPool{"control-plane", {}, true}));
  config.max_unavailable = "3";
  EXPECT_THAT(words_of_pool(config, control_plane),
              HasSubstr("at most one node at a time, even if max-unavailable is greater"));
  EXPECT_EQ(words_of_pool(config, worker), "default, max-unavailable 3");
  config.ramp = "1,2";
  EXPECT_EQ(words_of_pool(config, worker), "default, max-unavailable 3, in waves of 1,2");
  config.halt_after = 2;
  config.roll_out_order = "zone";
  EXPECT_EQ(words_of_pool(config, worker),
            "default, max-unavailable 3, in waves of 1,2, halted at 2 failed nodes, in the order zone");
  config.slots = SlotsChoice::fleetlock;
  EXPECT_EQ(own_pool(config, control_plane), OwnPool{"default"}) << "the groups of a server are configured there";
  config.slots = SlotsChoice::lease;
  config.pool = "default";
  EXPECT_EQ(own_pool(config, control_plane), OwnPool{"default"});
  config.pool.clear();
  config.pool_label = "pool";
  EXPECT_EQ(own_pool(config, control_plane), (OwnPool{"db", "pool=db"}));
}

}  // namespace
}  // namespace haulout::agent
