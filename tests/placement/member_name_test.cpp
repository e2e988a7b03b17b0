#include "placement/member_name.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

namespace haulout::placement {
namespace {

TEST(MemberName, EqualNamesShareTheirText) {
  const MemberName one("metadata"), other("metadata");
  EXPECT_EQ(one, other);
  EXPECT_EQ(&static_cast<const std::string&>(one), &static_cast<const std::string&>(other));
}

TEST(MemberName, ALongNameHasATextOfItsOwn) {
  const std::string name(1000, 'x');
  const MemberName one(name), other(name);
  EXPECT_EQ(one, other);
  EXPECT_NE(&static_cast<const std::string&>(one), &static_cast<const std::string&>(other));
}

// An object of other people can have any number of names.
TEST(MemberName, OnlyTheFirstNamesAreShared) {
  constexpr int many = 5000;
  std::vector<MemberName> names;
  for (int i = 0; i < many; ++i) names.emplace_back(fmt::format("name-{}", i));
  const MemberName known("name-0"), last(fmt::format("name-{}", many - 1));
  EXPECT_EQ(&static_cast<const std::string&>(names.front()), &static_cast<const std::string&>(known));
  EXPECT_NE(&static_cast<const std::string&>(names.back()), &static_cast<const std::string&>(last));
  EXPECT_EQ(names.back(), last);
}

TEST(MemberName, CanBeCopiedMovedAndAssigned) {
  for (const std::string& text : {std::string("spec"), std::string(100, 'y')}) {
    MemberName name(text);
    const MemberName copy = name;
    EXPECT_EQ(copy, name);
    const MemberName moved = std::move(name);
    EXPECT_EQ(moved.view(), text);
    name = copy;
    EXPECT_EQ(name.view(), text);
    name = MemberName("other");
    EXPECT_EQ(name.view(), "other");
  }
}

}  // namespace
}  // namespace haulout::placement
