#include <gmock/gmock.h>

#include "agent/backends/file_backend.hpp"
#include "retry/deadline.hpp"
#include "tests/agent/backends/watching_fixture.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class FileBackendTest : public WatchingTest {
 protected:
  FileBackend backend{root, clock, rng, "/run/sentinel"};
  const std::string path = dir / "run/sentinel";

  FileBackendTest() { fs::create_directories(dir / "run"); }
  Need need() { return pending(backend).need; }
};

TEST_F(FileBackendTest, TheFileIsTheAnswer) {
  EXPECT_EQ(pending(backend), Pending{.need = Need::no});
  dir.write("run/sentinel", "reboot\n");
  EXPECT_EQ(pending(backend), (Pending{.need = Need::yes, .reasons = {"reboot"}}));
  dir.write("run/sentinel", "");
  EXPECT_THAT(pending(backend).reasons, ElementsAre(HasSubstr("/run/sentinel")));
  fs::remove_all(dir / "run");
  EXPECT_EQ(need(), Need::no);
  dir.write("run", "a file in place of the directory");
  EXPECT_EQ(need(), Need::no);
}

TEST_F(FileBackendTest, WhatCannotBeReadIsUnknown) {
  fs::create_directories(path);
  const Pending answer = pending(backend);
  EXPECT_EQ(answer.need, Need::unknown);
  EXPECT_THAT(answer.problem, HasSubstr("/run/sentinel"));
  fs::remove(path);
  fs::create_symlink("sentinel", path);
  EXPECT_EQ(need(), Need::unknown);
  fs::remove(path);
  fs::create_symlink("/run/nowhere", path);
  EXPECT_EQ(need(), Need::no);

  FileBackend nowhere(HostRoot(dir / "no-such-root"), clock, rng, "/run/sentinel");
  EXPECT_EQ(pending(nowhere).need, Need::unknown);
}

TEST_F(FileBackendTest, AReasonIsShortAndPrintable) {
  dir.write("run/sentinel", std::string(100'000, 'x') + "\n");
  ASSERT_EQ(pending(backend).reasons.size(), 1u);
  EXPECT_LE(pending(backend).reasons.front().size(), 200u);
  dir.write("run/sentinel", std::string("a\0\x1b[1m\xff", 7));
  EXPECT_THAT(pending(backend).reasons, ElementsAre("a [1m?"));
}

TEST_F(FileBackendTest, HasNoVersionsAndNothingToApply) {
  EXPECT_EQ(backend.name(), "file");
  EXPECT_EQ(*run(backend.booted(TimePoint::max())), "");
  EXPECT_TRUE(run(backend.apply("", TimePoint::max())));
}

TEST_F(FileBackendTest, WakesWhenTheFileComesChangesAndGoes) {
  EXPECT_EQ(need(), Need::no);
  EXPECT_EQ(woken_after(backend, [&] { dir.write("run/sentinel", "a"); }), a_minute);
  EXPECT_EQ(need(), Need::yes);
  EXPECT_EQ(woken_after(backend, [&] { dir.write("run/sentinel", "b"); }), a_minute);
  EXPECT_THAT(pending(backend).reasons, ElementsAre("b"));
  EXPECT_EQ(woken_after(backend, [&] { fs::remove(path); }), a_minute);
  EXPECT_EQ(need(), Need::no);
  dir.write("run/other", "");
  EXPECT_EQ(need(), Need::no);
  EXPECT_EQ(woken_after(backend, [&] { fs::rename(dir / "run/other", path); }), a_minute);
  EXPECT_EQ(need(), Need::yes);
  EXPECT_EQ(woken_after(backend, [&] { fs::rename(path, dir / "run/other"); }), a_minute);
  EXPECT_EQ(need(), Need::no);
}

TEST_F(FileBackendTest, WhatHappensBetweenAskingAndWaitingIsNotLost) {
  EXPECT_EQ(need(), Need::no);
  dir.write("run/sentinel", "");
  EXPECT_EQ(woken_after(backend), at_once);
  EXPECT_EQ(need(), Need::yes);
  EXPECT_THAT(woken_after(backend), only_the_safety_net()) << "told twice";
}

// transactional-update removes its sentinel file at each start. It writes the file again when it fails or has made a
// snapshot. So the need is unknown for a quarter of an hour after the file was removed.
TEST_F(FileBackendTest, TheMarkOfTransactionalUpdateIsNotGoneWhileItMayComeBack) {
  FileBackend suse(root, clock, rng, "/run/reboot-needed");
  EXPECT_EQ(pending(suse).need, Need::no) << "nor does a boot leave one";
  dir.write("run/reboot-needed", "reboot\n");
  EXPECT_EQ(pending(suse).need, Need::yes);
  run(clock.sleep_until(clock.now() + 5h));
  fs::remove(dir / "run/reboot-needed");
  EXPECT_EQ(pending(suse).need, Need::unknown);
  run(clock.sleep_until(clock.now() + 14min));
  EXPECT_THAT(pending(suse).problem, HasSubstr("/run/reboot-needed"));
  dir.write("run/reboot-needed", "reboot\n");
  EXPECT_EQ(pending(suse).need, Need::yes);
  fs::remove(dir / "run/reboot-needed");
  EXPECT_EQ(pending(suse).need, Need::unknown) << "the time begins anew";
  run(clock.sleep_until(clock.now() + 14min));
  EXPECT_EQ(pending(suse).need, Need::unknown);
  run(clock.sleep_until(clock.now() + 1min));
  EXPECT_EQ(pending(suse), Pending{.need = Need::no});
  run(clock.sleep_until(clock.now() + 1min));
  EXPECT_EQ(pending(suse), Pending{.need = Need::no});
}

TEST_F(FileBackendTest, OtherFilesDoNotWakeIt) {
  EXPECT_EQ(need(), Need::no);
  EXPECT_THAT(woken_after(backend, [&] { dir.write("run/sentinel.tmp", ""); }), only_the_safety_net());
}

TEST_F(FileBackendTest, TheSafetyNetIsJitteredAndInVirtualTime) {
  EXPECT_EQ(need(), Need::no);
  std::set<Duration> waits;
  for (int i = 0; i < 20; ++i) waits.insert(woken_after(backend));
  EXPECT_THAT(waits, ::testing::Each(only_the_safety_net()));
  EXPECT_GT(waits.size(), 15u);
}

TEST_F(FileBackendTest, WaitsForADirectoryThatIsNotThereYet) {
  FileBackend deep(root, clock, rng, "/run/a/b/sentinel");
  EXPECT_EQ(pending(deep).need, Need::no);
  EXPECT_EQ(woken_after(deep, [&] { fs::create_directory(dir / "run/a"); }), a_minute);
  EXPECT_EQ(pending(deep).need, Need::no);
  EXPECT_EQ(woken_after(deep, [&] { dir.write("run/a/b/sentinel", ""); }), a_minute);
  EXPECT_EQ(pending(deep).need, Need::yes);
}

TEST_F(FileBackendTest, ADirectoryThatVanishesAndComesBack) {
  EXPECT_EQ(need(), Need::no);
  EXPECT_EQ(woken_after(backend, [&] { fs::remove_all(dir / "run"); }), a_minute);
  EXPECT_EQ(need(), Need::no);
  EXPECT_EQ(woken_after(backend, [&] { fs::create_directory(dir / "run"); }), a_minute);
  EXPECT_EQ(need(), Need::no);
  EXPECT_EQ(woken_after(backend, [&] { dir.write("run/sentinel", ""); }), a_minute);
  EXPECT_EQ(need(), Need::yes);

  EXPECT_EQ(woken_after(backend, [&] { fs::rename(dir / "run", dir / "away"); }), a_minute);
  EXPECT_EQ(need(), Need::no);
  EXPECT_EQ(woken_after(backend, [&] { fs::rename(dir / "away", dir / "run"); }), a_minute);
  EXPECT_EQ(need(), Need::yes);
}

TEST_F(FileBackendTest, FollowsLinksToWhatTheyMean) {
  fs::create_directories(dir / "var");
  fs::create_symlink("/run", dir / "var/run");
  FileBackend linked(root, clock, rng, "/var/run/sentinel");
  EXPECT_EQ(pending(linked).need, Need::no);
  EXPECT_EQ(woken_after(linked, [&] { dir.write("run/sentinel", ""); }), a_minute);
  EXPECT_EQ(pending(linked).need, Need::yes);

  dir.write("store/a", "from a");
  FileBackend link(root, clock, rng, "/run/link");
  EXPECT_EQ(pending(link).need, Need::no);
  EXPECT_EQ(woken_after(link, [&] { fs::create_symlink("/store/a", dir / "run/link"); }), a_minute);
  EXPECT_THAT(pending(link).reasons, ElementsAre("from a"));
  EXPECT_EQ(woken_after(link, [&] { fs::remove(dir / "store/a"); }), a_minute) << "its target went";
  EXPECT_EQ(pending(link).need, Need::no);
  EXPECT_EQ(woken_after(link, [&] { fs::remove(dir / "run/link"); }), a_minute) << "the link went";
}

Task<> as_task(boost::asio::awaitable<void> wait) {
  co_await std::move(wait);
  co_return Result<>();
}

TEST_F(FileBackendTest, WaitingCanBeCancelled) {
  EXPECT_EQ(need(), Need::no);
  const auto ended = run(with_deadline(clock, clock.now() + 1min, as_task(backend.changed())));
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code(), Errc::timeout);
  EXPECT_EQ(woken_after(backend, [&] { dir.write("run/sentinel", ""); }), a_minute) << "no longer usable";
}

TEST_F(FileBackendTest, WaitingBeforeAskingWorksToo) {
  EXPECT_EQ(woken_after(backend, [&] { dir.write("run/sentinel", ""); }), a_minute);
  FileBackend nowhere(HostRoot(dir / "no-such-root"), clock, rng, "/run/sentinel");
  EXPECT_THAT(woken_after(nowhere), only_the_safety_net());
}

using Content = Result<std::optional<std::string>>;

Content holding(std::string text) {
  return std::optional<std::string>(std::move(text));
}

TEST(SentinelAnswer, PresenceIsYesWithItsFirstLineOrItsName) {
  const Pending with_text = sentinel_answer(holding("\n*** System restart required ***\nx"), "/run/s");
  EXPECT_EQ(with_text.need, Need::yes);
  EXPECT_THAT(with_text.reasons, ElementsAre("*** System restart required ***"));
  for (const std::string& blank : {""s, "\n\n"s, "\0\0"s}) {
    const Pending empty = sentinel_answer(holding(blank), "/run/s");
    EXPECT_EQ(empty.need, Need::yes);
    ASSERT_EQ(empty.reasons.size(), 1u);
    EXPECT_THAT(empty.reasons.front(), ::testing::HasSubstr("/run/s"));
  }
}

TEST(SentinelAnswer, AbsenceIsNo) {
  EXPECT_EQ(sentinel_answer(std::optional<std::string>(), "/run/s"), Pending{.need = Need::no});
}

TEST(SentinelAnswer, AnErrorIsUnknownWithTheProblem) {
  const Pending answer = sentinel_answer(Error(Errc::unavailable, "cannot read /run/s"), "/run/s");
  EXPECT_EQ(answer, (Pending{.need = Need::unknown, .problem = "cannot read /run/s"}));
}

TEST(EitherAnswer, YesBeatsUnknownBeatsNo) {
  const Pending yes{.need = Need::yes, .reasons = {"r"}};
  const Pending also{.need = Need::yes, .reasons = {"s"}};
  const Pending no{.need = Need::no};
  const Pending unknown{.need = Need::unknown, .problem = "p"};
  const Pending puzzle{.need = Need::unknown, .problem = "q"};
  EXPECT_EQ(either(yes, no), yes);
  EXPECT_EQ(either(no, yes), yes);
  EXPECT_EQ(either(yes, unknown), yes);
  EXPECT_EQ(either(unknown, yes), yes);
  EXPECT_EQ(either(no, unknown), unknown);
  EXPECT_EQ(either(unknown, no), unknown);
  EXPECT_EQ(either(unknown, puzzle), unknown);
  EXPECT_EQ(either(no, no), no);
  EXPECT_THAT(either(yes, also).reasons, ElementsAre("r", "s"));
}

}  // namespace
}  // namespace haulout::agent
