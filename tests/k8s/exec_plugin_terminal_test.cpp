// Plugins on a terminal, the person who waits for them, and their time limits.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>

#include "tests/k8s/exec_plugin_fixture.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::k8s {
namespace {
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Prints the script's process group, so that a test can compare it with that of the test process.
const std::string tell_group = "cut -d' ' -f5 /proc/$$/stat >&2\n";

TEST_F(ExecPluginTest, OnATerminalThePersonHearsItWhateverItsInteractiveMode) {
  const Terminal terminal;
  const Redirected on_terminal(STDERR_FILENO, terminal.fd());
  for (const auto mode : {ExecPlugin::InteractiveMode::never, ExecPlugin::InteractiveMode::if_available}) {
    plugin.interactive_mode = mode;
    seen.text.clear();
    auto credential =
        run_script("printf 'code: ' >&2\ncat > " + (dir / "stdin") + "\nprintf %s \"$KUBERNETES_EXEC_INFO\" > " +
                   (dir / "info") + "\n" + tell_group + print(R"({"token":"tok"})"));
    ASSERT_TRUE(credential) << credential.error().message();
    EXPECT_EQ(seen.text, fmt::format("<code: {}\n>", ::getpgrp())) << "it may read /dev/tty, as we may";
    EXPECT_EQ(file("stdin"), "") << "that is no terminal";
    EXPECT_EQ(nlohmann::json::parse(file("info"))["spec"]["interactive"], false);
  }
  auto failed = run_script("echo 'no such user' >&2\nexit 1\n");
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message(), HasSubstr("exit status 1: no such user"));
}

TEST_F(ExecPluginTest, WithoutATerminalNobodyHearsItAndItHasAGroupOfItsOwn) {
  auto failed = run_script(tell_group + "exit 1\n");
  ASSERT_FALSE(failed);
  EXPECT_EQ(seen.text, "");
  EXPECT_THAT(failed.error().message(), Not(HasSubstr(fmt::format("exit status 1: {};", ::getpgrp()))));
}

TEST_F(ExecPluginTest, ItsInteractiveModeDecidesAboutStdin) {
  const Terminal terminal;
  const Redirected from_terminal(STDIN_FILENO, terminal.fd());
  for (const auto mode : {ExecPlugin::InteractiveMode::never, ExecPlugin::InteractiveMode::if_available,
                          ExecPlugin::InteractiveMode::always}) {
    plugin.interactive_mode = mode;
    seen.text.clear();
    auto credential = run_script("echo asked >&2\n[ -t 0 ] && echo terminal > " + (dir / "stdin") + "\n" +
                                 print(R"({"token":"tok"})"));
    ASSERT_TRUE(credential) << credential.error().message();
    const bool interactive = mode != ExecPlugin::InteractiveMode::never;
    EXPECT_EQ(file("stdin"), interactive ? "terminal\n" : "");
    EXPECT_EQ(seen.text, interactive ? "<asked\n>" : "") << "stderr may be a file that the person looks into";
  }
}

TEST_F(ExecPluginTest, AlwaysInteractiveNeedsATerminal) {
  plugin.interactive_mode = ExecPlugin::InteractiveMode::always;
  auto refused = run_script(print(R"({"token":"tok"})"));
  plugin.interactive_mode = ExecPlugin::InteractiveMode::if_available;
  auto allowed = run_script(print(R"({"token":"tok"})"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), AllOf(HasSubstr("Always"), HasSubstr("terminal")));
  EXPECT_TRUE(allowed);
}

// Virtual time does not wait for the child process, so the time limit of the plugin is reached at once.
class ExecPluginLimits : public haulout::testing::VirtualTimeTest {
 protected:
  haulout::testing::TempDir dir;
  ExecPlugin plugin;
  Null null;
  Redirected no_input{STDIN_FILENO, null.fd()};
  Redirected no_errors{STDERR_FILENO, null.fd()};
  ExecPluginLimits() {
    plugin.api_version = v1;
    plugin.command = dir.write_script("login", "exec sleep 300\n");
  }
};

TEST_F(ExecPluginLimits, SixtySeconds) {
  auto credential = run(run_exec_plugin(clock, plugin, ""));
  ASSERT_FALSE(credential);
  EXPECT_EQ(credential.error().code(), Errc::unavailable);
  EXPECT_THAT(credential.error().message(), HasSubstr(plugin.command));
  EXPECT_EQ(elapsed(), 60s);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST_F(ExecPluginLimits, FiveMinutesWhereAPersonHearsIt) {
  const Terminal terminal;
  const Redirected on_terminal(STDERR_FILENO, terminal.fd());
  plugin.interactive_mode = ExecPlugin::InteractiveMode::never;
  ASSERT_FALSE(run(run_exec_plugin(clock, plugin, "")));
  EXPECT_EQ(elapsed(), 5min);
}

// A clock whose alarm rings when the test calls `ring`.
class ClockByHand final : public Clock {
 public:
  TimePoint now() const override { return {}; }
  WallTime wall_now() const override { return {}; }
  std::unique_ptr<Alarm> set_alarm(asio::any_io_executor, TimePoint, std::function<void()> to_ring) override {
    ring = std::move(to_ring);
    return std::make_unique<Alarm>();
  }
  std::function<void()> ring;
};

TEST_F(ExecPluginTest, AtTheEndOfItsTimeItsWordsAreTold) {
  const Terminal terminal;
  const Redirected on_terminal(STDERR_FILENO, terminal.fd());
  plugin.command = dir.write_script("login", "printf 'open\\033 https://login\\nwaiting' >&2\nexec sleep 300\n");
  ClockByHand late;
  PluginStage stage = seen.stage();
  stage.show = [&](std::string_view said) {
    seen.text += said;
    if (seen.text.ends_with("waiting")) asio::post(context, [&] { late.ring(); });
  };
  auto credential = run(run_exec_plugin(late, plugin, "", stage));
  ASSERT_FALSE(credential);
  EXPECT_THAT(credential.error().message(),
              HasSubstr("did not finish within 300 s; it said: open https://login waiting"));
  EXPECT_TRUE(seen.text.ends_with("waiting>")) << seen.text;
  EXPECT_FALSE(has_children());
}

}  // namespace
}  // namespace haulout::k8s
