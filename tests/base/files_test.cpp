#include "base/files.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

namespace haulout::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class FilesTest : public ::testing::Test {
 protected:
  FilesTest() {
    std::string name = ::testing::TempDir() + "haulout-files-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no directory for the test");
    dir_ = name;
  }
  ~FilesTest() override { fs::remove_all(dir_); }

  std::string at(const std::string& name) const { return dir_ / name; }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : fs::directory_iterator(dir_)) result.push_back(entry.path().filename());
    return result;
  }
  static std::string contents(const std::string& path) {
    const auto text = read_whole_file(path);
    return text ? *text : text.error().message();
  }

  fs::path dir_;
};

TEST_F(FilesTest, WhatCannotBeReadIsSaidWithItsCause) {
  EXPECT_THAT(contents(at("missing")), HasSubstr("missing cannot be read: No such file or directory"));
  EXPECT_THAT(contents(dir_), HasSubstr("cannot be read: Is a directory"));
  ASSERT_TRUE(write_whole_file(at("ten"), "0123456789"));
  EXPECT_EQ(file_text(at("ten"), 10).text, "0123456789");
  EXPECT_EQ(file_text(at("ten"), 9).failure, EFBIG);
}

TEST_F(FilesTest, AFileStandsWholeAndAlone) {
  for (const std::string text : {"first", "second"}) {
    EXPECT_TRUE(can_write_whole_file(at("f")));
    EXPECT_TRUE(write_whole_file(at("f"), text));
    EXPECT_EQ(contents(at("f")), text);
    EXPECT_THAT(names(), UnorderedElementsAre("f"));
  }
}

TEST_F(FilesTest, LinksAreFollowed) {
  fs::create_directory(at("sub"));
  fs::create_symlink("sub/target", at("link"));
  fs::create_symlink("link", at("link-to-link"));
  for (const std::string text : {"into nothing", "over the first"}) {
    EXPECT_TRUE(can_write_whole_file(at("link-to-link")));
    EXPECT_TRUE(write_whole_file(at("link-to-link"), text));
    EXPECT_EQ(contents(at("sub/target")), text);
  }
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_TRUE(fs::is_symlink(at("link-to-link")));
}

TEST_F(FilesTest, APipeIsWrittenToAndStaysAPipe) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  const int reader = ::open(at("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(can_write_whole_file(at("pipe")));
  EXPECT_TRUE(write_whole_file(at("pipe"), "text"));
  std::array<char, 8> read{};
  EXPECT_EQ(::read(reader, read.data(), read.size()), 4);
  EXPECT_STREQ(read.data(), "text");
  EXPECT_TRUE(fs::is_fifo(at("pipe")));
  EXPECT_THAT(names(), UnorderedElementsAre("pipe"));
  ::close(reader);
}

TEST_F(FilesTest, ADeviceBehindALinkStaysADevice) {
  fs::create_symlink("/dev/null", at("null"));
  EXPECT_TRUE(can_write_whole_file(at("null")));
  EXPECT_TRUE(write_whole_file(at("null"), "text"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THAT(names(), UnorderedElementsAre("null"));
}

// The shell has redirected the output, as in --timeline /dev/stdout > out. The text must be appended to what is already
// in the file.
TEST_F(FilesTest, OutputThatGoesToAFileGoesOnBehindWhatIsWrittenThere) {
  for (const auto& [fd, path] : {std::pair(STDOUT_FILENO, std::string("/dev/stdout")),
                                 {STDERR_FILENO, "/dev/stderr"},
                                 {STDOUT_FILENO, at("out")}}) {
    const int before = ::dup(fd);
    const int out = ::open(at("out").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ASSERT_EQ(::dup2(out, fd), fd);
    const auto write = [](int to, std::string_view text) { return ::write(to, text.data(), text.size()) > 0; };
    const bool report = write(fd, "report, ");
    const bool can = can_write_whole_file(path).has_value();
    const bool picture = write_whole_file(path, "picture, ").has_value();
    const bool rest = write(fd, "rest");
    ::dup2(before, fd);
    ::close(before);
    ::close(out);
    EXPECT_TRUE(report && can && picture && rest) << path;
    EXPECT_EQ(contents(at("out")), "report, picture, rest") << path;
    EXPECT_THAT(names(), UnorderedElementsAre("out")) << path;
  }
}

TEST_F(FilesTest, WhatStandsInTheWayIsSaidAndNothingIsLeftBehind) {
  fs::create_directory(at("d"));
  for (const auto& [name, why] : {std::pair("d", "directory"), {"none/f", "No such file"}}) {
    const auto can = can_write_whole_file(at(name));
    const auto written = write_whole_file(at(name), "text");
    ASSERT_FALSE(can) << name;
    ASSERT_FALSE(written) << name;
    EXPECT_THAT(can.error().message(), HasSubstr(why));
    EXPECT_THAT(written.error().message(), HasSubstr(why));
  }
  EXPECT_THAT(names(), UnorderedElementsAre("d"));
}

TEST_F(FilesTest, FilesOfOthersAreLeftAlone) {
  ASSERT_TRUE(write_whole_file(at("f.0.part"), "somebody else's"));
  fs::create_symlink("f.0.part", at("f.1.part"));
  EXPECT_TRUE(can_write_whole_file(at("f")));
  EXPECT_TRUE(write_whole_file(at("f"), "text"));
  EXPECT_EQ(contents(at("f")), "text");
  EXPECT_EQ(contents(at("f.0.part")), "somebody else's");
  EXPECT_THAT(names(), UnorderedElementsAre("f", "f.0.part", "f.1.part"));
}

TEST_F(FilesTest, ALargeFileIsReadInPieces) {
  std::string text;
  while (text.size() < 1'000'000) text += std::to_string(text.size()) + '\n';
  ASSERT_TRUE(write_whole_file(at("large"), text));
  auto pieces = FilePieces::open(at("large"));
  ASSERT_TRUE(pieces);
  std::istream stream(&*pieces);
  EXPECT_EQ(text_of(stream).text, text);
  EXPECT_EQ(pieces->failure(), 0);
}

TEST_F(FilesTest, PiecesNameTheFailure) {
  EXPECT_THAT(FilePieces::open(at("missing")).error().message(), HasSubstr("missing cannot be read: No such file"));
  auto directory = FilePieces::open(dir_);
  ASSERT_TRUE(directory);
  std::istream stream(&*directory);
  EXPECT_EQ(stream.get(), std::istream::traits_type::eof());
  EXPECT_EQ(directory->failure(), EISDIR);
}

}  // namespace
}  // namespace haulout::agent
