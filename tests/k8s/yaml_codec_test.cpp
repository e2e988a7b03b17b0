#include "k8s/yaml_codec.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace haulout::k8s {
namespace {
using ::testing::HasSubstr;
using ::testing::Not;

std::string json_of(std::string_view yaml) {
  auto json = yaml_to_json(yaml);
  if (!json) return "error: " + json.error().message();
  return *json;
}

struct Scalar {
  const char* yaml;
  const char* json;
};

class YamlScalars : public ::testing::TestWithParam<Scalar> {};

TEST_P(YamlScalars, AsKubernetesReadsThem) {
  EXPECT_EQ(json_of(std::string("v: ") + GetParam().yaml), std::string("{\"v\":") + GetParam().json + "}");
}

INSTANTIATE_TEST_SUITE_P(
    Table, YamlScalars,
    ::testing::Values(Scalar{"true", "true"}, Scalar{"False", "false"}, Scalar{"yes", "true"}, Scalar{"off", "false"},
                      Scalar{"'true'", "\"true\""}, Scalar{"\"12\"", "\"12\""}, Scalar{"tRUE", "\"tRUE\""},
                      Scalar{"null", "null"}, Scalar{"~", "null"}, Scalar{"", "null"}, Scalar{"''", "\"\""},
                      Scalar{"12", "12"}, Scalar{"-12", "-12"}, Scalar{"+12", "12"}, Scalar{"1_000", "1000"},
                      Scalar{"0x1F", "31"}, Scalar{"0o17", "15"}, Scalar{"017", "15"}, Scalar{"0b101", "5"},
                      Scalar{"08", "8"}, Scalar{"18446744073709551615", "18446744073709551615"},
                      Scalar{"-9223372036854775808", "-9223372036854775808"}, Scalar{"-0", "0"}, Scalar{"1.5", "1.5"},
                      Scalar{".5", "0.5"}, Scalar{"1.", "1"}, Scalar{"1e3", "1000"}, Scalar{"-1.5E-2", "-0.015"},
                      Scalar{"-0.", "0"}, Scalar{"1e999", "\"1e999\""}, Scalar{"1.2.3", "\"1.2.3\""},
                      Scalar{"0x", "\"0x\""}, Scalar{"12Mi", "\"12Mi\""},
                      Scalar{"2024-01-02T03:04:05Z", "\"2024-01-02T03:04:05Z\""}, Scalar{"10.0.0.1", "\"10.0.0.1\""},
                      Scalar{"a \"b\" \\c", R"("a \"b\" \\c")"}, Scalar{R"("a\tb\u0001\n")", R"("a\tb\u0001\n")"},
                      Scalar{"!!str 12", "\"12\""}, Scalar{"|\n  a\n  b\n", "\"a\\nb\\n\""}, Scalar{"é", "\"é\""}));

TEST(Yaml, JsonIsYaml) {
  const std::string text = "{\"a\": [1, 2.5, null,\ttrue, \"x\\/y\"],\n\t\"b\": {}, \"c\": []}";
  EXPECT_EQ(json_of(text), "{\"a\":[1,2.5,null,true,\"x/y\"],\"b\":{},\"c\":[]}");
}

TEST(Yaml, KeysBecomeStrings) {
  EXPECT_EQ(json_of("1: a\ntrue: b\n'3': c\n"), R"({"1":"a","true":"b","3":"c"})");
}

TEST(Yaml, AliasesAndMergeKeys) {
  EXPECT_EQ(json_of("a: &x [1]\nb: *x\n"), R"({"a":[1],"b":[1]})");
  const auto merged =
      nlohmann::json::parse(json_of("base: &b {p: 1, q: 2}\nother: &o {q: 3, r: 4}\n"
                                    "one:\n  q: 5\n  <<: *b\ntwo:\n  <<: [*o, *b]\n"));
  EXPECT_EQ(merged["one"], nlohmann::json::parse(R"({"p":1,"q":5})"));
  EXPECT_EQ(merged["two"], nlohmann::json::parse(R"({"p":1,"q":3,"r":4})"));
  EXPECT_EQ(json_of("'<<': 1"), R"({"<<":1})");
  // yq writes the tag.
  EXPECT_EQ(json_of("a: &x {p: 1}\nb:\n  !!merge <<: *x\n"), R"({"a":{"p":1},"b":{"p":1}})");
}

TEST(Yaml, Documents) {
  EXPECT_EQ(json_of(""), "null");
  EXPECT_EQ(json_of("# nothing\n"), "null");
  EXPECT_EQ(json_of("---\na: 1\n---\nb: 2\n"), R"({"a":1})");
  const auto all = yaml_documents_to_json("---\na: 1\n---\n---\nb: 2\n...\n");
  ASSERT_TRUE(all);
  EXPECT_EQ(*all, (std::vector<std::string>{R"({"a":1})", R"({"b":2})"}));
}

struct Broken {
  const char* yaml;
  const char* position;
};

class BrokenYaml : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenYaml, SaysWhere) {
  const auto json = yaml_to_json(GetParam().yaml);
  ASSERT_FALSE(json) << *json;
  EXPECT_EQ(json.error().code(), Errc::decode);
  EXPECT_THAT(json.error().message(), HasSubstr(GetParam().position));
  EXPECT_THAT(json.error().message(), Not(HasSubstr("s3cret")));
}

INSTANTIATE_TEST_SUITE_P(Table, BrokenYaml,
                         ::testing::Values(Broken{"a: 1\nb: [1, 2\nc: 3\n", "line 3"},
                                           Broken{"a: 1\n  b: 2\n", "line 2, column 4"},
                                           Broken{"token: *s3cret\n", "line 1, column 8"}, Broken{"a: \"x", "line 1"},
                                           Broken{"a: .inf", "line 1, column 4"}, Broken{"a: !s3cret x", "line 1"},
                                           Broken{"? [a]\n: b\n", "line 1, column 3"}, Broken{"a: &x [*x]", "line 1"},
                                           Broken{"<<: 5", "line 1"}, Broken{"a: @s3cret", "line 1"}));

// Regression test: in this text, yaml-cpp finds one empty document after the other and never reaches the end.
TEST(Yaml, WhatIsNeitherPartOfADocumentNorANewOneIsRefused) {
  constexpr const char* text = ",Sun 01:00+6h Europe/Berlin\n- 72:00-04:01\npool: default\nreboot-methodnd]\n";
  EXPECT_FALSE(yaml_to_json(text));
  EXPECT_FALSE(yaml_to_tree(text));
  EXPECT_FALSE(yaml_documents_to_json(text));
}

TEST(Yaml, DeepNestingIsRefused) {
  EXPECT_TRUE(yaml_to_json(std::string(250, '[') + std::string(250, ']')));
  EXPECT_FALSE(yaml_to_json(std::string(300, '[') + std::string(300, ']')));
  EXPECT_FALSE(yaml_to_json(std::string(100'000, '[')));
}

TEST(Yaml, AliasBombsAreRefused) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) {
    bomb += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
  }
  EXPECT_FALSE(yaml_to_json(bomb));

  std::string merges = "m0: &m0 {k0: 1}\n";
  for (int i = 1; i < 5000; ++i) merges += fmt::format("m{0}: &m{0} {{k{0}: 1, <<: *m{1}}}\n", i, i - 1);
  EXPECT_FALSE(yaml_to_json(merges));
}

// Appends a line "line: text=json" for each scalar, in the order of the document.
void outline(const YamlValue& value, std::string& out) {
  if (value.kind == YamlValue::Kind::scalar) out += fmt::format("{}: {}={}\n", value.line, value.text, value.json);
  for (const auto& item : value.items) outline(*item, out);
  for (const auto& [key, member] : value.members) {
    outline(*key, out);
    outline(*member, out);
  }
}

TEST(YamlTree, KnowsWhatStandsWhere) {
  const auto tree = yaml_to_tree("# c\na: 010\n'a': [x, \"true\"]\non: |\n  text\nb: &n {c: ~}\nd: *n\n");
  ASSERT_TRUE(tree) << tree.error().message();
  std::string out;
  outline(**tree, out);
  EXPECT_EQ(out,
            "2: a=\"a\"\n2: 010=8\n"
            "3: a=\"a\"\n3: x=\"x\"\n3: true=\"true\"\n"
            "4: on=true\n4: text\n=\"text\\n\"\n"
            "6: b=\"b\"\n6: c=\"c\"\n6: =null\n"
            "7: d=\"d\"\n6: c=\"c\"\n6: =null\n");
}

TEST(YamlTree, HasOneDocumentOrNone) {
  for (const char* text : {"", "# nothing\n", "---\n", "null", "---\n...\n---\n"}) {
    const auto tree = yaml_to_tree(text);
    ASSERT_TRUE(tree) << text;
    EXPECT_EQ(*tree, nullptr) << text;
  }
  EXPECT_TRUE(yaml_to_tree("---\n---\na: 1\n---\n"));
  const auto two = yaml_to_tree("a: 1\n---\nb: 2\n");
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().code(), Errc::decode);
  EXPECT_THAT(two.error().message(), HasSubstr("line 2"));
}

}  // namespace
}  // namespace haulout::k8s
