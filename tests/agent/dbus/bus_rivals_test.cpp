#include "agent/dbus/bus_rivals.hpp"

#include "tests/agent/dbus/bus_fixture.hpp"

namespace haulout::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BusRivals : public LiveBusTest {
 protected:
  Result<std::vector<std::string>> ask(std::vector<FakeService*> services) {
    for (FakeService* const service : services) service->connect(daemon.address());
    std::optional<Result<std::vector<std::string>>> out;
    run(services, [&](TaskGroup&) -> awaitable<void> { out = co_await agent::bus_rivals(bus, soon()); });
    return *out;
  }
};

TEST_F(BusRivals, None) {
  systemd1.active_states = {{"zincati.service", "failed"}, {"sshd.service", "active"}};
  EXPECT_THAT(ask({&systemd1}).value(), IsEmpty());
}

TEST_F(BusRivals, EachThatIsActiveHasItsSentence) {
  systemd1.active_states = {{"locksmithd.service", "active"},
                            {"rebootmgr.service", "activating"},
                            {"zincati.service", "reloading"},
                            {"bootc-fetch-apply-updates.timer", "active"}};
  EXPECT_THAT(ask({&systemd1}).value(),
              ElementsAre(HasSubstr("locksmithd.service"), HasSubstr("rebootmgr.service"), HasSubstr("zincati.service"),
                          HasSubstr("bootc-fetch-apply-updates.timer")));
}

class FakeRebootMgr final : public FakeService {
 public:
  FakeRebootMgr(boost::asio::any_io_executor executor, Clock& clock, Notifier& event)
      : FakeService(std::move(executor), clock, event, "org.opensuse.RebootMgr", "/org/opensuse/RebootMgr") {}

 private:
  void publish(sdbus::IObject&) override {}
};

TEST_F(BusRivals, WithoutSystemdTheirNamesOnTheBusTell) {
  FakeRebootMgr rebootmgr(context.get_executor(), clock, event);
  EXPECT_THAT(ask({&rebootmgr}).value(), ElementsAre(HasSubstr("rebootmgr.service")));
}

TEST_F(BusTest, RivalsThatCannotBeAskedForAreNotNone) {
  std::optional<Result<std::vector<std::string>>> out;
  run({}, [&](TaskGroup&) -> awaitable<void> { out = co_await agent::bus_rivals(bus, shortly()); });
  EXPECT_FALSE(*out);
}

}  // namespace
}  // namespace haulout::testing
