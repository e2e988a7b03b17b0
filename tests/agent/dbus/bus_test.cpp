#include "agent/dbus/bus.hpp"

#include "agent/dbus/bus_call.hpp"
#include "tests/agent/dbus/bus_fixture.hpp"

namespace haulout::testing {
namespace {

using agent::bus_call;
using agent::bus_property;

class BusCalls : public LiveBusTest {
 protected:
  Task<std::tuple<std::string>> can_reboot(TimePoint deadline) {
    return bus_call<std::string>(bus, agent::login1("CanReboot"), deadline);
  }
};

TEST_F(BusCalls, AnAnswer) {
  login1.connect(daemon.address());
  run({&login1}, [&](TaskGroup&) -> awaitable<void> {
    auto answer = co_await can_reboot(soon());
    EXPECT_EQ(std::get<0>(answer.value()), "yes");
  });
}

TEST_F(BusCalls, ARefusalCarriesItsName) {
  login1.refusal = dbus_error("org.example.Broken", "the machine is on fire");
  login1.connect(daemon.address());
  run({&login1}, [&](TaskGroup&) -> awaitable<void> {
    auto answer = co_await can_reboot(soon());
    const Error error = error_of(answer);
    EXPECT_TRUE(agent::is_bus_error(error, "org.example.Broken"));
    EXPECT_EQ(error.peer->message, "the machine is on fire");
  });
}

TEST_F(BusCalls, AServiceThatIsNotThere) {
  run({}, [&](TaskGroup&) -> awaitable<void> {
    auto answer = co_await can_reboot(soon());
    EXPECT_TRUE(agent::is_absent(error_of(answer)));
  });
}

TEST_F(BusCalls, AnAnswerOfAnotherTypeIsNoAnswer) {
  login1.numbers_for_words = true;
  login1.connect(daemon.address());
  run({&login1}, [&](TaskGroup&) -> awaitable<void> {
    auto number = co_await bus_call<std::uint32_t>(bus, agent::login1("CanReboot"), soon());
    EXPECT_EQ(error_of(number).code(), Errc::decode);
    auto longer = co_await bus_call<std::string, std::string>(bus, agent::login1("CanReboot"), soon());
    EXPECT_EQ(error_of(longer).code(), Errc::decode);
    auto property = co_await bus_property<std::string>(bus, agent::login1("BlockInhibited"), soon());
    EXPECT_EQ(error_of(property).code(), Errc::decode);
  });
}

TEST_F(BusCalls, SilenceEndsAtTheDeadlineAndALateAnswerIsDropped) {
  login1.silent = true;
  login1.connect(daemon.address());
  run({&login1}, [&](TaskGroup&) -> awaitable<void> {
    auto answer = co_await can_reboot(shortly());
    EXPECT_EQ(error_of(answer).code(), Errc::timeout);
    login1.answer_late();
    login1.silent = false;
    login1.can_reboot = "no";
    auto second = co_await can_reboot(soon());
    EXPECT_EQ(std::get<0>(second.value()), "no");
  });
}

TEST_F(BusCalls, ACancelledCallUnwindsAndItsAnswerIsDropped) {
  login1.silent = true;
  login1.connect(daemon.address());
  const auto ask = [&]() -> awaitable<void> {
    auto answer = co_await can_reboot(soon());
    ADD_FAILURE() << "a cancelled call went on; answered: " << answer.has_value();
  };
  run({&login1}, [&](TaskGroup& group) -> awaitable<void> {
    const auto child = group.spawn(ask());
    co_await until([&] { return login1.calls.size() == 1; });
    group.cancel(child);
    login1.answer_late();
    login1.silent = false;
    auto second = co_await can_reboot(soon());
    EXPECT_TRUE(second);
  });
}

TEST_F(BusCalls, SeveralAtOnce) {
  login1.connect(daemon.address());
  systemd1.connect(daemon.address());
  int answers = 0;
  const auto ask = [&]() -> awaitable<void> {
    for (int i = 0; i < 200; ++i) {
      auto answer = co_await can_reboot(soon());
      auto state = co_await bus_property<std::string>(bus, agent::systemd1("SystemState"), soon());
      if (answer && state) ++answers;
    }
    event.notify();
  };
  run({&login1, &systemd1}, [&](TaskGroup& group) -> awaitable<void> {
    for (int i = 0; i < 4; ++i) group.spawn(ask());
    co_await until([&] { return answers == 800; });
  });
}

TEST_F(BusCalls, AnAnswerLostWithTheBusIsNoAnswer) {
  login1.silent = true;
  login1.connect(daemon.address());
  std::optional<Error> error;
  const auto ask = [&]() -> awaitable<void> {
    auto answer = co_await can_reboot(soon());
    error = error_of(answer);
    event.notify();
  };
  run({&login1}, [&](TaskGroup& group) -> awaitable<void> {
    group.spawn(ask());
    co_await until([&] { return login1.calls.size() == 1; });
    daemon.stop();
    co_await until([&] { return error.has_value(); });
  });
  EXPECT_EQ(error->code(), Errc::reset);
}

TEST_F(BusCalls, AnAnswerLostWithTheServiceIsNoAnswer) {
  login1.silent = true;
  login1.connect(daemon.address());
  std::optional<Error> error;
  const auto ask = [&]() -> awaitable<void> {
    auto answer = co_await can_reboot(soon());
    error = error_of(answer);
    event.notify();
  };
  run({&login1}, [&](TaskGroup& group) -> awaitable<void> {
    group.spawn(ask());
    co_await until([&] { return login1.calls.size() == 1; });
    login1.leave();
    co_await until([&] { return error.has_value(); });
  });
  EXPECT_EQ(error->code(), Errc::reset);
}

TEST_F(BusCalls, ACallWaitsForABusThatComesBackOnANewSocket) {
  login1.connect(daemon.address());
  run({&login1}, [&](TaskGroup& group) -> awaitable<void> {
    auto before = co_await can_reboot(soon());
    EXPECT_TRUE(before);
    daemon.stop();
    const auto come_back = [&]() -> awaitable<void> {
      daemon.start();
      login1.connect(daemon.address());
      co_await login1.serve();
    };
    group.spawn(come_back());
    auto after = co_await can_reboot(soon());
    EXPECT_EQ(std::get<0>(after.value()), "yes");
    EXPECT_EQ(bus.problem(), "");
  });
}

TEST_F(BusTest, WithoutABusTheDeadlineEndsTheWaitAndSaysWhy) {
  run({}, [&](TaskGroup&) -> awaitable<void> {
    auto answer = co_await bus_call<std::string>(bus, agent::login1("CanReboot"), shortly());
    EXPECT_EQ(error_of(answer).code(), Errc::unavailable);
    EXPECT_THAT(answer.error().message(), ::testing::HasSubstr(root.path()));
    EXPECT_FALSE(bus.connected());
    EXPECT_NE(bus.problem(), "");
  });
}

// Listens for NameOwnerChanged, as an example of a signal that the daemon itself sends.
agent::BusListener owners_of(const std::string& name, std::vector<std::string>& heard, Notifier& event) {
  return {{"type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='" + name + "'"},
          [&heard, &event](sdbus::Message& signal) {
            std::string who, before, after;
            if (!agent::read_values(signal, who, before, after)) return;
            heard.push_back(who + (after.empty() ? " left" : " came"));
            event.notify();
          },
          [&heard, &event] {
            heard.emplace_back("connection");
            event.notify();
          }};
}

using BusSignals = LiveBusTest;

TEST_F(BusSignals, AreHeardAndHeardAgainAfterTheBusCameBack) {
  using ::testing::ElementsAre;
  std::vector<std::string> heard;
  const agent::Listening listening(bus, owners_of("org.freedesktop.login1", heard, event));
  run({}, [&](TaskGroup&) -> awaitable<void> {
    co_await until([&] { return bus.connected(); });
    login1.connect(daemon.address());
    co_await until([&] { return heard.size() == 2; });
    EXPECT_THAT(heard, ElementsAre("connection", "org.freedesktop.login1 came"));
    heard.clear();
    daemon.stop();
    co_await until([&] { return !heard.empty(); });
    daemon.start();
    co_await until([&] { return heard.size() == 2 && bus.connected(); });
    login1.connect(daemon.address());
    co_await until([&] { return heard.size() == 3; });
    EXPECT_THAT(heard, ElementsAre("connection", "connection", "org.freedesktop.login1 came"));
  });
}

TEST_F(BusSignals, AreHeardByThoseWhoComeLateAndNoLongerThanTheyListen) {
  std::vector<std::string> heard, short_lived;
  run({}, [&](TaskGroup&) -> awaitable<void> {
    auto connected = co_await bus_call<bool>(bus, agent::bus_driver("NameHasOwner"), soon(), "org.example");
    EXPECT_TRUE(connected);
    const agent::Listening listening(bus, owners_of("org.freedesktop.login1", heard, event));
    {
      const agent::Listening brief(bus, owners_of("org.freedesktop.login1", short_lived, event));
    }
    login1.connect(daemon.address());
    co_await until([&] { return !heard.empty(); });
  });
  EXPECT_THAT(heard, ::testing::ElementsAre("org.freedesktop.login1 came"));
  EXPECT_THAT(short_lived, ::testing::IsEmpty());
}

TEST_F(BusCalls, AnIdleBusWakesNobody) {
  login1.connect(daemon.address());
  run({&login1}, [&](TaskGroup&) -> awaitable<void> {
    auto answer = co_await can_reboot(soon());
    EXPECT_TRUE(answer);
    // The timers of the last call are destroyed after all ready handlers have run.
    co_await boost::asio::post(context, boost::asio::use_awaitable);
    co_await boost::asio::post(context, boost::asio::use_awaitable);
    EXPECT_EQ(clock.due(), 0u);
  });
}

}  // namespace
}  // namespace haulout::testing
