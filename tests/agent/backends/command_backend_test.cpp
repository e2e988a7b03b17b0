// Tests the back end with real child processes: scripts in the test's own directory.
#include "agent/backends/command_backend.hpp"

#include <gmock/gmock.h>

#include "agent/ports/backend.hpp"
#include "tests/k8s/temp_dir.hpp"
#include "tests/support/real_time.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::agent {
namespace {
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(ExitCodesTest, NeitherOrBothIsUnknown) {
  const ExitCodes usual;
  EXPECT_EQ(usual.need(0), Need::yes);
  EXPECT_EQ(usual.need(1), Need::no);
  for (const int other : {-1, 2, 77, 126, 127, 128, 255}) EXPECT_EQ(usual.need(other), Need::unknown) << other;
  const ExitCodes own{.yes = {100, 102, 5}, .no = {0, 5}};
  EXPECT_EQ(own.need(102), Need::yes);
  EXPECT_EQ(own.need(0), Need::no);
  EXPECT_EQ(own.need(5), Need::unknown);
  EXPECT_EQ(own.need(1), Need::unknown);
  EXPECT_EQ((ExitCodes{.yes = {}, .no = {}}.need(0)), Need::unknown);
}

class CommandBackendTest : public haulout::testing::RealTimeTest {
 protected:
  haulout::testing::TempDir dir;
  SeededRng rng{1};

  Pending ask(HostCommand command, CommandBackend::Options options = {}) {
    CommandBackend backend(clock, rng, std::move(command), std::move(options));
    return run(backend.pending(soon()));
  }
  Pending ask_script(const std::string& body) { return ask({dir.write_script("check", body)}); }
};

TEST_F(CommandBackendTest, ZeroIsYesWithItsFirstLine) {
  EXPECT_EQ(ask_script("echo; echo kernel is old; echo more"),
            (Pending{.need = Need::yes, .reasons = {"kernel is old"}}));
  const Pending silent = ask_script("exit 0");
  EXPECT_EQ(silent.need, Need::yes);
  EXPECT_THAT(silent.reasons, ElementsAre(AllOf(HasSubstr(dir / "check"), HasSubstr("0"))));
}

TEST_F(CommandBackendTest, OneIsNo) {
  EXPECT_EQ(ask_script("echo not now; exit 1"), Pending{.need = Need::no});
}

TEST_F(CommandBackendTest, EveryOtherEndIsUnknown) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"echo yes; echo broken pipe dream >&2; exit 2", "broken pipe dream"},
      {"no-such-program-anywhere", "127"},
      {"kill -9 $$", "signal 9"},
      {"head -c 3000000 /dev/zero; exit 0", "1 MiB"}};
  for (const auto& [body, problem] : cases) {
    const Pending answer = ask_script(body);
    EXPECT_EQ(answer.need, Need::unknown) << body;
    EXPECT_THAT(answer.problem, AllOf(HasSubstr(dir / "check"), HasSubstr(problem))) << body;
    EXPECT_TRUE(answer.reasons.empty());
  }
}

TEST_F(CommandBackendTest, AMissingCommandNeverMeansYes) {
  const std::string plain = dir.write("plain", "#!/bin/sh\nexit 0\n");
  for (const std::string& program : {dir / "missing", plain, dir.path(), std::string("no-such-program-anywhere")}) {
    for (const ExitCodes& codes : {ExitCodes{}, ExitCodes{.yes = {-1, 0, 126, 127}, .no = {1}}}) {
      const Pending answer = ask({program}, {.codes = codes});
      EXPECT_EQ(answer.need, Need::unknown) << program;
      EXPECT_THAT(answer.problem, HasSubstr(program));
    }
  }
}

TEST_F(CommandBackendTest, ASignalIsNeverAnExitStatus) {
  EXPECT_EQ(ask({dir.write_script("check", "kill -9 $$")}, {.codes = {.yes = {-1, 9, 137}, .no = {}}}).need,
            Need::unknown);
}

TEST_F(CommandBackendTest, TimeLimitAndDeadlineAreUnknown) {
  const std::string slow = dir.write_script("check", "sleep 1000");
  EXPECT_EQ(ask({slow}, {.time_limit = 50ms}).need, Need::unknown);
  CommandBackend backend(clock, rng, {slow}, {});
  const Pending late = run(backend.pending(clock.now() + 50ms));
  EXPECT_EQ(late.need, Need::unknown);
  EXPECT_THAT(late.problem, HasSubstr(slow));
}

TEST_F(CommandBackendTest, NothingIsGivenToAShell) {
  const HostCommand command{dir.write_script("check", "echo \"$1\""), {"; touch " + dir / "evil"}};
  EXPECT_THAT(ask(command).reasons, ElementsAre("; touch " + dir / "evil"));
  EXPECT_FALSE(fs::exists(dir / "evil"));
}

TEST_F(CommandBackendTest, AReasonIsShortAndPrintable) {
  EXPECT_THAT(ask_script("printf 'a\\000\\033[1m\\377\\n'").reasons, ElementsAre("a [1m?"));
  const Pending wordy = ask_script("head -c 100000 /dev/zero | tr '\\0' x");
  ASSERT_EQ(wordy.reasons.size(), 1u);
  EXPECT_LE(wordy.reasons.front().size(), 200u);
}

TEST_F(CommandBackendTest, HasNoVersionsAndNothingToApply) {
  CommandBackend backend(clock, rng, {"true"}, {});
  EXPECT_EQ(backend.name(), "command");
  EXPECT_EQ(*run(backend.booted(soon())), "");
  EXPECT_TRUE(run(backend.apply("", soon())));
}

class CommandBackendWaiting : public haulout::testing::VirtualTimeTest {};

TEST_F(CommandBackendWaiting, AsksAgainAboutEveryTenMinutes) {
  SeededRng rng{1};
  CommandBackend backend(clock, rng, {"true"}, {});
  std::set<Duration> waits;
  for (int i = 0; i < 20; ++i) {
    const TimePoint begin = clock.now();
    run(backend.changed());
    waits.insert(clock.now() - begin);
  }
  EXPECT_GE(*waits.begin(), recheck_interval * 4 / 5);
  EXPECT_LE(*waits.rbegin(), recheck_interval * 6 / 5);
  EXPECT_GT(waits.size(), 15u);
}

}  // namespace
}  // namespace haulout::agent
