#include "agent/gates/pause.hpp"

#include <gmock/gmock.h>

#include "tests/agent/gates/gates_support.hpp"

namespace haulout::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Row {
  std::string value;
  Pause expected;
};

TEST(PauseTest, Annotation) {
  const std::vector<Row> rows = {
      {"2026-11-28T06:00:00Z; new storage", {"new storage", utc("2026-11-28T06:00")}},
      {"2026-11-28T07:00:00+01:00;new storage", {"new storage", utc("2026-11-28T06:00")}},
      {"  2026-11-28T06:00:00Z  ;  new storage  ", {"new storage", utc("2026-11-28T06:00")}},
      {"; new storage", {"new storage", {}}},
      {";new storage; the second rack", {"new storage; the second rack", {}}},
      {";", {"no reason given", {}}},
      {"", {"no reason given", {}}},
      {"  ", {"no reason given", {}}},
      {"2026-11-28T06:00:00Z;", {"no reason given", utc("2026-11-28T06:00")}},
      {"2026-11-28T06:00:00Z", {"no reason given", utc("2026-11-28T06:00")}},
      {"; a\nb\x1b[31m", {"a b [31m", {}}},
      {";\x1a why\x1a", {"why", {}}},
      {"\x1a", {"no reason given", {}}},
  };
  for (const Row& row : rows) EXPECT_EQ(parse_pause_annotation(row.value), row.expected) << row.value;
}

TEST(PauseTest, AnAnnotationThatCannotBeReadHoldsWithoutEnd) {
  for (const char* value : {"tomorrow; new storage", "new storage", "2026-11-28; new storage",
                            "2026-11-28T06:00Z; new storage", "2026-13-28T06:00:00Z; new storage", "06:00; new storage",
                            "1h; new storage", "2026-11-28T06:00:00; new storage", "true new storage"}) {
    const Pause pause = parse_pause_annotation(value);
    EXPECT_EQ(pause.until, std::nullopt) << value;
    EXPECT_THAT(pause.reason, AllOf(HasSubstr("new storage"), HasSubstr("haulout.dev/pause"), HasSubstr("write ")))
        << value;
    EXPECT_TRUE(in_force(pause, WallTime::max())) << value;
  }
}

TEST(PauseTest, ConfigMap) {
  const std::vector<Row> rows = {
      {R"({"reason": "freeze", "until": "2026-11-28T06:00:00Z"})", {"freeze", utc("2026-11-28T06:00")}},
      {R"({"reason": "freeze"})", {"freeze", {}}},
      {R"({"reason": "freeze", "until": null})", {"freeze", {}}},
      {R"({"reason": "freeze", "until": ""})", {"freeze", {}}},
      {R"({"until": "2026-11-28T07:00:00+01:00"})", {"no reason given", utc("2026-11-28T06:00")}},
      {"{}", {"no reason given", {}}},
      {" {\n}\n ", {"no reason given", {}}},
      {R"({"reason": "a\nb"})", {"a b", {}}},
  };
  for (const Row& row : rows) EXPECT_EQ(parse_pause_json("pause", row.value), row.expected) << row.value;
}

TEST(PauseTest, AConfigMapThatCannotBeReadHoldsWithoutEnd) {
  for (const char* value :
       {"", "true", "false", "null", "[]", "\"freeze\"", "freeze", "{", R"({"reason": "freeze")", R"({"reason": 5})",
        R"({"reason": ["freeze"]})", R"({"reason": "freeze", "until": 1795845600})",
        R"({"reason": "freeze", "until": "tomorrow"})", R"({"reason": "freeze", "until": {}})",
        R"({"reason": "freeze", "untill": "2026-11-28T06:00:00Z"})", R"({"Reason": "freeze"})",
        "{\"reason\": \"\xff\"}", "2026-11-28T06:00:00Z; freeze"}) {
    const Pause pause = parse_pause_json("pause.web", value);
    EXPECT_EQ(pause.until, std::nullopt) << value;
    EXPECT_THAT(pause.reason, AllOf(HasSubstr("key pause.web of ConfigMap haulout"), HasSubstr("write "))) << value;
    EXPECT_TRUE(in_force(pause, WallTime::max())) << value;
  }
}

TEST(PauseTest, WhatIsWrittenIsRead) {
  const std::vector<Pause> pauses = {{"new storage", utc("2026-11-28T06:00")},
                                     {"new storage", {}},
                                     {"a; b; c", {}},
                                     {"\"quoted\" {x}", utc("2026-11-28T06:00")}};
  for (const Pause& pause : pauses) {
    EXPECT_EQ(parse_pause_annotation(format_pause_annotation(pause)), pause) << pause.reason;
    EXPECT_EQ(parse_pause_json("pause", format_pause_json(pause)), pause) << pause.reason;
  }
  EXPECT_EQ(format_pause_annotation({"new storage", utc("2026-11-28T06:00")}), "2026-11-28T06:00:00Z; new storage");
  EXPECT_EQ(format_pause_annotation({"new storage", {}}), "; new storage");
  EXPECT_EQ(format_pause_json({"new storage", utc("2026-11-28T06:00")}),
            R"({"reason":"new storage","until":"2026-11-28T06:00:00Z"})");
  EXPECT_EQ(format_pause_json({"new storage", {}}), R"({"reason":"new storage"})");
  EXPECT_NO_THROW(format_pause_json({"\xff", {}}));
}

TEST(PauseTest, Keys) {
  EXPECT_EQ(pause_key(), "pause");
  EXPECT_EQ(pause_key("web"), "pause.web");
}

TEST(PauseTest, IsInForceUpToItsEnd) {
  const WallTime end = utc("2026-11-28T06:00");
  const Pause pause{"new storage", end};
  EXPECT_TRUE(in_force(pause, end - std::chrono::microseconds(1)));
  EXPECT_FALSE(in_force(pause, end));
  EXPECT_FALSE(in_force(pause, WallTime::max()));
  EXPECT_TRUE(in_force({"new storage", {}}, WallTime::max()));
  EXPECT_EQ(describe(pause), "paused until 2026-11-28T06:00:00Z: new storage");
  EXPECT_EQ(describe({"new storage", {}}), "paused: new storage");
}

}  // namespace
}  // namespace haulout::agent
