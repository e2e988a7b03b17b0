// Tests the exit codes of `haulout rehearse -f`, which scripts rely on.
#include "cli/rehearse/rehearse_program.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/process/process.hpp"
#include "base/files.hpp"
#include "cli/options/command_line.hpp"
#include "retry/real_clock.hpp"
#include "tests/k8s/temp_dir.hpp"
#include "tests/rehearse/a_snapshot.hpp"

namespace haulout::cli {
namespace {

using ::testing::HasSubstr;

class RehearseProgramTest : public ::testing::Test, protected rehearse::ASnapshot {
 protected:
  RehearseProgramTest() {
    add_node("n1", "2");
    items.push_back(pod("web-0", "ReplicaSet", "web", "500m"));
  }
  ~RehearseProgramTest() override {
    ::close(err_);
    ::close(out_);
  }

  int rehearse_file(const std::string& text, const std::string& node, const std::vector<std::string>& more = {}) {
    EXPECT_TRUE(write_whole_file(path_, text));
    std::vector<std::string> args = {"rehearse", node, "-f", path_};
    args.insert(args.end(), more.begin(), more.end());
    return rehearsed(std::get<Settings>(parse_command_line("haulout", args)));
  }
  int rehearsed(const Settings& settings) {
    agent::FdSink out(out_), err(err_);
    agent::Process process{context_.get_executor(), clock_, rng_, out, err, {}, "haulout"};
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

  const testing::TempDir directory_;
  const std::string path_ = directory_ / "snapshot.json";
  int out_ = ::memfd_create("out", MFD_CLOEXEC), err_ = ::memfd_create("err", MFD_CLOEXEC);
  boost::asio::io_context context_{1};
  RealClock clock_;
  SeededRng rng_{1};
};

TEST_F(RehearseProgramTest, WhatIsPlayedToAGoodEnd) {
  EXPECT_EQ(rehearse_file(document(), "n1"), agent::exit_done) << errors();
}

TEST_F(RehearseProgramTest, ANodeThatIsNotInTheSnapshot) {
  EXPECT_EQ(rehearse_file(document(), "n9"), agent::exit_not_done);
  EXPECT_THAT(errors(), HasSubstr("n9"));
}

TEST_F(RehearseProgramTest, ASnapshotThatCannotBeUsed) {
  const std::string node = R"({"kind":"Node","metadata":{"name":"n1"}})";
  const struct {
    std::string text;
    const char* says;
  } rows[] = {
      {"{", "it is JSON that ends in the middle"},
      {document().substr(0, document().size() / 2), "it is JSON that ends in the middle"},
      {"{\"kind\":\n \"Pod\" \"oops\"}", "not valid JSON: line 2, column 1"},
      {"[]", "not a Kubernetes object"},
      {"kind: Pod", "a Pod without metadata.name"},
      {"kind: Pod\nmetadata: {name: \"\xff\"}", "not valid UTF-8"},
      {"", "the snapshot has no nodes; make it by kubectl get nodes,pods"},
      {node, "the snapshot has no pods; make it by kubectl get nodes,pods"},
      {R"({"kind":"Status","message":"Unauthorized"})", "a Status instead of objects: Unauthorized"},
      {R"({"kind":"Table","rows":[]})", "use -o json"},
  };
  for (const auto& row : rows) {
    const std::size_t before = errors().size();
    EXPECT_EQ(rehearse_file(row.text, "n1"), agent::exit_connection) << row.text;
    const std::string said = errors().substr(before);
    EXPECT_THAT(said, HasSubstr(row.says)) << row.text;
    if (said.find("has no") == std::string::npos)
      EXPECT_THAT(said, HasSubstr("the snapshot in " + path_ + " cannot be used")) << row.text;
  }
}

TEST_F(RehearseProgramTest, AReportThatCannotBeKeptIsNotDone) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(::dup2(full, out_), 0);
  ::close(full);
  EXPECT_EQ(rehearse_file(document(), "n1"), agent::exit_not_done);
  EXPECT_EQ(rehearse_file(document(), "n1", {"-o", "json"}), agent::exit_not_done);
  EXPECT_THAT(errors(), HasSubstr("error: the output could not be written: No space left on device"));
}

TEST_F(RehearseProgramTest, ADirectoryIsNoSnapshot) {
  const auto settings =
      std::get<Settings>(parse_command_line("haulout", {"rehearse", "n1", "-f", ::testing::TempDir()}));
  EXPECT_EQ(rehearsed(settings), agent::exit_connection);
  EXPECT_THAT(errors(), HasSubstr("cannot be read: Is a directory"));
}

}  // namespace
}  // namespace haulout::cli
