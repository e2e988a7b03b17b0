#include "base/suggest.hpp"

namespace haulout::agent {
namespace {

TEST(SuggestTest, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("drain", "drain"), 0u);
  EXPECT_EQ(edit_distance("drian", "drain"), 2u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(SuggestTest, NearestWord) {
  const std::vector<std::string> words = {"drain", "cordon", "uncordon", "version"};
  EXPECT_EQ(nearest("drian", words), "drain");
  EXPECT_EQ(nearest("uncordn", words), "uncordon");
  EXPECT_EQ(nearest("corden", words), "cordon");
  EXPECT_EQ(nearest("apply", words), std::nullopt);
  EXPECT_EQ(nearest("x", {"ab"}), std::nullopt) << "nothing of it is left";
}

}  // namespace
}  // namespace haulout::agent
