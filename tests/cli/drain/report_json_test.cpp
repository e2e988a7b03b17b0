#include "cli/drain/report_json.hpp"

#include <nlohmann/json.hpp>

#include "tests/cli/drain/samples.hpp"

namespace haulout::cli {
namespace {

using drain::Outcome;
using drain::PodOutcome;
using samples::pod;

drain::Report sample() {
  auto evicted = pod("web-0", PodOutcome::evicted);
  evicted.controller = "StatefulSet/web";
  evicted.attempts = 2;
  evicted.evicted_at = samples::at(3);
  evicted.vanished_at = samples::at(33) + std::chrono::microseconds(250);
  auto kept = pod("proxy-x", PodOutcome::skipped, "DaemonSetManaged");
  kept.verdict = drain::Verdict::skip;
  drain::Report report = samples::report(Outcome::blocked, {kept, evicted});
  report.message = "1 pod is left";
  report.pods.front().message = "not evicted";
  report.cordon = {false, true, "haulout"};
  report.diagnoses.push_back({"BudgetNeverAllows", "PodDisruptionBudget shop/web", "raise it", samples::at(9)});
  report.volumes = {samples::volume("pv-1", drain::VolumeOutcome::detaching)};
  report.volumes.front().unused_at = samples::at(33);
  report.fits = {
      {"shop/web-0", "uid-web-0", placement::Fit::does_not_fit, "", {"NodeResourcesFit"}, "0/3 nodes are available"}};
  report.requests = {5, {{"create", 2}, {"list", 3}}};
  return report;
}

constexpr const char* golden = R"({
  "apiVersion": "haulout.dev/v1alpha1",
  "kind": "DrainReport",
  "node": "n1",
  "outcome": "blocked",
  "message": "1 pod is left",
  "connectionFailed": false,
  "startedAt": "2026-03-04T05:00:00.000000Z",
  "finishedAt": "2026-03-04T05:01:05.000000Z",
  "cordon": {
    "before": false,
    "after": true,
    "owner": "haulout"
  },
  "pods": [
    {
      "namespace": "shop",
      "name": "proxy-x",
      "uid": "uid-proxy-x",
      "controller": "",
      "verdict": "skip",
      "outcome": "skipped",
      "reason": "DaemonSetManaged",
      "message": "not evicted",
      "attempts": 0,
      "evictedAt": null,
      "vanishedAt": null
    },
    {
      "namespace": "shop",
      "name": "web-0",
      "uid": "uid-web-0",
      "controller": "StatefulSet/web",
      "verdict": "evict",
      "outcome": "evicted",
      "reason": "",
      "message": "",
      "attempts": 2,
      "evictedAt": "2026-03-04T05:00:03.000000Z",
      "vanishedAt": "2026-03-04T05:00:33.000250Z"
    }
  ],
  "volumes": [
    {
      "volume": "pv-1",
      "claim": "shop/data",
      "driver": "csi.example.com",
      "attachment": "csi-pv-1",
      "outcome": "detaching",
      "message": "csi.example.com is detaching it",
      "unusedAt": "2026-03-04T05:00:33.000000Z",
      "detachedAt": null
    }
  ],
  "fits": [
    {
      "pod": "shop/web-0",
      "uid": "uid-web-0",
      "fit": "does-not-fit",
      "node": "",
      "plugins": [
        "NodeResourcesFit"
      ],
      "message": "0/3 nodes are available"
    }
  ],
  "diagnoses": [
    {
      "code": "BudgetNeverAllows",
      "subject": "PodDisruptionBudget shop/web",
      "message": "raise it",
      "since": "2026-03-04T05:00:09.000000Z"
    }
  ],
  "requests": {
    "total": 5,
    "byVerb": {
      "create": 2,
      "list": 3
    }
  }
}
)";

TEST(ReportJsonTest, IsExactlyAsDocumented) {
  EXPECT_EQ(report_json(sample()), golden);
}

TEST(ReportJsonTest, SeveralNodesAreAList) {
  const auto json = nlohmann::ordered_json::parse(report_list_json({sample(), sample()}));
  EXPECT_EQ(json["apiVersion"], "haulout.dev/v1alpha1");
  EXPECT_EQ(json["kind"], "DrainReportList");
  ASSERT_EQ(json["items"].size(), 2u);
  EXPECT_EQ(json["items"][1], nlohmann::ordered_json::parse(golden));
}

TEST(ReportJsonTest, EmptyReportHasEveryField) {
  const auto json = nlohmann::json::parse(report_json(samples::report(Outcome::failed)));
  EXPECT_TRUE(json["pods"].is_array());
  EXPECT_TRUE(json["volumes"].is_array());
  EXPECT_TRUE(json["diagnoses"].is_array());
  EXPECT_TRUE(json["requests"]["byVerb"].is_object());
}

TEST(ReportJsonTest, BytesThatAreNoTextDoNotBreakIt) {
  const auto broken = pod("web-0", PodOutcome::waiting, "bad\xff");
  const auto json = nlohmann::json::parse(report_json(samples::report(Outcome::blocked, {broken})));
  EXPECT_EQ(json["pods"][0]["reason"], "bad\xEF\xBF\xBD");
}

TEST(EventJsonTest, OneLineWithWhatTheEventIsAbout) {
  const auto web = pod("web-0", PodOutcome::waiting, "BlockedByBudget", "line\nbreak");
  const std::string line =
      event_json(samples::event(drain::EventType::parked, 3, &web, nullptr, "m", {12, 6, 1, 2, 3, 4}));
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["type"], "parked");
  EXPECT_EQ(json["at"], "2026-03-04T05:00:03.000000Z");
  EXPECT_EQ(json["node"], "n1");
  EXPECT_EQ(json["message"], "m");
  EXPECT_EQ(
      json["progress"],
      (nlohmann::json{
          {"toEvict", 12}, {"vanished", 6}, {"terminating", 1}, {"waiting", 2}, {"skipped", 3}, {"detaching", 4}}));
  EXPECT_EQ(json["pod"]["name"], "web-0");
  EXPECT_EQ(json["pod"]["message"], "line\nbreak");
  EXPECT_FALSE(json.contains("diagnosis"));
}

TEST(EventJsonTest, VolumeEvents) {
  const auto volume = samples::volume("pv-1", drain::VolumeOutcome::detaching);
  auto event = samples::event(drain::EventType::volume_waiting);
  event.volume = &volume;
  const auto json = nlohmann::json::parse(event_json(event));
  EXPECT_EQ(json["type"], "volume-waiting");
  EXPECT_EQ(json["volume"]["volume"], "pv-1");
  EXPECT_FALSE(json.contains("pod"));
}

TEST(EventJsonTest, WhatBecomesOfAVolumeElsewhereIsSaidWhereItIsLookedAt) {
  auto volume = samples::detached_volume("pv-1", drain::Reattach::attached);
  auto event = samples::event(drain::EventType::volume_reattach);
  event.volume = &volume;
  const auto json = nlohmann::json::parse(event_json(event));
  EXPECT_EQ(json["type"], "volume-reattach");
  EXPECT_EQ(json["volume"]["reattach"], "attached");
  EXPECT_EQ(json["volume"]["attachedTo"], "n2");
  volume.reattach = drain::Reattach::none;
  EXPECT_FALSE(nlohmann::json::parse(event_json(event))["volume"].contains("reattach"));
}

TEST(EventJsonTest, DiagnosisEvents) {
  const drain::Diagnosis zero{"BudgetNeverAllows", "PodDisruptionBudget shop/web", "raise it", samples::at(9)};
  const auto json =
      nlohmann::json::parse(event_json(samples::event(drain::EventType::diagnosis_raised, 3, nullptr, &zero)));
  EXPECT_EQ(json["diagnosis"]["code"], "BudgetNeverAllows");
  EXPECT_FALSE(json.contains("pod"));
}

}  // namespace
}  // namespace haulout::cli
