#include "cli/terminal/console.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <csignal>

#include "agent/process/process.hpp"
#include "cli/program/program.hpp"
#include "tests/support/text_sink.hpp"

namespace haulout::cli {
namespace {

using haulout::testing::TextSink;

TEST(ConsoleTest, LinesAppearAboveTheBlock) {
  TextSink text;
  TextSink errors;
  Console console(text, errors);
  console.say("one");
  console.set_block({"a", "b"});
  console.say("two");
  console.warn("three");
  console.set_block({});
  console.say("four");
  EXPECT_EQ(text.text,
            "one\n"
            "a\nb\n"
            "\r\x1b[2A\x1b[Jtwo\na\nb\n"
            "\r\x1b[2A\x1b[J"
            "a\nb\n"
            "\r\x1b[2A\x1b[J"
            "four\n");
  EXPECT_EQ(errors.text, "three\n");
}

TEST(ConsoleTest, WithoutABlockNothingButTheLineIsWritten) {
  TextSink text;
  TextSink errors;
  Console console(text, errors);
  console.warn("careful");
  console.set_block({});
  EXPECT_EQ(text.text, "");
  EXPECT_EQ(errors.text, "careful\n");
}

TEST(ConsoleTest, TheBlockIsAwayWhileAnotherProgramHasTheTerminal) {
  TextSink terminal;
  Console console(terminal, terminal);
  console.set_block({"a", "b"});
  console.step_aside();
  console.pass_on("open https://login\n");
  console.set_block({"c"});
  console.warn("careful");
  console.pass_on("code: ");
  console.come_back();
  console.set_block({"d"});
  EXPECT_EQ(terminal.text,
            "a\nb\n"
            "\r\x1b[2A\x1b[J"
            "open https://login\ncareful\ncode: \n"
            "c\n"
            "\r\x1b[1A\x1b[Jd\n");
}

TEST(ConsoleTest, WithoutABlockAnotherProgramsWordsAreAllThereIs) {
  TextSink text;
  TextSink errors;
  Console console(text, errors);
  const k8s::PluginStage stage = plugin_stage(console);
  stage.enter();
  stage.show("log in\n");
  stage.leave();
  EXPECT_EQ(text.text, "");
  EXPECT_EQ(errors.text, "log in\n");
}

class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe(ends_), 0); }
  ~Pipe() {
    close_reader();
    ::close(ends_[1]);
  }
  int writer() const { return ends_[1]; }
  void close_reader() {
    if (ends_[0] >= 0) ::close(ends_[0]);
    ends_[0] = -1;
  }
  std::string read_available() {
    ::fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    std::string result;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(ends_[0], buffer, sizeof buffer)) > 0;)
      result.append(buffer, static_cast<std::size_t>(n));
    return result;
  }

 private:
  int ends_[2] = {-1, -1};
};

// Ignores SIGPIPE, as the program does. So a write to a pipe without a reader returns an error and does not kill the
// process.
class FdSinkTest : public ::testing::Test {
 protected:
  FdSinkTest() : before_(std::signal(SIGPIPE, SIG_IGN)) {}
  ~FdSinkTest() override { std::signal(SIGPIPE, before_); }

 private:
  void (*before_)(int);
};

TEST_F(FdSinkTest, AReaderThatHasGoneIsForgotten) {
  Pipe pipe;
  agent::FdSink sink(pipe.writer());
  pipe.close_reader();
  sink.write("nobody hears this");
  EXPECT_TRUE(sink.broken());
  sink.write("nor this");
  sink.flush(-1);
  EXPECT_EQ(sink.backlog(), 0u);
}

TEST_F(FdSinkTest, AReaderThatHasGoneIsFoundWithoutWriting) {
  Pipe pipe;
  agent::FdSink sink(pipe.writer());
  EXPECT_TRUE(sink.has_reader());
  pipe.close_reader();
  EXPECT_FALSE(sink.has_reader());
  const int file = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  agent::FdSink nowhere(file);
  EXPECT_TRUE(nowhere.has_reader());
  ::close(file);
}

TEST_F(FdSinkTest, OutputThatACommandWasRunForAndCannotBeKeptIsNoSuccess) {
  for (const bool matters : {true, false}) {
    const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
    agent::FdSink out(full);
    Pipe pipe;
    agent::FdSink err(pipe.writer());
    out.write("haulout 1.0\n");
    EXPECT_EQ(finish_output(out, err, matters, agent::exit_done, -1),
              matters ? agent::exit_not_done : agent::exit_done);
    EXPECT_EQ(pipe.read_available().find("error: the output could not be written: No space left") == 0, matters);
    ::close(full);
  }
}

TEST_F(FdSinkTest, AFullDiskIsNoReaderThatHasGone) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  agent::FdSink sink(full);
  sink.write("a report");
  EXPECT_EQ(sink.failure(), ENOSPC);
  Pipe pipe;
  agent::FdSink nobody(pipe.writer());
  pipe.close_reader();
  nobody.write("a report");
  EXPECT_EQ(nobody.failure(), 0);
  ::close(full);
}

TEST_F(FdSinkTest, WhatIsSaidInOneTurnIsWrittenTogetherAndInOrder) {
  boost::asio::io_context context(1);
  Pipe pipe;  // stdout and stderr share one pipe, as they share a terminal
  agent::FdSink out(pipe.writer()), err(pipe.writer());
  out.gather(context.get_executor());
  err.write_after(out);
  out.write("one\n");
  out.write("two\n");
  EXPECT_EQ(pipe.read_available(), "");
  context.run();
  EXPECT_EQ(pipe.read_available(), "one\ntwo\n");
  out.write("three\n");
  err.write("oh\n");
  out.write("four\n");
  EXPECT_EQ(pipe.read_available(), "three\noh\n");
  out.flush(-1);
  EXPECT_EQ(pipe.read_available(), "four\n");
  context.restart();
  context.run();
  EXPECT_EQ(pipe.read_available(), "");
}

TEST_F(FdSinkTest, AReaderThatDoesNotReadIsNotWaitedFor) {
  Pipe pipe;
  agent::FdSink sink(pipe.writer());
  std::string sent;
  for (int i = 0; i < 300; ++i) {
    const std::string line = std::string(999, static_cast<char>('a' + i % 26)) + "\n";
    sent += line;
    sink.write(line);  // a blocking write would hang here, because a pipe holds 64 KiB
  }
  EXPECT_GT(sink.backlog(), 0u);
  sink.flush(0);
  std::string received;
  while (sink.backlog() != 0) {
    received += pipe.read_available();
    sink.pump();
  }
  received += pipe.read_available();
  EXPECT_EQ(received, sent) << "nothing is lost and nothing comes twice";
}

}  // namespace
}  // namespace haulout::cli
