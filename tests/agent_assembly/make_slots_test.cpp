#include "agent/assembly/make_slots.hpp"

#include "tests/agent_assembly/host_fixture.hpp"
#include "tests/support/scripted_transport.hpp"

namespace haulout::agent {
namespace {

using haulout::testing::json_response;
using ::testing::HasSubstr;

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

// It may be set, taken away and changed while the agent runs; without it there is no turn, and the Node says why.
TEST_F(MakeSlots, TheLabelOfThePoolIsReadForEachTurn) {
  config.pool_label = "pool";
  auto made = make_slots(config, slots_access);
  ASSERT_TRUE(made);
  server.answer(json_response(
      200, R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","uid":"u1","resourceVersion":"5"}})"));
  const auto turn = run(made->slots->take(TimePoint::max()));
  ASSERT_FALSE(turn);
  EXPECT_THAT(turn.error().message(), HasSubstr("kubectl label node n1 pool="));
}

TEST_F(MakeSlots, APoolThatCanBeNoGroupIsAMistake) {
  config.pool = "a_b";
  EXPECT_EQ(make_slots(config, slots_access).error().code(), Errc::invalid);
}

}  // namespace
}  // namespace haulout::agent
