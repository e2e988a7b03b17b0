#include "agent/lifecycle/node_status.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace haulout::agent {
namespace {

using Json = nlohmann::json;

k8s::Node a_node() {
  k8s::Node node;
  node.name = "n1";
  node.uid = "u1";
  node.resource_version = "42";
  return node;
}

TEST(NodeStatus, LabelsMessageAndRecordAreOneGuardedPatch) {
  Record record;
  record.state = State::pending;
  const auto patch = status_patch(a_node(), record, {State::pending, "Paused", "paused: audit"}, Need::yes, false);
  ASSERT_TRUE(patch);
  const Json json = Json::parse(*patch);
  EXPECT_EQ(json["metadata"]["resourceVersion"], "42");
  EXPECT_EQ(json["metadata"]["labels"]["haulout.dev/state"], "pending");
  EXPECT_EQ(json["metadata"]["labels"]["haulout.dev/reason"], "Paused");
  EXPECT_EQ(json["metadata"]["labels"]["haulout.dev/reboot-required"], "true");
  EXPECT_EQ(json["metadata"]["annotations"]["haulout.dev/message"], "paused: audit");
  EXPECT_EQ(decode_record(json["metadata"]["annotations"]["haulout.dev/record"].get<std::string>()), record);
  EXPECT_FALSE(json.contains("spec"));
}

TEST(NodeStatus, NothingIsWrittenTwice) {
  k8s::Node node = a_node();
  const Record record;
  node.labels = {{"haulout.dev/state", "unknown"}, {"haulout.dev/reboot-required", "unknown"}};
  node.annotations = {{"haulout.dev/record", encode_record(record)}};
  EXPECT_EQ(status_patch(node, record, {State::unknown, {}, {}}, Need::unknown, false), std::nullopt);
}

TEST(NodeStatus, AReasonThatHasGoneIsRemovedAndForeignKeysStay) {
  k8s::Node node = a_node();
  node.labels = {{"haulout.dev/reason", "Paused"}, {"team", "blue"}};
  node.annotations = {{"haulout.dev/message", "paused"}, {"haulout.dev/request", "reboot"}, {"x", "y"}};
  const Json json = Json::parse(*status_patch(node, Record{}, {State::idle, {}, {}}, Need::no, true));
  EXPECT_TRUE(json["metadata"]["labels"]["haulout.dev/reason"].is_null());
  EXPECT_TRUE(json["metadata"]["annotations"]["haulout.dev/message"].is_null());
  EXPECT_TRUE(json["metadata"]["annotations"]["haulout.dev/request"].is_null());
  EXPECT_FALSE(json["metadata"]["labels"].contains("team"));
  EXPECT_FALSE(json["metadata"]["annotations"].contains("x"));
}

TEST(NodeStatus, ARequestIsExactlyTheWord) {
  k8s::Node node = a_node();
  EXPECT_FALSE(reboot_requested(node));
  node.annotations["haulout.dev/request"] = "reboot please";
  EXPECT_FALSE(reboot_requested(node));
  node.annotations["haulout.dev/request"] = "reboot";
  EXPECT_TRUE(reboot_requested(node));
}

}  // namespace
}  // namespace haulout::agent
