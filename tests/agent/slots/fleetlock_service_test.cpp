// Tests the FleetLock server on the simulated cluster, where it shares the slots of a pool with agents.
#include "agent/slots/fleetlock_service.hpp"

#include <nlohmann/json.hpp>

#include "agent/slots/fleetlock_slots.hpp"
#include "tests/agent/slots/lease_slots_fixture.hpp"

namespace haulout::agent {
namespace {
namespace asio = boost::asio;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

http::Request request_of(std::string target, std::string body) {
  http::Request request;
  request.method = "POST";
  request.target = std::move(target);
  request.headers.set("fleet-lock-protocol", "true");
  request.body = std::move(body);
  return request;
}
http::Request pre_reboot(const std::string& id, const std::string& group = "default") {
  return request_of("/v1/pre-reboot", encode_fleetlock_request(id, group));
}
http::Request steady_state(const std::string& id, const std::string& group = "default") {
  return request_of("/v1/steady-state", encode_fleetlock_request(id, group));
}

TEST(FleetLockRequests, TellWhatTheyAskFor) {
  const auto take = read_fleetlock_call(pre_reboot("0f3a-B_c.1", "default"), {"default"});
  ASSERT_TRUE(std::holds_alternative<FleetLockCall>(take));
  EXPECT_TRUE(std::get<FleetLockCall>(take).take);
  EXPECT_EQ(std::get<FleetLockCall>(take).id, "0f3a-B_c.1");
  EXPECT_EQ(std::get<FleetLockCall>(take).pool, "default");
  const auto release = read_fleetlock_call(steady_state("m1", "gone"), {"default"});
  ASSERT_TRUE(std::holds_alternative<FleetLockCall>(release)) << "a slot of a pool that is not served any more";
  EXPECT_FALSE(std::get<FleetLockCall>(release).take);
}

TEST(FleetLockRequests, ThatAreWrongAreRefusedWithTheReason) {
  const std::string good = encode_fleetlock_request("m1", "default");
  const auto changed = [&](const std::function<void(http::Request&)>& change) {
    http::Request request = request_of("/v1/pre-reboot", good);
    change(request);
    return request;
  };
  struct Row {
    http::Request request;
    int status;
    const char* kind;
  };
  const Row rows[] = {
      {changed([](auto& r) { r.method = "GET"; }), 405, "method_not_allowed"},
      {changed([](auto& r) { r.target = "/"; }), 404, "not_found"},
      {changed([](auto& r) { r.target = "/v1/pre-reboot/"; }), 404, "not_found"},
      {changed([](auto& r) { r.target = "/v1/pre-reboot?x=y"; }), 404, "not_found"},
      {changed([](auto& r) { r.headers = {}; }), 400, "missing_header"},
      {changed([](auto& r) { r.headers.set("fleet-lock-protocol", "false"); }), 400, "missing_header"},
      {request_of("/v1/pre-reboot", ""), 400, "invalid_body"},
      {request_of("/v1/pre-reboot", "{"), 400, "invalid_body"},
      {request_of("/v1/pre-reboot", "[]"), 400, "invalid_body"},
      {request_of("/v1/pre-reboot", "null"), 400, "invalid_body"},
      {request_of("/v1/pre-reboot", R"({"client_params":[]})"), 400, "invalid_body"},
      {request_of("/v1/pre-reboot", R"({"client_params":{"id":"m1"}})"), 400, "invalid_body"},
      {request_of("/v1/pre-reboot", R"({"client_params":{"id":1,"group":"default"}})"), 400, "invalid_body"},
      {request_of("/v1/pre-reboot", std::string(10'000, '[')), 400, "invalid_body"},
      {request_of("/v1/pre-reboot", "{\"client_params\":{\"id\":\"\xff\",\"group\":\"default\"}}"), 400,
       "invalid_body"},
      {pre_reboot(""), 400, "invalid_id"},
      {pre_reboot("a b"), 400, "invalid_id"},
      {pre_reboot("n1/n1-uid"), 400, "invalid_id"},
      {pre_reboot("a\nb"), 400, "invalid_id"},
      {pre_reboot(std::string(129, 'a')), 400, "invalid_id"},
      {pre_reboot("m1", ""), 400, "invalid_group"},
      {pre_reboot("m1", "a/b"), 400, "invalid_group"},
      {pre_reboot("m1", ".a"), 400, "invalid_group"},
      {pre_reboot("m1", std::string(64, 'a')), 400, "invalid_group"},
      {pre_reboot("m1", "control-plane"), 403, "unknown_group"},
  };
  for (const Row& row : rows) {
    const auto read = read_fleetlock_call(row.request, {"default"});
    ASSERT_TRUE(std::holds_alternative<FleetLockAnswer>(read)) << row.request.target << " " << row.request.body;
    const auto& answer = std::get<FleetLockAnswer>(read);
    EXPECT_EQ(answer.status, row.status) << row.request.body;
    EXPECT_EQ(answer.kind, row.kind) << row.request.body;
    const auto json = nlohmann::json::parse(response_of(answer).body);
    EXPECT_EQ(json.at("kind"), row.kind);
    EXPECT_NE(json.at("value"), "");
  }
}

// How the last request of a server that is killed ends.
enum class Fate { lost, answer_lost };

// Passes requests on, until one of them meets its fate. All later ones are lost.
class DyingTransport final : public http::Transport {
 public:
  // Borrows `inner`.
  DyingTransport(http::Transport& inner, int lives, Fate end) : inner_(inner), lives_(lives), end_(end) {}
  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override {
    const int left = lives_--;
    if (left > 0) co_return co_await inner_.round_trip(std::move(request), deadline);
    if (left == 0 && end_ == Fate::answer_lost) {
      const auto response = co_await inner_.round_trip(std::move(request), deadline);
      static_cast<void>(response);
    }
    co_return Error(Errc::reset, "the server has died");
  }
  Task<std::unique_ptr<http::BodyStream>> open(http::Request, TimePoint) override {
    co_return Error(Errc::protocol, "no streams here");
  }
  bool died() const { return lives_ < 0; }

 private:
  http::Transport& inner_;
  int lives_;
  Fate end_;
};

// Passes requests on. Once, when the first POST is carried out, others act before the answer arrives.
class CrowdedTransport final : public http::Transport {
 public:
  // Borrows `inner`.
  CrowdedTransport(http::Transport& inner, std::function<void()> others) : inner_(inner), others_(std::move(others)) {}
  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override {
    const bool creates = request.method == "POST";
    auto response = co_await inner_.round_trip(std::move(request), deadline);
    if (creates && others_) std::exchange(others_, {})();
    co_return response;
  }
  Task<std::unique_ptr<http::BodyStream>> open(http::Request, TimePoint) override {
    co_return Error(Errc::protocol, "no streams here");
  }

 private:
  http::Transport& inner_;
  std::function<void()> others_;
};

// Lets a FleetLock client talk to the server.
class InProcess final : public http::Transport {
 public:
  explicit InProcess(FleetLockService& service) : service_(service) {}
  Task<http::Response> round_trip(http::Request request, TimePoint) override {
    co_return response_of(co_await service_.answer(std::move(request)));
  }
  Task<std::unique_ptr<http::BodyStream>> open(http::Request, TimePoint) override {
    co_return Error(Errc::protocol, "no streams here");
  }

 private:
  FleetLockService& service_;
};

Task<std::string> default_group(TimePoint) {
  co_return "default";
}

class FleetLockServiceTest : public LeaseSlotsTest {
 protected:
  FleetLockServiceTest() {
    options.grouping = {};
    pool_limit = 1;
  }
  FleetLockServiceOptions served(std::size_t limit) { return {.pools = {"default", "web"}, .limit = limit}; }
  std::string holder_of(std::string_view lease) const {
    for (const sim::Json& each : cluster.all("leases"))
      if (each["metadata"]["name"] == lease) return each["spec"]["holderIdentity"];
    return {};
  }
  FleetLockService service{client, served(1)};
};

TEST_F(FleetLockServiceTest, SpeaksTheProtocol) {
  live([this]() -> asio::awaitable<void> {
    const auto taken = co_await service.answer(pre_reboot("m1"));
    EXPECT_EQ(taken.status, 200) << taken.value;
    EXPECT_TRUE(taken.changed);
    EXPECT_EQ(holder_of("haulout-default-0"), "outside machine m1/fleetlock");
    const auto again = co_await service.answer(pre_reboot("m1"));
    EXPECT_EQ(again.status, 200);
    EXPECT_FALSE(again.changed);
    const auto refused = co_await service.answer(pre_reboot("m2"));
    EXPECT_EQ(refused.status, 423);
    EXPECT_EQ(refused.kind, "lock_held");
    EXPECT_THAT(refused.value, AllOf(HasSubstr("at most 1 node"), HasSubstr("outside machine m1")));
    const auto not_held = co_await service.answer(steady_state("m2"));
    EXPECT_EQ(not_held.status, 200);
    EXPECT_THAT(leases(), ElementsAre("haulout-default-0"));
    const auto released = co_await service.answer(steady_state("m1"));
    EXPECT_EQ(released.status, 200);
    EXPECT_TRUE(released.changed);
    EXPECT_THAT(leases(), IsEmpty());
    const auto twice = co_await service.answer(steady_state("m1"));
    EXPECT_EQ(twice.status, 200);
    EXPECT_FALSE(twice.changed);
  });
  EXPECT_THAT(writes(), ElementsAre("create ", "delete haulout-default-0"));
}

TEST_F(FleetLockServiceTest, TheLeaseIsOneOfThePoolAndHasNoOwner) {
  live([this]() -> asio::awaitable<void> {
    static_cast<void>(co_await service.answer(pre_reboot("m1")));
    co_await clock.sleep_until(clock.now() + 1h);
  });
  ASSERT_THAT(cluster.all("leases"), SizeIs(1)) << "the garbage collector leaves it";
  const sim::Json lease = cluster.all("leases").front();
  EXPECT_EQ(lease["metadata"]["labels"], (sim::Json{{"haulout.dev/pool", "default"}}));
  EXPECT_FALSE(lease["metadata"].contains("ownerReferences"));
}

TEST_F(FleetLockServiceTest, EachPoolHasItsOwnSlots) {
  live([this]() -> asio::awaitable<void> {
    for (const char* group : {"default", "web"}) {
      const auto taken = co_await service.answer(pre_reboot("m1", group));
      EXPECT_EQ(taken.status, 200) << group;
    }
    EXPECT_THAT(leases(), ElementsAre("haulout-default-0", "haulout-web-0"));
    const auto released = co_await service.answer(steady_state("m1", "web"));
    EXPECT_EQ(released.status, 200);
    EXPECT_THAT(leases(), ElementsAre("haulout-default-0"));
  });
}

TEST_F(FleetLockServiceTest, ControlPlaneNodesAreNeverTwo) {
  FleetLockService careful(client, {.pools = {"control-plane"}, .limit = 3});
  live([&]() -> asio::awaitable<void> {
    const auto first = co_await careful.answer(pre_reboot("m1", "control-plane"));
    const auto second = co_await careful.answer(pre_reboot("m2", "control-plane"));
    EXPECT_EQ(first.status, 200);
    EXPECT_EQ(second.status, 423);
  });
}

// The agents' own FleetLock client.
TEST_F(FleetLockServiceTest, ServesTheClientOfAnAgent) {
  InProcess server(service);
  FleetLockSlots one(server, clock, rng, {.group = &default_group, .id = "m1"});
  FleetLockSlots two(server, clock, rng, {.group = &default_group, .id = "m2"});
  live([&]() -> asio::awaitable<void> {
    const auto taken = co_await one.take(soon());
    EXPECT_TRUE(taken && taken->ours);
    const auto confirmed = co_await one.confirm(soon());
    EXPECT_TRUE(confirmed && confirmed->ours);
    const auto refused = co_await two.take(soon());
    EXPECT_TRUE(refused && !refused->ours);
    EXPECT_THAT(refused->why, AllOf(HasSubstr("outside machine m1"), HasSubstr("lock_held")));
    const auto released = co_await one.release(soon());
    EXPECT_TRUE(released);
    const auto now = co_await two.take(soon());
    EXPECT_TRUE(now && now->ours);
  });
}

TEST_F(FleetLockServiceTest, AgentsAndMachinesShareOneLimit) {
  live([this]() -> asio::awaitable<void> {
    LeaseSlots& agent = node("a1").slots;
    const auto machine = co_await service.answer(pre_reboot("m1"));
    EXPECT_EQ(machine.status, 200);
    const auto refused = co_await agent.take(soon());
    EXPECT_TRUE(refused && !refused->ours);
    EXPECT_THAT(refused->why, HasSubstr("outside machine m1 (has the slot)"));
    static_cast<void>(co_await service.answer(steady_state("m1")));
    const auto taken = co_await agent.take(soon());
    EXPECT_TRUE(taken && taken->ours);
    const auto late = co_await service.answer(pre_reboot("m1"));
    EXPECT_EQ(late.status, 423);
    EXPECT_THAT(late.value, HasSubstr("a1"));
    static_cast<void>(co_await service.answer(steady_state("m1")));
    EXPECT_THAT(leases(), ElementsAre("haulout-default-0")) << "the slot of another holder";
  });
}

// A client cannot write the Lease of a Node, whatever its id is.
TEST_F(FleetLockServiceTest, AMachineThatIsCalledLikeANodeIsNotThatNode) {
  live([this]() -> asio::awaitable<void> {
    LeaseSlots& agent = node("a1").slots;
    const auto taken = co_await agent.take(soon());
    EXPECT_TRUE(taken && taken->ours);
    for (const char* id : {"a1", "a1-uid"}) {
      const auto refused = co_await service.answer(pre_reboot(id));
      EXPECT_EQ(refused.status, 423) << id;
      static_cast<void>(co_await service.answer(steady_state(id)));
    }
    const auto mine = co_await agent.confirm(soon());
    EXPECT_TRUE(mine && mine->ours);
  });
}

TEST_F(FleetLockServiceTest, TwoServersGiveNoMoreThanTheLimit) {
  std::size_t given = 0, answered = 0;
  const auto ask = [&](FleetLockService& server, std::string id) -> asio::awaitable<void> {
    const auto answer = co_await server.answer(pre_reboot(id));
    given += answer.status == 200;
    ++answered;
  };
  live([&]() -> asio::awaitable<void> {
    for (const std::size_t limit : {1u, 3u}) {
      FleetLockService one(client, served(limit)), two(client, served(limit));
      given = answered = 0;
      co_await with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
        for (int i = 0; i < 8; ++i) group.spawn(ask(i % 2 == 0 ? one : two, "m" + std::to_string(i)));
        while (answered < 8) co_await clock.sleep_until(clock.now() + 100ms);
      });
      EXPECT_EQ(given, limit);
      EXPECT_THAT(leases(), SizeIs(limit));
      for (int i = 0; i < 8; ++i) static_cast<void>(co_await one.answer(steady_state("m" + std::to_string(i))));
      EXPECT_THAT(leases(), IsEmpty());
    }
  });
}

// P6, P7: a server may be killed at any request, before or after the API server has carried it out. The machine asks
// another server again, and others get no slot that it has.
TEST_F(FleetLockServiceTest, KilledAtAnyRequestItGivesNoMoreThanTheLimit) {
  live([&]() -> asio::awaitable<void> {
    for (const Fate end : {Fate::lost, Fate::answer_lost})
      for (int lives = 0;; ++lives) {
        DyingTransport wire(cluster.api(), lives, end);
        k8s::Client dying(wire, clock, {});
        FleetLockService first(dying, served(1));
        const auto before = co_await first.answer(pre_reboot("m1"));
        EXPECT_EQ(before.status, wire.died() ? 503 : 200) << "after " << lives << " requests";
        const bool has = !leases().empty();
        EXPECT_EQ(has, lives > (end == Fate::lost ? 1 : 0)) << "after " << lives << " requests";
        const auto other = co_await service.answer(pre_reboot("m2"));
        EXPECT_EQ(other.status, has ? 423 : 200);
        EXPECT_THAT(leases(), SizeIs(1));
        static_cast<void>(co_await service.answer(steady_state("m2")));
        const auto again = co_await service.answer(pre_reboot("m1"));
        EXPECT_EQ(again.status, 200);
        EXPECT_THAT(leases(), SizeIs(1));
        static_cast<void>(co_await service.answer(steady_state("m1")));
        EXPECT_THAT(leases(), IsEmpty());
        if (!wire.died()) break;
      }
  });
}

TEST_F(FleetLockServiceTest, WithoutTheApiServerNobodyGetsASlotAndNoneIsReleased) {
  live([this]() -> asio::awaitable<void> {
    const auto taken = co_await service.answer(pre_reboot("m1"));
    EXPECT_EQ(taken.status, 200);
    cluster.refuse_connections(1min);
    for (const auto& request : {pre_reboot("m1"), pre_reboot("m2"), steady_state("m1")}) {
      const auto answer = co_await service.answer(request);
      EXPECT_EQ(answer.status, 503) << request.target;
      EXPECT_EQ(answer.kind, "api_unavailable");
    }
    co_await clock.sleep_until(clock.now() + 2min);
    EXPECT_THAT(leases(), ElementsAre("haulout-default-0"));
  });
}

TEST_F(FleetLockServiceTest, ARefusedRightIsNoSuccess) {
  live([this]() -> asio::awaitable<void> {
    cluster.forbid("create", "leases");
    const auto answer = co_await service.answer(pre_reboot("m1"));
    EXPECT_EQ(answer.status, 503);
    EXPECT_THAT(answer.value, HasSubstr("leases"));
  });
}

// A person has created the Lease, or has removed its label. No list shows it, but its slot is taken.
TEST_F(FleetLockServiceTest, ALeaseWithoutALabelTakesItsSlot) {
  hold_unlabelled("a1");
  live([this]() -> asio::awaitable<void> {
    const auto answer = co_await service.answer(pre_reboot("m1"));
    EXPECT_EQ(answer.status, 423);
    EXPECT_THAT(answer.value, AllOf(HasSubstr("a1"), HasSubstr("lacks the label")));
  });
}

// A person has given a node two slots. Its second Lease would leave a name above the limit free.
TEST_F(FleetLockServiceTest, NoSlotAboveTheLimitIsTaken) {
  hold("haulout-default-0", "a1");
  hold("haulout-default-1", "a1");
  FleetLockService two(client, served(2));
  live([&]() -> asio::awaitable<void> {
    const auto answer = co_await two.answer(pre_reboot("m1"));
    EXPECT_EQ(answer.status, 423);
    EXPECT_THAT(answer.value, HasSubstr("by the same node"));
  });
}

// Agents with a higher limit take a slot at the same moment. The server sees it when it looks again.
TEST_F(FleetLockServiceTest, P6_ASlotThatIsOneTooManyIsGivenBack) {
  CrowdedTransport wire(cluster.api(), [this] { hold("haulout-default-1", "b1"); });
  k8s::Client crowded(wire, clock, {});
  FleetLockService server(crowded, served(1));
  live([&]() -> asio::awaitable<void> {
    const auto answer = co_await server.answer(pre_reboot("m1"));
    EXPECT_EQ(answer.status, 423);
    EXPECT_THAT(answer.value, HasSubstr("b1"));
    EXPECT_THAT(leases(), ElementsAre("haulout-default-1"));
  });
}

// A machine gave up its request for a slot and releases it at once: the release must not be done before the request.
TEST_F(FleetLockServiceTest, AReleaseDoesNotOvertakeARequest) {
  std::optional<FleetLockAnswer> taken;
  const auto ask = [&]() -> asio::awaitable<void> { taken = co_await service.answer(pre_reboot("m1")); };
  live([&]() -> asio::awaitable<void> {
    co_await with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
      group.spawn(ask());
      const auto early = co_await service.answer(steady_state("m1"));
      EXPECT_EQ(early.kind, "busy");
      while (!taken) co_await clock.sleep_until(clock.now() + 100ms);
    });
    const auto released = co_await service.answer(steady_state("m1"));
    EXPECT_EQ(released.status, 200);
    EXPECT_THAT(leases(), IsEmpty());
  });
}

}  // namespace
}  // namespace haulout::agent
