// Tests `haulout retire` against the simulated cluster, in virtual time.
#include "tests/cli/drain/retire_fixture.hpp"

namespace haulout::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(RetireTest, DrainsDeletesTheNodeAndWaitsForItsObjects) {
  add_pod("web-0", "n1", true);
  add_daemon_pod();
  add_lease_and_csinode();
  EXPECT_EQ(drain({"retire", "n1"}), 0) << errors.text;
  EXPECT_EQ(text.text,
            "node/n1 cordoned\nevicting pod shop/web-0\npod/web-0 evicted\nnode/n1 drained\nnode \"n1\" deleted\n")
      << "stdout has kubectl's lines and no other";
  EXPECT_THAT(errors.text, HasSubstr("node/n1 retired: no pod, VolumeAttachment, CSINode or Lease of it is left"));
  EXPECT_THAT(deletions(), ElementsAre("nodes n1 " + uid_ + " 200")) << "it deletes one Node and nothing else";
  EXPECT_FALSE(exists("nodes", "", "n1"));
  EXPECT_FALSE(exists("pods", "shop", "log-n1"));
  EXPECT_FALSE(exists("csinodes", "", "n1"));
  EXPECT_FALSE(exists("leases", "kube-node-lease", "n1"));
  EXPECT_TRUE(exists("nodes", "", "n2"));
}

TEST_F(RetireTest, ReportsAsJson) {
  add_pod("web-0", "n1", true);
  EXPECT_EQ(drain({"retire", "n1", "-o", "json"}), 0) << errors.text;
  const Json report = Json::parse(out.text);
  EXPECT_EQ(report["outcome"], "drained");
  EXPECT_EQ(report["retirement"]["outcome"], "retired");
  EXPECT_EQ(report["retirement"]["deletion"], "done");
  EXPECT_EQ(report["retirement"]["leftovers"], Json::array());
}

TEST_F(RetireTest, ADrainThatFailsDeletesNothing) {
  add_pod("alone", "n1", false);
  add_pod("web-0", "n2", true);
  EXPECT_EQ(drain({"retire", "n1", "n2"}), 1);
  EXPECT_THAT(errors.text, HasSubstr("--force"));
  EXPECT_TRUE(exists("nodes", "", "n1"));
  EXPECT_FALSE(exists("nodes", "", "n2")) << "one failure does not stop the next node";
}

TEST_F(RetireTest, DryRunsDeleteNothing) {
  add_pod("web-0", "n1", true);
  EXPECT_EQ(drain({"retire", "n1", "--dry-run=client"}), 0);
  EXPECT_THAT(text.text, HasSubstr("node \"n1\" deleted (dry run)\n"));
  EXPECT_THAT(deletions(), IsEmpty());
  EXPECT_EQ(drain({"retire", "n1", "--dry-run=server"}), 0);
  EXPECT_THAT(text.text, HasSubstr("node \"n1\" deleted (server dry run)\n"));
  EXPECT_THAT(deletions(), ElementsAre("nodes n1 " + uid_ + " 200 dry run"));
  EXPECT_TRUE(exists("nodes", "", "n1"));
  EXPECT_FALSE(cordoned("n1"));
}

// The pod that the selector does not match would be deleted with the Node: without an eviction, and against its budget.
TEST_F(RetireTest, P1_APodThatStaysKeepsTheNode) {
  add_pod("web-0", "n1", true);
  cluster.patch("pods", "shop", "web-0", {{"metadata", {{"labels", {{"app", "web"}}}}}});
  add_pod("db-0", "n1", true);
  EXPECT_EQ(drain({"retire", "n1", "--pod-selector", "app=web"}), 1);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("error: node/n1 was drained, but not retired"),
                                 HasSubstr("  pod shop/db-0: it would end with the Node, without an eviction")));
  EXPECT_THAT(deletions(), IsEmpty());
  EXPECT_TRUE(cordoned("n1"));

  EXPECT_EQ(drain({"retire", "n1", "--pod-selector", "app=web", "--dry-run=client"}), 1);
  EXPECT_THAT(errors.text, HasSubstr("error: node/n1 would be drained, but not retired\n  pod shop/db-0"));
}

TEST_F(RetireTest, AnAttachedVolumeKeepsTheNodeUnlessTheDrainLeftIt) {
  cordon_n1();
  add_attachment("csi-1");
  EXPECT_EQ(retire_drained().outcome, drain::RetirementOutcome::kept);
  EXPECT_EQ(retire_drained({volume_of("csi-1", drain::VolumeOutcome::detaching)}).outcome,
            drain::RetirementOutcome::kept);
  EXPECT_TRUE(exists("nodes", "", "n1"));
  const auto report = retire_drained({volume_of("csi-1", drain::VolumeOutcome::kept)});
  EXPECT_EQ(report.deletion, drain::NodeDeletion::done);
  EXPECT_FALSE(exists("nodes", "", "n1"));
}

TEST_F(RetireTest, ANodeThatIsNotCordonedAnyMoreIsKept) {
  const auto report = retire_drained();
  EXPECT_EQ(report.outcome, drain::RetirementOutcome::kept);
  ASSERT_EQ(report.leftovers.size(), 1U);
  EXPECT_THAT(report.leftovers[0].why, HasSubstr("not cordoned any more"));
}

TEST_F(RetireTest, P2_ANamesakeOfTheDrainedNodeIsNotDeleted) {
  become_another_node();
  cordon_n1();
  EXPECT_EQ(retire_drained().outcome, drain::RetirementOutcome::replaced);
  EXPECT_THAT(deletions(), IsEmpty());
}

TEST_F(RetireTest, P2_ANamesakeThatComesBetweenTheLastLookAndTheDeletionIsNotDeleted) {
  at_request("delete", "nodes", 1, [this] { become_another_node(); });
  EXPECT_EQ(drain({"retire", "n1"}), 1);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("was drained, but not retired"), HasSubstr("another Node has its name")));
  EXPECT_EQ(sim::uid_of(cluster.get("nodes", "", "n1")), "another");
  EXPECT_THAT(deletions(), ElementsAre("nodes n1 " + uid_ + " 409"));
}

// If the Node has changed since the last look, the command looks again before it repeats the deletion.
TEST_F(RetireTest, P3_ANodeThatIsUncordonedBeforeTheDeletionIsKept) {
  at_request("delete", "nodes", 1,
             [this] { cluster.patch("nodes", "", "n1", {{"spec", {{"unschedulable", false}}}}); });
  EXPECT_EQ(drain({"retire", "n1"}), 1);
  EXPECT_THAT(errors.text, HasSubstr("  node n1: it is not cordoned any more"));
  EXPECT_THAT(deletions(), ElementsAre("nodes n1 " + uid_ + " 409"));
  EXPECT_TRUE(exists("nodes", "", "n1"));
}

TEST_F(RetireTest, AnAgentThatBeginsToUpdateBeforeTheDeletionKeepsTheNode) {
  at_request("delete", "nodes", 1, [this] {
    cluster.patch("nodes", "", "n1", {{"metadata", {{"labels", {{"haulout.dev/state", "draining"}}}}}});
  });
  EXPECT_EQ(drain({"retire", "n1"}), 1);
  EXPECT_THAT(errors.text, HasSubstr("  node n1: its agent is updating it (state draining)"));
  EXPECT_TRUE(exists("nodes", "", "n1"));
}

TEST_F(RetireTest, AHeartbeatBeforeTheDeletionOnlyDelaysIt) {
  at_request("delete", "nodes", 1,
             [this] { cluster.patch("nodes", "", "n1", {{"status", {{"allocatable", {{"pods", "7"}}}}}}); });
  EXPECT_EQ(drain({"retire", "n1"}), 0) << errors.text;
  EXPECT_THAT(deletions(), ElementsAre("nodes n1 " + uid_ + " 409", "nodes n1 " + uid_ + " 200"));
}

TEST_F(RetireTest, ANodeThatAlwaysChangesIsNotDeleted) {
  cluster.server().intercept([](const sim::Call&, const sim::AuditEntry& entry) -> std::optional<http::Response> {
    if (entry.verb != "delete") return std::nullopt;
    return http::Response{
        409, {}, R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409})"};
  });
  EXPECT_EQ(drain({"retire", "n1", "-o", "json"}), 1);
  EXPECT_EQ(Json::parse(out.text)["retirement"]["outcome"], "failed");
  EXPECT_EQ(Json::parse(out.text)["retirement"]["deletion"], "not-sent");
  EXPECT_THAT(errors.text, HasSubstr("node n1 changed before each attempt to delete it, so it was not deleted"));
  EXPECT_LT(deletions().size(), 40U);
}

// The server may have deleted the Node before it answered 504. The refusal that follows does not change that.
TEST_F(RetireTest, P4_ALostAnswerStaysUnknownIfTheNextIsARefusal) {
  sim::FaultTransport unsteady(cluster.api(), clock, world_rng);
  unsteady.add({.verb = "delete",
                .resource = "nodes",
                .count = 1,
                .fault = {.kind = sim::FaultKind::server_error, .code = 504}});
  k8s::Client other(unsteady, clock);
  at_request("patch", "nodes", 1, [this] { cluster.after(1s, [this] { cluster.forbid("delete", "nodes"); }); });
  LineView view(console, {});
  DrainJob job(tools(other), settings_of({"retire", "n1", "-o", "json"}), view, nullptr);
  EXPECT_EQ(run_job(job), 3);
  EXPECT_EQ(Json::parse(out.text)["retirement"]["deletion"], "unknown");
  EXPECT_THAT(errors.text, HasSubstr("it is unknown whether its Node is deleted"));
}

TEST_F(RetireTest, ANodeThatRegistersAgainIsSaid) {
  cluster.on_change([this](const sim::Change& change) {
    if (change.type == sim::ChangeType::deleted && change.key.resource == "nodes" &&
        sim::uid_of(*change.object) == uid_)
      cluster.after(100ms, [this] {
        add({{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", "n1"}, {"uid", "again"}}}});
      });
  });
  add_lease_and_csinode();
  EXPECT_EQ(drain({"retire", "n1"}), 1);
  EXPECT_THAT(text.text, HasSubstr("node \"n1\" deleted\n"));
  EXPECT_THAT(errors.text, HasSubstr("stop the kubelet on the machine"));
  EXPECT_TRUE(exists("nodes", "", "n1"));
}

TEST_F(RetireTest, AnotherProgramMayDeleteTheNodeFirst) {
  cordon_n1();
  cluster.remove("nodes", "", "n1");
  const auto report = retire_drained();
  EXPECT_EQ(report.outcome, drain::RetirementOutcome::retired);
  EXPECT_EQ(report.deletion, drain::NodeDeletion::by_another);
  EXPECT_THAT(deletions(), IsEmpty());
}

TEST_F(RetireTest, ALostAnswerToTheDeletionIsNotAFailure) {
  sim::FaultTransport unsteady(cluster.api(), clock, world_rng);
  unsteady.add({.verb = "delete", .resource = "nodes", .count = 1, .fault = {.kind = sim::FaultKind::reset_after}});
  k8s::Client other(unsteady, clock);
  LineView view(console, {});
  DrainJob job(tools(other), settings_of({"retire", "n1"}), view, nullptr);
  EXPECT_EQ(run_job(job), 0) << errors.text;
  EXPECT_THAT(deletions(), ElementsAre("nodes n1 " + uid_ + " 200", "nodes n1 " + uid_ + " 404"));
}

TEST_F(RetireTest, AnInterruptionSaysWhetherTheNodeIsDeleted) {
  cluster.stop_garbage_collector();
  add_lease_and_csinode();
  EXPECT_EQ(drain({"retire", "n1", "--settle=0"}, 10s), 143);
  EXPECT_THAT(text.text, HasSubstr("node \"n1\" deleted\n"));
  EXPECT_THAT(errors.text, AllOf(HasSubstr("error: node/n1 was deleted, but its retirement is not complete"),
                                 HasSubstr("CSINode n1")));

  errors.text.clear();
  sim::FaultTransport silent(cluster.api(), clock, world_rng);
  silent.add({.verb = "delete", .resource = "nodes", .fault = {.kind = sim::FaultKind::stall}});
  k8s::Client other(silent, clock);
  LineView view(console, {});
  DrainJob job(tools(other), settings_of({"retire", "n2", "--settle=0"}), view, nullptr);
  EXPECT_EQ(run_job(job, 10s), 143);
  EXPECT_THAT(errors.text, HasSubstr("node/n2 was drained; it is unknown whether its Node is deleted"));
}

TEST_F(RetireTest, P4_WhatIsLeftAfterTheLimitIsNamed) {
  cluster.stop_garbage_collector();
  add_lease_and_csinode();
  EXPECT_EQ(drain({"retire", "n1"}), 1);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("2m00s after the deletion of the Node, something of the node is left"),
                                 HasSubstr("  CSINode n1: "), HasSubstr("  Lease kube-node-lease/n1: ")));
  EXPECT_FALSE(exists("nodes", "", "n1"));
}

TEST_F(RetireTest, AMissingRightIsNamed) {
  cluster.forbid("delete", "nodes");
  EXPECT_EQ(drain({"retire", "n1"}), 3);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("node/n1 was drained, but not retired"), HasSubstr("verbs: [\"delete\"]")));
  EXPECT_TRUE(exists("nodes", "", "n1"));
}

TEST_F(RetireTest, P10_TheLastLookObeysRetryAfter) {
  sim::FaultTransport busy(cluster.api(), clock, world_rng);
  busy.add({.verb = "get",
            .resource = "csinodes",
            .count = 1,
            .fault = {.kind = sim::FaultKind::throttle, .retry_after = "20"}});
  k8s::Client other(busy, clock);
  LineView view(console, {});
  DrainJob job(tools(other), settings_of({"retire", "n1"}), view, nullptr);
  EXPECT_EQ(run_job(job), 0) << errors.text;
  std::vector<TimePoint> looks;
  for (const sim::AuditEntry& entry : cluster.audit())
    if (entry.verb == "get" && entry.resource == "leases") looks.push_back(entry.time);
  ASSERT_EQ(looks.size(), 2U);
  EXPECT_GE(looks[1] - looks[0], 19s);
}

TEST_F(RetireTest, WhatMayNotBeReadIsNotClean) {
  cluster.forbid("get", "csinodes");
  EXPECT_EQ(drain({"retire", "n1"}), 1);
  EXPECT_THAT(errors.text,
              AllOf(HasSubstr("the Node is deleted, but something of the node is left or could not be read"),
                    HasSubstr("  CSINode n1: could not be read")));
}

TEST_F(RetireTest, ANodeThatItsAgentUpdatesIsNotTouched) {
  for (const char* state : {"draining", "updating", "ready", "rebooting", "verifying", "uncordoning", "soaking"}) {
    errors.text.clear();
    cluster.patch("nodes", "", "n1", {{"metadata", {{"labels", {{"haulout.dev/state", state}}}}}});
    EXPECT_EQ(drain({"retire", "n1", "n2"}), 1) << state;
    EXPECT_THAT(errors.text, AllOf(HasSubstr("error: node/n1 cannot be retired, so nothing was changed: its agent is "),
                                   HasSubstr(state), HasSubstr("kubectl delete node n1")));
    EXPECT_FALSE(cordoned("n1"));
    EXPECT_FALSE(cordoned("n2"));
  }
  for (const auto& entry : cluster.audit()) EXPECT_FALSE(entry.applied) << entry.text();
  cluster.patch("nodes", "", "n1", {{"metadata", {{"labels", {{"haulout.dev/state", "degraded"}}}}}});
  EXPECT_EQ(drain({"retire", "n1"}), 0) << errors.text;
}

TEST_F(RetireTest, AnAgentThatBeginsToUpdateDuringTheDrainKeepsTheNode) {
  at_request("patch", "nodes", 1, [this] {
    cluster.after(2s, [this] {
      cluster.patch("nodes", "", "n1", {{"metadata", {{"labels", {{"haulout.dev/state", "draining"}}}}}});
    });
  });
  EXPECT_EQ(drain({"retire", "n1"}), 1);
  EXPECT_THAT(errors.text, HasSubstr("  node n1: its agent is updating it (state draining)"));
  EXPECT_THAT(deletions(), IsEmpty());
}

TEST_F(RetireTest, ItDoesNotRetireTheNodeOnWhichItRuns) {
  add_pod("a-job", "n1", true);
  set_token_of_pod("secret", "a-job", "n1");
  sim::TokenTransport in_pod(cluster.api(), "secret");
  k8s::Client as_job(in_pod, clock);
  Settings settings = settings_of({"retire", "n1"});
  settings.in_a_pod = true;
  LineView view(console, {});
  DrainJob drain_job(tools(as_job), settings, view, nullptr);
  EXPECT_EQ(run_job(drain_job), 1);
  EXPECT_THAT(errors.text, HasSubstr("this program runs in a pod of the node"));
  EXPECT_FALSE(cordoned("n1"));
}

TEST(RetireSettings, ItsDefaultsAreCarefulAndFlagsChangeThem) {
  const auto parsed = [](std::vector<std::string> args) {
    return std::get<Settings>(parse_command_line("haulout", args)).drain;
  };
  const drain::Options options = parsed({"retire", "n1"});
  EXPECT_EQ(options.policy.daemon_set, drain::Treatment::skip);
  EXPECT_EQ(options.policy.empty_dir, drain::Treatment::refuse);
  EXPECT_EQ(options.policy.unmanaged, drain::Treatment::refuse);
  EXPECT_EQ(options.volumes, drain::VolumeWait::required);
  EXPECT_EQ(options.fit, drain::FitPolicy::warn);
  EXPECT_EQ(options.guards.max_unavailable, (drain::Share{25, true}));
  EXPECT_EQ(options.guards.single_replica, drain::SingleReplica::warn);
  EXPECT_EQ(parsed({"retire", "n1", "--single-replica=block"}).guards.single_replica, drain::SingleReplica::block);
  EXPECT_EQ(parsed({"drain", "n1"}), drain::kubectl_defaults()) << "the defaults of `drain` stay kubectl's";
  const auto wrong = std::get<Immediate>(parse_command_line("haulout", {"retire", "n1", "-o", "jsonl"}));
  EXPECT_EQ(wrong.exit_code, 2);
}

}  // namespace
}  // namespace haulout::cli
