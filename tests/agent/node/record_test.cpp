#include "agent/node/record.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {

using ::testing::HasSubstr;

WallTime seconds(int s) {
  return WallTime(std::chrono::seconds(s));
}

Record full() {
  Record record;
  record.state = State::rebooting;
  record.since = seconds(100);
  record.boot_id = "5f3c";
  record.slot = "fleetlock/web";
  record.run = "n1.17";
  record.requested = true;
  record.reasons = {"linux-image-6.1.0-30", "libc6 \"quoted\" \xff"};
  record.from = "1.0";
  record.to = "1.1";
  record.method = 1;
  record.asked = true;
  record.marks = BootMarks{"b007", {"systemd", 5'000'000}};
  record.deadline = seconds(200);
  record.failures = 3;
  record.not_before = seconds(300);
  record.began = seconds(50);
  record.judged = true;
  record.verified_at = seconds(20);
  record.slot_version = "1.1";
  record.updated_to = "0.9";
  record.failed_to = "0.95";
  record.waits_for = "1.2";
  record.needed_since = seconds(40);
  record.reboots = {{seconds(10), {"a"}, "0.9", true}, {seconds(11), {}, ""}, {seconds(12), {}, "1.1", false, true}};
  record.durations = {std::chrono::seconds(600), std::chrono::seconds(700)};
  record.drain_took = std::chrono::seconds(90);
  record.bad_targets = {"0.8"};
  record.failed_versions = {"0.7", "0.8"};
  record.cause = "RebootFailed";
  record.cause_message = "why";
  record.uncordon = true;
  record.hooks_passed = {"before-drain"};
  record.hooks_asked = seconds(70);
  record.leaked = {"va-1", "va-2"};
  record.evicted_daemon_sets = {"ds-1"};
  record.pinned = {"shop/StatefulSet/db"};
  record.attempts = {{seconds(90), "DrainBlocked", "pod shop/db-0"}, {seconds(95), "Updated", ""}};
  record.cordoned = record.asked_again = true;
  record.old_taints = std::set<std::string>{"readiness.k8s.io/GPU"};
  record.unverified = true;
  record.authority = "impersonation";
  record.pool = "db";
  return record;
}

TEST(Records, ComeBackAsTheyWere) {
  Record record = full();
  record.reasons = {"linux-image-6.1.0-30"};
  EXPECT_EQ(decode_record(encode_record(record)), record);
  EXPECT_EQ(decode_record(encode_record(Record{})), Record{});
}

TEST(Records, AreOneLineWhateverIsInThem) {
  EXPECT_EQ(encode_record(full()).find('\n'), std::string::npos);
  EXPECT_EQ(decode_record(encode_record(full())).state, State::rebooting);
}

TEST(Records, OfAnEarlierVersionKnowNothingOfClearedReboots) {
  const std::string before =
      R"({"v":1,"state":"idle","since":0,"reboots":[{"at":10000000,"reasons":["a"],"target":"0.9"}],"durations":[600]})";
  const Record record = decode_record(before);
  EXPECT_THAT(record.reboots, ::testing::ElementsAre(PastReboot{seconds(10), {"a"}, "0.9", false}));
  EXPECT_THAT(record.durations, ::testing::ElementsAre(std::chrono::seconds(600)));
  EXPECT_THAT(encode_record(record), ::testing::Not(HasSubstr("cleared")));
}

// A node without older taints is another one than a node whose agent knew no readiness taints.
TEST(Records, TellNoOlderTaintsFromUnknownOnes) {
  Record record = full();
  for (const auto& taints : {std::optional<std::set<std::string>>(), std::optional(std::set<std::string>())}) {
    record.old_taints = taints;
    EXPECT_EQ(decode_record(encode_record(record)).old_taints, taints);
  }
}

// P4: an earlier agent did not write whether the boot was verified. What the node lacks may come from that boot.
TEST(Records, OfADegradedNodeKnowWhetherItsBootWasVerified) {
  const auto unverified = [](const std::string& more) {
    return decode_record(R"({"v":1,"state":"degraded","since":0)" + more + "}").unverified;
  };
  EXPECT_TRUE(unverified(R"(,"cause":"NodeNotReady")"));
  EXPECT_FALSE(unverified(R"(,"cause":"RebootFailed","uncordon":true)"));
  EXPECT_FALSE(decode_record("{}").unverified) << "a record that cannot be read";
}

// P4: a record that cannot be read does not count as that of an idle node.
TEST(Records, ThatCannotBeReadStopTheAgent) {
  for (const char* text :
       {"", "{", "null", "[]", "{}", "7", R"({"v":2,"state":"idle","since":0})", R"({"v":1,"state":"busy","since":0})",
        R"({"v":1,"state":"idle","since":"now"})", R"({"v":1,"state":"idle","since":0,"reboots":[{}]})",
        // A number that is not an integer, or is too large for its field, is refused and not converted.
        R"({"v":1,"state":"idle","since":1e300})", R"({"v":1.5,"state":"idle","since":0})",
        R"({"v":1,"state":"idle","since":0,"failures":-1})", R"({"v":1,"state":"idle","since":0,"method":-1})",
        R"({"v":1,"state":"idle","since":0,"failures":4294967296})",
        R"({"v":1,"state":"idle","since":0,"durations":[true]})"}) {
    const Record record = decode_record(text);
    EXPECT_EQ(record.state, State::degraded) << text;
    EXPECT_EQ(record.cause, "RecordUnreadable") << text;
    EXPECT_THAT(record.cause_message, HasSubstr("kubectl annotate node")) << text;
  }
}

// The message about an unreadable record becomes part of the next record. So it must not contain invalid UTF-8 from the
// unreadable one.
TEST(Records, ThatAreNoUtf8BecomeOnesThatAre) {
  const Record record = decode_record("{\"v\":1,\xff");
  EXPECT_EQ(record.state, State::degraded);
  EXPECT_EQ(decode_record(encode_record(record)), record);
}

TEST(RecordText, FollowsTheRecord) {
  RecordText text;
  Record record;
  EXPECT_EQ(text.of(record), encode_record(record));
  record.state = State::draining;
  record.pinned = {"shop/ReplicaSet/web"};
  EXPECT_EQ(text.of(record), encode_record(record));
  EXPECT_EQ(text.of(record), encode_record(record));
  EXPECT_EQ(text.of(Record{}), encode_record(Record{}));
}

}  // namespace
}  // namespace haulout::agent
