// Decodes the lines of a watch.
#include <gtest/gtest.h>

#include "k8s/codec.hpp"
#include "k8s/status.hpp"
#include "tests/k8s/fixtures.hpp"

namespace haulout::k8s {
namespace {

TEST(Codec, WatchEvents) {
  const auto modified = decode_watch_event<Pod>(fixtures::event("MODIFIED", fixtures::pod("a", "u", "7")));
  ASSERT_TRUE(modified) << modified.error().message();
  EXPECT_EQ(modified->type, WatchEventType::modified);
  EXPECT_EQ(modified->object.uid, "u");
  EXPECT_EQ(modified->resource_version, "7");
  EXPECT_EQ(decode_watch_event<Pod>(fixtures::event("ADDED", fixtures::pod("a", "u", "7")))->type,
            WatchEventType::added);
  EXPECT_EQ(decode_watch_event<Pod>(fixtures::event("DELETED", fixtures::pod("a", "u", "7")))->type,
            WatchEventType::deleted);

  const auto bookmark = decode_watch_event<Pod>(fixtures::bookmark);
  ASSERT_TRUE(bookmark) << bookmark.error().message();
  EXPECT_EQ(bookmark->type, WatchEventType::bookmark);
  EXPECT_EQ(bookmark->resource_version, "241");

  const auto error = decode_watch_event<Pod>(fixtures::expired_event);
  ASSERT_TRUE(error) << error.error().message();
  EXPECT_EQ(error->type, WatchEventType::error);
  EXPECT_TRUE(is_expired(error->error));

  EXPECT_TRUE(decode_watch_event<Node>(fixtures::event("ADDED", fixtures::node)));
  EXPECT_TRUE(decode_watch_event<PodDisruptionBudget>(fixtures::event("ADDED", fixtures::pdb)));
}

TEST(Codec, ADeletedObjectIsIdentified) {
  const auto event = decode_watch_event<Pod>(fixtures::event("DELETED", fixtures::full_pod));
  ASSERT_TRUE(event) << event.error().message();
  EXPECT_EQ(event->type, WatchEventType::deleted);
  EXPECT_EQ(event->object.uid, "u1");
  EXPECT_EQ(event->object.key(), "shop/web-0");
  EXPECT_EQ(event->resource_version, "17");
  for (const auto& broken : {fixtures::pod("a", "", "1"), fixtures::pod("a", "u", ""), fixtures::node}) {
    EXPECT_FALSE(decode_watch_event<Pod>(fixtures::event("DELETED", broken))) << broken;
  }
}

TEST(Codec, RefusesWhatIsNoWatchEvent) {
  const std::vector<std::string> cases = {
      "",
      "{",
      "7",
      fixtures::evicted,
      R"({"type":"ADDED"})",
      R"({"type":"MOVED","object":{}})",
      R"({"type":"BOOKMARK","object":{"metadata":{}}})",
      fixtures::event("ADDED", fixtures::node),
      fixtures::event("ADDED", fixtures::pod("a", "", "1")),
  };
  for (const auto& line : cases) {
    const auto event = decode_watch_event<Pod>(line);
    ASSERT_FALSE(event) << line;
    EXPECT_EQ(event.error().code(), Errc::decode);
  }
}

}  // namespace
}  // namespace haulout::k8s
