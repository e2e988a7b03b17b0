// Tests P8, never silently stuck: label, message, condition, Event, metric, log, the service manager, `haulout status`
// and `haulout explain` show the same reason for which a node waits.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "agent/node/lifecycle_conditions.hpp"
#include "agent/report/metrics.hpp"
#include "agent/report/reasons.hpp"
#include "agent/report/status_words.hpp"
#include "cli/people/explanation.hpp"
#include "cli/people/fleet_summary.hpp"
#include "cli/people/status_job.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

struct Everywhere {
  Json labels, annotations, condition;
  std::optional<EventNote> event;
  LogEntry log;
  std::string metrics;
  std::string line;
  std::string status, explanation;
  Json status_json;
};

// Returns the Node after this patch.
k8s::Node patched(k8s::Node node, const Json& patch) {
  const auto apply = [](std::map<std::string, std::string>& entries, const Json& changes) {
    for (const auto& [key, value] : changes.items())
      if (!value.is_null()) entries[key] = value.get<std::string>();
  };
  apply(node.labels, patch["metadata"]["labels"]);
  apply(node.annotations, patch["metadata"]["annotations"]);
  return node;
}

Everywhere shown(const Status& before, const Status& status) {
  k8s::Node node;
  node.name = "n1";
  node.resource_version = "1";
  Record record;
  record.state = status.state;
  Everywhere all;
  const Json patch = Json::parse(*status_patch(node, record, encode_record(record), status, Need::yes));
  all.labels = patch["metadata"]["labels"];
  all.annotations = patch["metadata"]["annotations"];
  k8s::Node cordoned = node;
  cordoned.unschedulable = record.cordoned = true;
  record.run = "r";
  const auto told = told_conditions({.node = cordoned, .record = record, .status = status, .boot_id = record.boot_id});
  const Json conditions = Json::parse(*conditions_patch(cordoned, told, WallTime(), false));
  all.condition = conditions["status"]["conditions"].back();
  all.event = event_of(before, status);
  all.log = log_entry_of(before, status);
  Metrics metrics({.node = "n1", .version = "1"});
  metrics.show(status);
  all.metrics = metrics.text();
  all.line = line_of(status);
  const k8s::Node seen = patched(node, patch);
  const cli::NodeView view = cli::node_view(seen, {}, status.since);
  cli::StatusTable table({});
  table.fit({view}, status.since);
  all.status = table.row(view, status.since);
  all.status_json = Json::parse(node_status_json(view));
  for (const std::string& text : explanation_text(cli::explain({.node = seen}, status.since)))
    all.explanation += text + "\n";
  return all;
}

TEST(P8_NeverSilentlyStuck, EveryReasonIsTheSameEverywhere) {
  const Status before{State::idle, "", "", WallTime(1s)};
  for (const Reason& reason : reasons()) {
    for (const State state : all_states) {
      const std::string message = "because of " + std::string(reason.name) + ", see there";
      const Status status{state, std::string(reason.name), message, WallTime(2s)};
      const Everywhere all = shown(before, status);
      const std::string name(to_string(state));
      SCOPED_TRACE(name + " " + status.reason);

      EXPECT_EQ(all.labels["haulout.dev/state"], name);
      EXPECT_EQ(all.labels["haulout.dev/reason"], status.reason);
      EXPECT_EQ(all.annotations["haulout.dev/message"], message);
      EXPECT_EQ(all.condition["reason"], status.reason);
      EXPECT_EQ(all.condition["message"], "haulout: " + message);
      ASSERT_TRUE(all.event);
      EXPECT_EQ(all.event->reason, status.reason);
      EXPECT_EQ(all.event->note, message);
      EXPECT_THAT(all.log.fields, Contains(Pair("state", name)));
      EXPECT_THAT(all.log.fields, Contains(Pair("reason", status.reason)));
      EXPECT_EQ(all.log.message, all.line);
      EXPECT_EQ(all.line, name + ", " + status.reason + ": " + message);
      EXPECT_THAT(all.status, AllOf(HasSubstr(name), HasSubstr(" " + status.reason + " "), HasSubstr(message)));
      EXPECT_EQ(all.status_json["state"], name);
      EXPECT_EQ(all.status_json["reason"], status.reason);
      EXPECT_EQ(all.status_json["message"], message);
      EXPECT_THAT(all.explanation, AllOf(HasSubstr(name + " (" + status.reason + ")"), HasSubstr(message)));
      EXPECT_THAT(all.metrics, HasSubstr("haulout_state{node=\"n1\",state=\"" + name + "\"} 1\n"));
      EXPECT_THAT(all.metrics,
                  HasSubstr("haulout_reason_info{node=\"n1\",concern=\"" + std::string(to_string(reason.concern)) +
                            "\",reason=\"" + status.reason + "\",state=\"" + name + "\"} 1\n"));
      const bool trouble = state == State::degraded || reason.concern == Concern::trouble;
      EXPECT_EQ(all.event->type == k8s::NodeEvent::Type::warning, trouble);
      EXPECT_EQ(all.log.severity, trouble ? Severity::warning : Severity::notice);
    }
  }
}

TEST(P8_NeverSilentlyStuck, AStateWithoutAReasonSaysWhatItIs) {
  for (const State state : all_states) {
    const Status before{state == State::idle ? State::soaking : State::idle, "", "", {}};
    const Status status{state, "", "", {}};
    const Everywhere all = shown(before, status);
    SCOPED_TRACE(to_string(state));
    EXPECT_FALSE(all.labels.contains("haulout.dev/reason"));
    ASSERT_TRUE(all.event);
    EXPECT_EQ(all.condition["reason"], all.event->reason);
    EXPECT_FALSE(all.event->note.empty());
    EXPECT_FALSE(all.event->action.empty());
    EXPECT_EQ(all.line, std::string(to_string(state)) + ": " + all.event->note);
    EXPECT_EQ(all.log.message, all.line);
  }
}

}  // namespace
}  // namespace haulout::agent
