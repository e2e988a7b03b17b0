#include "tests/k8s/exec_plugin_fixture.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/socket.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>

namespace haulout::k8s {
namespace {
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(ExecPluginTest, GivesItsCredential) {
  plugin.args = {"one", "two words"};
  plugin.env = {{"FLAVOUR", "sweet"}, {"HOME", "/elsewhere"}};
  plugin.provide_cluster_info = true;
  plugin.cluster_info_json = R"({"server":"https://h"})";
  auto credential = run_script("printf '%s|' \"$@\" \"$FLAVOUR\" \"$HOME\" > " + (dir / "args") +
                               "\nprintf %s \"$KUBERNETES_EXEC_INFO\" > " + (dir / "info") + "\ncat > " +
                               (dir / "stdin") + "\necho chatter >&2\n" + print(R"({"token":"tok"})"));
  ASSERT_TRUE(credential) << credential.error().message();
  EXPECT_EQ(credential->token, "tok");
  EXPECT_EQ(file("args"), "one|two words|sweet|/elsewhere|");
  EXPECT_EQ(file("stdin"), "");
  const auto info = nlohmann::json::parse(file("info"));
  EXPECT_EQ(info["spec"]["interactive"], false);
  EXPECT_EQ(info["spec"]["cluster"]["certificate-authority-data"], "Q0E=");
  EXPECT_FALSE(has_children());
}

TEST_F(ExecPluginTest, AFailureShowsTheEndOfItsStderrAndTheHint) {
  auto credential = run_script(print(R"({"token":"s3cret"})") +
                               "i=0; while [ $i -lt 500 ]; do echo \"noise $i .........\" >&2; i=$((i+1)); done\n"
                               "printf 'log in\\nfirst\\033[2J\\n' >&2\nexit 3\n");
  ASSERT_FALSE(credential);
  EXPECT_EQ(credential.error().code(), Errc::unavailable);
  EXPECT_THAT(credential.error().message(),
              AllOf(HasSubstr(plugin.command), HasSubstr("exit status 3"), HasSubstr("log in first [2J"),
                    HasSubstr("get it [1m from us"), Not(HasSubstr("s3cret")), Not(HasSubstr("noise 0 "))));
  EXPECT_LT(credential.error().message().size(), 3000u);
}

TEST_F(ExecPluginTest, ASignalIsAFailure) {
  auto credential = run_script("kill -9 $$\n");
  ASSERT_FALSE(credential);
  EXPECT_THAT(credential.error().message(), HasSubstr("signal 9"));
}

TEST_F(ExecPluginTest, AMissingProgramIsNamedWithItsHint) {
  for (const std::string& command : {dir / "missing", std::string("haulout-no-such-plugin")}) {
    plugin.command = command;
    auto credential = run(run_exec_plugin(clock, plugin, ""));
    ASSERT_FALSE(credential);
    EXPECT_EQ(credential.error().code(), Errc::unavailable);
    EXPECT_THAT(credential.error().message(),
                AllOf(HasSubstr(command), HasSubstr("No such file"), HasSubstr("get it")));
  }
}

TEST_F(ExecPluginTest, ABareNameIsFoundInThePath) {
  plugin.command = "sh";
  plugin.args = {"-c", print(R"({"token":"tok"})")};
  auto credential = run(run_exec_plugin(clock, plugin, ""));
  ASSERT_TRUE(credential) << credential.error().message();
}

TEST_F(ExecPluginTest, TooMuchOutputIsCutShort) {
  auto credential = run_script("while :; do echo 0123456789012345678901234567890123456789; done\n");
  ASSERT_FALSE(credential);
  EXPECT_THAT(credential.error().message(), HasSubstr("1 MiB"));
  EXPECT_FALSE(has_children());
}

TEST_F(ExecPluginTest, MuchOutputOfBothKindsDoesNotJam) {
  // More output than the pipes hold, alternately on both pipes.
  auto credential = run_script(
      "i=0; while [ $i -lt 3000 ]; do echo ' ......................................'; "
      "echo '........................................' >&2; i=$((i+1)); done\n");
  ASSERT_FALSE(credential);
  EXPECT_THAT(credential.error().message(), HasSubstr("JSON"));
}

TEST_F(ExecPluginTest, AHelperLeftInTheBackgroundDoesNotHoldUs) {
  const TimePoint before = clock.now();
  auto credential = run_script("sleep 300 &\necho $! > " + (dir / "helper") + "\n" + print(R"({"token":"tok"})"));
  EXPECT_TRUE(credential);
  EXPECT_LT(clock.now() - before, 60s);
  ::kill(std::stoi(file("helper")), SIGKILL);
}

TEST_F(ExecPluginTest, NoDescriptorOfOursIsInherited) {
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  auto credential =
      run_script("[ -e /proc/$$/fd/" + std::to_string(sockets[0]) + " ] && exit 9\n" + print(R"({"token":"tok"})"));
  EXPECT_TRUE(credential) << credential.error().message();
  ::close(sockets[0]);
  ::close(sockets[1]);
}

TEST_F(ExecPluginTest, CancellingKillsAndReapsIt) {
  // Cancels the run from outside as soon as the script has shown that it runs.
  plugin.command = dir.write_script(
      "login", "echo $$ > " + (dir / "pid.new") + "\nmv " + (dir / "pid.new") + " " + (dir / "pid") + "\nsleep 300\n");
  asio::cancellation_signal signal;
  bool cancelled = false;
  asio::co_spawn(context, run_exec_plugin(clock, plugin, ""),
                 asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr thrown, Result<ExecCredential>) {
                   cancelled = thrown != nullptr;
                 }));
  while (file("pid").empty()) context.run_one_for(1ms);
  const pid_t pid = std::stoi(file("pid"));
  asio::post(context, [&] { signal.emit(asio::cancellation_type::terminal); });
  context.restart();
  context.run();
  EXPECT_TRUE(cancelled);
  EXPECT_NE(::kill(pid, 0), 0);
  EXPECT_FALSE(has_children());
}

}  // namespace
}  // namespace haulout::k8s
