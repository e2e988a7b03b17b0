// Fixture with an agent's `Bus`, fake services and a private D-Bus daemon. They use one io_context and real sockets.
// The fixture owns all of them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <map>

#include "agent/dbus/bus.hpp"
#include "retry/real_clock.hpp"
#include "retry/task_group.hpp"
#include "tests/agent/dbus/fakes.hpp"
#include "tests/agent/dbus/private_bus.hpp"
#include "tests/k8s/temp_dir.hpp"

namespace haulout::testing {

using boost::asio::awaitable;

// The real clock, which a test can set forward. It also records the times at which its alarms are due.
class WatchedClock final : public Clock {
 public:
  TimePoint now() const override { return clock_.now() + ahead_; }
  WallTime wall_now() const override { return clock_.wall_now(); }
  std::unique_ptr<Alarm> set_alarm(boost::asio::any_io_executor executor, TimePoint when,
                                   std::function<void()> ring) override {
    auto watched = std::make_unique<Watched>(*this, when);
    watched->arm = [this, executor = std::move(executor), when, ring = std::move(ring)] {
      return clock_.set_alarm(executor, when == TimePoint::max() ? when : when - ahead_, ring);
    };
    watched->real = watched->arm();
    return watched;
  }
  // Sets the clock forward. Alarms that are due by then ring at once.
  void skip(Duration time) {
    ahead_ += time;
    for (const auto& [when, watched] : due_) watched->real = watched->arm();
  }
  bool wakes_within(Duration from, Duration to) const {
    const auto next = due_.lower_bound(now() + from);
    return next != due_.end() && next->first <= now() + to;
  }
  // Returns the number of alarms with a finite time.
  std::size_t due() const {
    return static_cast<std::size_t>(std::distance(due_.begin(), due_.lower_bound(TimePoint::max())));
  }

 private:
  struct Watched final : Alarm {
    Watched(WatchedClock& owner, TimePoint when) : clock(owner), self(owner.due_.emplace(when, this)) {}
    ~Watched() override { clock.due_.erase(self); }
    WatchedClock& clock;
    std::multimap<TimePoint, Watched*>::iterator self;
    std::function<std::unique_ptr<Alarm>()> arm;
    std::unique_ptr<Alarm> real;
  };

  RealClock clock_;
  Duration ahead_{};
  std::multimap<TimePoint, Watched*> due_;
};

class BusTest : public ::testing::Test {
 protected:
  boost::asio::io_context context{1};
  WatchedClock clock;
  SeededRng rng{1};
  TempDir root;
  Notifier event{context.get_executor()};
  agent::Bus bus{context.get_executor(), clock, rng, agent::system_bus_addresses(root.path(), nullptr)};

  TimePoint in(Duration delta) const { return clock.now() + delta; }
  // A deadline so far away that it never passes in a successful run.
  TimePoint soon() const { return in(std::chrono::seconds(50)); }
  // A deadline near enough that a test can wait for it.
  TimePoint shortly() const { return in(std::chrono::milliseconds(100)); }

  // Waits until `holds` returns true, and checks it after each event. Throws if no event comes before soon().
  awaitable<void> until(std::function<bool()> holds) {
    while (!holds()) {
      const bool happened = co_await event.wait_until(clock, soon());
      if (!happened) throw std::runtime_error("what the test waits for did not happen");
    }
  }

  // Runs `body` together with the bus and the services. The services must be connected already.
  void run(std::vector<FakeService*> services, std::function<awaitable<void>(TaskGroup&)> body) {
    bool ended = false;
    std::exception_ptr failure;
    boost::asio::co_spawn(context, with_task_group([&](TaskGroup& group) {
                            group.spawn(bus.run());
                            for (FakeService* const service : services) group.spawn(service->serve());
                            return body(group);
                          }),
                          [&](std::exception_ptr thrown) {
                            ended = true;
                            for (FakeService* const service : services) service->end();
                            failure = thrown;
                          });
    context.run_for(std::chrono::seconds(60));
    if (failure) std::rethrow_exception(failure);
    ASSERT_TRUE(ended) << "hung";
  }
};

// Fixture with a bus daemon that runs from the start.
class LiveBusTest : public BusTest {
 protected:
  explicit LiveBusTest(std::string rules = "") : daemon(root.path(), std::move(rules)) { daemon.start(); }

  // `changed` waits for changes. Returns true if it returns seven to twelve minutes from now although nothing changes.
  bool looks_again(std::function<awaitable<void>()> changed) {
    std::size_t returned = 0;
    const auto wait = [&]() -> awaitable<void> {
      for (;;) {
        co_await changed();
        ++returned;
        event.notify();
      }
    };
    bool looks = false;
    run({}, [&](TaskGroup& group) -> awaitable<void> {
      co_await changed();  // returns when the connection is established
      group.spawn(wait());
      co_await boost::asio::post(context, boost::asio::use_awaitable);
      looks = clock.wakes_within(std::chrono::minutes(7), std::chrono::minutes(12));
      if (!looks) co_return;
      const std::size_t before = returned;
      clock.skip(std::chrono::minutes(12));
      co_await until([&] { return returned > before; });
    });
    return looks;
  }

  PrivateBus daemon;
  FakeLogin1 login1{context.get_executor(), clock, event};
  FakeSystemd1 systemd1{context.get_executor(), clock, event};
  FakeUpdate1 update1{context.get_executor(), clock, event};
  FakeRpmOstree1 rpm_ostree1{context.get_executor(), clock, event};
};

template <class T>
Error error_of(const Result<T>& result) {
  if (result) throw std::runtime_error("a failure was expected");
  return result.error();
}

}  // namespace haulout::testing
