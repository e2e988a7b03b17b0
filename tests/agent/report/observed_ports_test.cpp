#include "agent/report/reporter.hpp"

#include <gmock/gmock.h>

#include "tests/support/virtual_time.hpp"

namespace haulout::agent {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct FakeBackend : Backend {
  std::string name() const override { return "fake"; }
  asio::awaitable<Pending> pending(TimePoint) override { co_return answer; }
  Task<std::string> booted(TimePoint) override { co_return std::string("1.0"); }
  Task<> apply(std::string target, TimePoint) override {
    applied = target;
    co_return Result<>();
  }
  asio::awaitable<void> changed() override { co_return; }
  bool versions_are_shared() const override { return shared; }
  Pending answer{Need::yes, {"linux"}, "1.1"};
  std::string applied;
  bool shared = true;
};

struct FakeSlots : Slots {
  std::string name() const override { return "fake"; }
  Task<Turn> take(TimePoint) override { co_return answer; }
  Task<Turn> confirm(TimePoint) override { co_return answer; }
  Task<> release(TimePoint) override { co_return released; }
  asio::awaitable<void> changed() override { co_return; }
  void aim_at(const std::string& version) override { aimed_at = version; }
  std::string aimed_at;
  Result<Turn> answer = Turn{.ours = true, .slot = "s"};
  Result<> released;
};

class ObservedPortsTest : public haulout::testing::VirtualTimeTest {};

TEST_F(ObservedPortsTest, ABackendAnswersAsBeforeAndTheAnswerIsTold) {
  FakeBackend inner;
  std::vector<Pending> told;
  ObservedBackend backend(inner, [&](const Pending& pending) { told.push_back(pending); });
  EXPECT_EQ(run(backend.pending(TimePoint::max())), inner.answer);
  EXPECT_THAT(told, ElementsAre(inner.answer));
  EXPECT_EQ(backend.name(), "fake");
  EXPECT_TRUE(backend.versions_are_shared());
  inner.shared = false;
  EXPECT_FALSE(backend.versions_are_shared());
  EXPECT_EQ(*run(backend.booted(TimePoint::max())), "1.0");
  static_cast<void>(run(backend.apply("2.0", TimePoint::max())));
  EXPECT_EQ(inner.applied, "2.0");
  run(backend.changed());
}

TEST_F(ObservedPortsTest, OnlyWhatIsKnownAboutATurnIsTold) {
  FakeSlots inner;
  std::vector<bool> told;
  ObservedSlots slots(inner, [&](bool ours) { told.push_back(ours); });
  slots.aim_at("1.1");
  EXPECT_EQ(inner.aimed_at, "1.1");
  EXPECT_TRUE(run(slots.take(TimePoint::max()))->ours);
  inner.answer = Turn{.why = "n2 has it"};
  EXPECT_EQ(run(slots.confirm(TimePoint::max()))->why, "n2 has it");
  inner.answer = Error(Errc::timeout, "nobody knows");
  inner.released = Error(Errc::timeout, "nobody knows");
  EXPECT_FALSE(run(slots.take(TimePoint::max())));
  EXPECT_FALSE(run(slots.confirm(TimePoint::max())));
  EXPECT_FALSE(run(slots.release(TimePoint::max())));
  EXPECT_THAT(told, ElementsAre(true, false));
  inner.released = {};
  inner.answer = Turn{.ours = true};
  static_cast<void>(run(slots.take(TimePoint::max())));
  EXPECT_TRUE(run(slots.release(TimePoint::max())));
  EXPECT_THAT(told, ElementsAre(true, false, true, false));
}

}  // namespace
}  // namespace haulout::agent
