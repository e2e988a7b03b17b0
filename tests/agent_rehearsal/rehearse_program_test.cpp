// The exit codes of `haulout rehearse -f`, which scripts rely on.
#include "agent/rehearsal/rehearse_program.hpp"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/command_line.hpp"
#include "agent/exit_code.hpp"
#include "agent/files.hpp"
#include "retry/real_clock.hpp"
#include "tests/agent_rehearsal/a_snapshot.hpp"

namespace haulout::agent {
namespace {

using ::testing::HasSubstr;

class RehearseProgramTest : public ::testing::Test, protected ASnapshot {
 protected:
  RehearseProgramTest() { add_node("n1", "2"); }
  ~RehearseProgramTest() override {
    std::remove(path_.c_str());
    ::close(err_);
    ::close(out_);
  }

  int rehearse_file(const std::string& text, const std::string& node) {
    EXPECT_TRUE(write_whole_file(path_, text));
    const auto settings = std::get<Settings>(parse_command_line("haulout", {"rehearse", node, "-f", path_}));
    FdSink out(out_), err(err_);
    Process process{context_.get_executor(), clock_, rng_, out, err, {}, "haulout"};
    return rehearse(process, settings, [](auto) {
      ADD_FAILURE() << "nothing is read from a cluster";
      return 0;
    });
  }
  std::string errors() const {
    std::string text(4096, '\0');
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::pread(err_, text.data(), text.size(), 0))));
    return text;
  }

  const std::string path_ = ::testing::TempDir() + "haulout-rehearse-program.json";
  int out_ = ::memfd_create("out", MFD_CLOEXEC), err_ = ::memfd_create("err", MFD_CLOEXEC);
  boost::asio::io_context context_{1};
  RealClock clock_;
  SeededRng rng_{1};
};

TEST_F(RehearseProgramTest, WhatIsPlayedToAGoodEnd) {
  EXPECT_EQ(rehearse_file(document(), "n1"), exit_done) << errors();
}

TEST_F(RehearseProgramTest, ANodeThatIsNotInTheSnapshot) {
  EXPECT_EQ(rehearse_file(document(), "n9"), exit_not_done);
  EXPECT_THAT(errors(), HasSubstr("n9"));
}

TEST_F(RehearseProgramTest, ASnapshotThatCannotBeUsed) {
  for (const std::string text : {"{", "[]", "kind: Pod", "kind: Pod\nmetadata: {name: \"\xff\"}"})
    EXPECT_EQ(rehearse_file(text, "n1"), exit_connection) << text;
  EXPECT_THAT(errors(), HasSubstr("the snapshot cannot be used"));
}

}  // namespace
}  // namespace haulout::agent
