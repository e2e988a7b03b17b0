#include "k8s/reflector.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace haulout::k8s {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> feed(LineSplitter& lines, std::string_view bytes) {
  std::vector<std::string> out;
  lines.feed(bytes);
  while (const auto line = lines.next()) out.emplace_back(*line);
  return out;
}

TEST(LineSplitter, TheSameLinesHoweverTheBytesAreCut) {
  const std::string text = "{\"a\":\"\\n\"}\n\n{\"b\":1}\r\nlast\nhalf";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    LineSplitter lines;
    std::vector<std::string> out;
    for (std::size_t at = 0; at < text.size(); at += size) {
      for (auto& line : feed(lines, text.substr(at, size))) out.push_back(line);
    }
    EXPECT_THAT(out, ElementsAre("{\"a\":\"\\n\"}", "", "{\"b\":1}\r", "last")) << "pieces of " << size;
  }
}

TEST(LineSplitter, NoticesALineWithoutEnd) {
  LineSplitter lines(4);
  EXPECT_THAT(feed(lines, "ab\ncdef"), ElementsAre("ab"));
  EXPECT_FALSE(lines.overlong());
  EXPECT_THAT(feed(lines, "g"), ElementsAre());
  EXPECT_TRUE(lines.overlong());
}

}  // namespace
}  // namespace haulout::k8s
