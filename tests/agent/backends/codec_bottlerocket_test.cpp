#include "agent/backends/bottlerocket_backend.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {
using State = BottlerocketStatus::State;

TEST(CodecBottlerocket, Status) {
  const auto status = decode_bottlerocket_status(R"({
    "update_state": "Ready", "available_updates": ["1.16.0", "1.15.1"],
    "chosen_update": {"arch": "x86_64", "version": "1.17.0", "variant": "aws-k8s-1.31"},
    "active_partition": {"image": {"arch": "x86_64", "version": "1.15.1", "variant": "x"}, "next_to_boot": false},
    "staging_partition": {"image": {"arch": "x86_64", "version": "1.16.0", "variant": "x"}, "next_to_boot": true},
    "most_recent_command": {"cmd_type": "activate", "cmd_status": "Success",
      "timestamp": "2026-01-01T00:00:00.123456789Z", "exit_status": 0, "stderr": "line\none\u0000\n"}, "new": []})");
  ASSERT_TRUE(status) << status.error().message();
  EXPECT_EQ(status->state, State::ready);
  EXPECT_EQ(status->chosen, "1.17.0");
  EXPECT_EQ(status->staged, "1.16.0");
  EXPECT_TRUE(status->staged_boots_next);
  const BottlerocketStatus::LastCommand last{"activate", "Success", "2026-01-01T00:00:00.123456789Z", "line one"};
  EXPECT_EQ(status->last, last);
}

TEST(CodecBottlerocket, WhatIsNullOrAbsentIsEmpty) {
  const BottlerocketStatus idle;
  EXPECT_EQ(*decode_bottlerocket_status(R"({"update_state": "Idle"})"), idle);
  EXPECT_EQ(*decode_bottlerocket_status(R"({"update_state": "Idle", "chosen_update": null, "staging_partition": null,
                                            "most_recent_command": null})"),
            idle);
  const auto result = decode_bottlerocket_status(R"({"update_state": "Available", "most_recent_command":
    {"cmd_type": "refresh", "cmd_status": "Unknown", "timestamp": "t", "exit_status": null, "stderr": null}})");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->last->error, "");
}

TEST(CodecBottlerocket, UnreadableStatus) {
  const std::string nested(100'000, '[');
  for (const std::string& body :
       {std::string(), std::string("null"), std::string("[]"), std::string("not json"), std::string("{}"), nested,
        std::string(R"({"update_state": "Rebooting"})"), std::string(R"({"update_state": 3})"),
        std::string(R"({"update_state": "Ready", "staging_partition": {"next_to_boot": true}})"),
        std::string(R"({"update_state": "Ready", "staging_partition": []})"),
        std::string(R"({"update_state": "Available", "chosen_update": {"version": 3}})"),
        std::string(R"({"update_state": "Idle", "most_recent_command": {"cmd_type": "refresh"}})")}) {
    const auto status = decode_bottlerocket_status(body);
    ASSERT_FALSE(status) << body.substr(0, 80);
    EXPECT_EQ(status.error().code(), Errc::decode);
    EXPECT_LT(status.error().message().size(), 300u);
  }
}

TEST(CodecBottlerocket, Version) {
  EXPECT_EQ(*decode_bottlerocket_version(R"({"version_id": "1.15.1", "variant_id": "aws-k8s-1.31"})"), "1.15.1");
  for (const char* body : {"", "{}", "[]", R"({"version_id": null})", R"({"version_id": 1})", R"({"version_id": ""})"})
    EXPECT_FALSE(decode_bottlerocket_version(body)) << body;
}

}  // namespace
}  // namespace haulout::agent
