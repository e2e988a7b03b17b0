#include "k8s/label_selector.hpp"

#include <gtest/gtest.h>

namespace haulout::k8s {
namespace {

using Labels = std::map<std::string, std::string>;
using Op = LabelSelector::Operator;

struct MatchCase {
  const char* selector;
  Labels labels;
  bool matches;
};

TEST(LabelSelector, MatchesAsTheApiDoes) {
  const std::vector<MatchCase> cases = {
      {"", {}, true},
      {"  ", {{"a", "b"}}, true},
      {"app=web", {{"app", "web"}}, true},
      {"app=web", {{"app", "db"}}, false},
      {"app=web", {}, false},
      {"app==web", {{"app", "web"}}, true},
      {"app=", {{"app", ""}}, true},
      {"app=,tier=x", {{"app", ""}, {"tier", "x"}}, true},
      {"tier!=db", {{"tier", "db"}}, false},
      {"tier!=db", {{"tier", "web"}}, true},
      {"tier!=db", {}, true},
      {"env in (a,b)", {{"env", "b"}}, true},
      {"env in ( a , b )", {{"env", "c"}}, false},
      {"env in (a)", {}, false},
      {"env in (a,)", {{"env", ""}}, true},
      {"env notin (a,b)", {{"env", "a"}}, false},
      {"env notin (a,b)", {{"env", "c"}}, true},
      {"env notin (a,b)", {}, true},
      {"legacy", {{"legacy", ""}}, true},
      {"legacy", {}, false},
      {"!legacy", {{"legacy", "no"}}, false},
      {"! legacy", {}, true},
      {"cores>4", {{"cores", "5"}}, true},
      {"cores>4", {{"cores", "4"}}, false},
      {"cores > 4", {{"cores", "many"}}, false},
      {"cores>4", {}, false},
      {"cores<4", {{"cores", "-3"}}, true},
      {"cores<4", {{"cores", "4"}}, false},
      {"app=web,tier!=db,env in (a,b),!legacy,cores>4", {{"app", "web"}, {"env", "a"}, {"cores", "8"}}, true},
      {"app=web,tier!=db", {{"app", "web"}, {"tier", "db"}}, false},
      {"example.com/app=web", {{"example.com/app", "web"}}, true},
      {"in in (in)", {{"in", "in"}}, true},
      {"notin", {{"notin", "x"}}, true},
  };
  for (const auto& c : cases) {
    const auto selector = parse_label_selector(c.selector);
    ASSERT_TRUE(selector) << c.selector << ": " << selector.error().message();
    EXPECT_EQ(selector->matches(c.labels), c.matches) << c.selector;
  }
}

TEST(LabelSelector, RefusesWhatKubectlRefuses) {
  const std::vector<const char*> cases = {",",
                                          "a,",
                                          "a,,b",
                                          "=b",
                                          "a=b=c",
                                          "a b",
                                          "a in",
                                          "a in b",
                                          "a in (",
                                          "a in (b",
                                          "a in ()",
                                          "a in (b c)",
                                          "a>",
                                          "a>x",
                                          "!a=b",
                                          "!",
                                          "a=b c",
                                          "-a",
                                          "a-",
                                          "a/",
                                          "/a",
                                          "A.com/a",
                                          "a..b/c",
                                          "a-.b/c",
                                          "a/b/c",
                                          "a=-b",
                                          "a=b$",
                                          "a()",
                                          "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg=x"};
  for (const auto* text : cases) {
    const auto selector = parse_label_selector(text);
    ASSERT_FALSE(selector) << text;
    EXPECT_EQ(selector.error().code(), Errc::invalid) << text;
    EXPECT_NE(selector.error().message().find(text), std::string::npos) << selector.error().message();
  }
}

TEST(LabelSelector, WritesWhatItReads) {
  for (const char* text :
       {"", "app=web", "app=web,!old", "tier notin (db)", "env in (a,b),legacy", "cores>4,cores<9"}) {
    const auto selector = parse_label_selector(text);
    ASSERT_TRUE(selector) << text;
    EXPECT_EQ(to_string(*selector), text);
  }
}

TEST(LabelSelector, KeepsRequirementsInOrder) {
  const auto selector = parse_label_selector("a=x,b notin (y,z),!c");
  ASSERT_TRUE(selector);
  EXPECT_EQ(*selector,
            LabelSelector({{"a", Op::in, {"x"}}, {"b", Op::not_in, {"y", "z"}}, {"c", Op::does_not_exist, {}}}));
  EXPECT_FALSE(selector->empty());
  EXPECT_TRUE(LabelSelector().empty());
}

}  // namespace
}  // namespace haulout::k8s
