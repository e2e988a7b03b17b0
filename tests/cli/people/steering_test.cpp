// Tests pause, resume, request-reboot and release. They write what kubectl could write, and report what they did.
#include "agent/gates/pause.hpp"
#include "agent/node/node_status.hpp"
#include "k8s/codec.hpp"
#include "k8s/surge_mark.hpp"
#include "sim/status_bodies.hpp"
#include "tests/cli/people/people_fixture.hpp"

namespace haulout::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

using SteeringTest = PeopleTest;

TEST_F(SteeringTest, PausesAndResumesANode) {
  set_state("n1", "idle");
  EXPECT_EQ(command({"pause", "n1", "--reason", "new disk; Monday"}), 0);
  EXPECT_EQ(text.text, "node/n1 paused: new disk; Monday (jane@desk)\n");
  EXPECT_THAT(errors.text, IsEmpty());
  const agent::Pause written = agent::parse_pause_annotation(annotation("n1", "haulout.dev/pause"));
  EXPECT_EQ(written, (agent::Pause{"new disk; Monday (jane@desk)", std::nullopt}));

  EXPECT_EQ(command({"pause", "node/n1", "--reason", "new disk; Monday"}), 0);
  EXPECT_EQ(text.text, "node/n1 already paused: new disk; Monday (jane@desk)\n");

  EXPECT_EQ(command({"resume", "n1"}), 0);
  EXPECT_EQ(text.text, "node/n1 resumed (was paused: new disk; Monday (jane@desk))\n");
  EXPECT_EQ(annotation("n1", "haulout.dev/pause"), "<none>");

  EXPECT_EQ(command({"resume", "n1"}), 0);
  EXPECT_EQ(text.text, "node/n1 is not paused\n");
}

// The command writes the reason as the API server stores it. Otherwise each repetition of the command would change the
// Node again.
TEST_F(SteeringTest, AReasonThatIsNoUtf8IsWrittenAsItIsReadAgain) {
  set_state("n1", "idle");
  EXPECT_EQ(command({"pause", "n1", "--reason", "caf\xe9"}), 0);
  const agent::Pause written = agent::parse_pause_annotation(annotation("n1", "haulout.dev/pause"));
  EXPECT_EQ(written, (agent::Pause{"caf\uFFFD (jane@desk)", std::nullopt}));
  EXPECT_EQ(command({"pause", "n1", "--reason", "caf\xe9"}), 0);
  EXPECT_THAT(text.text, HasSubstr("node/n1 already paused"));
}

TEST_F(SteeringTest, APauseEndsAtATimeOrAfterAWhile) {
  set_state("n1", "idle");
  const WallTime later = std::chrono::floor<std::chrono::seconds>(clock.wall_now() + 3h);
  EXPECT_EQ(command({"pause", "n1", "--until", k8s::format_time(later)}), 0);
  EXPECT_EQ(agent::parse_pause_annotation(annotation("n1", "haulout.dev/pause")),
            (agent::Pause{"by jane@desk", later}));
  EXPECT_EQ(command({"pause", "n1", "--until", "90m"}), 0);
  const auto until = agent::parse_pause_annotation(annotation("n1", "haulout.dev/pause")).until;
  ASSERT_TRUE(until);
  const auto left = *until - clock.wall_now();  // the command was given two minutes ago
  EXPECT_GE(left, 88min);
  EXPECT_LE(left, 88min + 1s);
  EXPECT_THAT(text.text, HasSubstr("(was paused until " + k8s::format_time(later)));
}

TEST_F(SteeringTest, AWhileIsCountedByTheServersClock) {
  own_clock.shift_wall(-3h);
  EXPECT_EQ(command({"pause", "n1", "--until", "90m"}, 1s), 143);
  const auto until = agent::parse_pause_annotation(annotation("n1", "haulout.dev/pause")).until;
  ASSERT_TRUE(until);
  const auto left = *until - clock.wall_now();
  EXPECT_GE(left, 89min);
  EXPECT_LE(left, 90min + 1s);
}

TEST_F(SteeringTest, APauseThatIsOverAlreadyIsRefusedBeforeAnyRequest) {
  EXPECT_EQ(command({"pause", "n1", "--until", "2020-01-01T00:00:00Z"}), 2);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("2020-01-01T00:00:00Z"), HasSubstr("in the past")));
  EXPECT_EQ(annotation("n1", "haulout.dev/pause"), "<none>");
  EXPECT_TRUE(cluster.audit().empty());
}

TEST_F(SteeringTest, PausesThePoolAndTheClusterWhereNothingIsYet) {
  EXPECT_EQ(command({"pause", "--all", "--until", "2h", "--reason", "incident"}), 0);
  EXPECT_THAT(text.text, AllOf(HasSubstr("cluster paused until "), HasSubstr("incident (jane@desk)")));
  const agent::Pause cluster_pause = agent::parse_pause_json("pause", entry("pause"));
  EXPECT_EQ(cluster_pause.reason, "incident (jane@desk)");
  EXPECT_TRUE(cluster_pause.until);

  EXPECT_EQ(command({"pause", "--pool", "web"}), 0);
  EXPECT_EQ(text.text, "pool/web paused: by jane@desk\n");
  EXPECT_EQ(agent::parse_pause_json("pause.web", entry("pause.web")).reason, "by jane@desk");
  EXPECT_EQ(agent::parse_pause_json("pause", entry("pause")), cluster_pause) << "what others wrote stays";

  EXPECT_EQ(command({"resume", "--pool=web"}), 0);
  EXPECT_EQ(text.text, "pool/web resumed (was paused: by jane@desk)\n");
  EXPECT_THAT(errors.text, HasSubstr("cluster is still paused until"));
  EXPECT_EQ(entry("pause.web"), "<none>");

  EXPECT_EQ(command({"resume", "--all"}), 0);
  EXPECT_THAT(text.text, HasSubstr("cluster resumed"));
  EXPECT_EQ(entry("pause"), "<none>");
}

TEST_F(SteeringTest, AConfigMapThatIsDeletedMeanwhileIsMadeAnew) {
  EXPECT_EQ(command({"pause", "--pool", "web"}), 0);
  bool deleted = false;
  cluster.server().intercept([&](const sim::Call& call, const sim::AuditEntry& entry) -> std::optional<http::Response> {
    if (!deleted && entry.verb == "patch" && entry.resource == "configmaps") {
      deleted = true;
      cluster.remove("configmaps", "haulout", call.name);
    }
    return std::nullopt;
  });
  EXPECT_EQ(command({"pause", "--all"}), 0) << errors.text;
  EXPECT_TRUE(deleted);
  EXPECT_NE(entry("pause"), "<none>");
}

TEST_F(SteeringTest, ResumingWhatIsNotThereCreatesNothing) {
  EXPECT_EQ(command({"resume", "--all"}), 0);
  EXPECT_EQ(text.text, "cluster is not paused\n");
  EXPECT_EQ(entry("pause"), "<no ConfigMap>");
}

TEST_F(SteeringTest, ResumingANodeTellsWhatStillHolds) {
  set_state("n1", "pending", "Paused");
  label("n1", {{"haulout.dev/pool", "web"}});
  EXPECT_EQ(command({"pause", "--pool", "web"}), 0);
  EXPECT_EQ(command({"pause", "--pool", "db"}), 0);
  EXPECT_EQ(command({"pause", "--all"}), 0);
  EXPECT_EQ(command({"pause", "n1"}), 0);
  EXPECT_EQ(command({"resume", "n1"}), 0);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("cluster is still paused"), HasSubstr("pool/web is still paused"),
                                 Not(HasSubstr("pool/db"))));
}

// The label was set before the node had an agent, and nobody has removed it.
TEST_F(SteeringTest, ResumingANodeTellsOfThePauseOfThePoolInItsRecord) {
  set_state("n1", "pending", "Paused");
  label("n1", {{"haulout.dev/pool", "none"}});
  agent::Record record;
  record.pool = "web";
  annotate("n1", {{"haulout.dev/record", encode_record(record)}});
  EXPECT_EQ(command({"pause", "--pool", "web"}), 0);
  EXPECT_EQ(command({"pause", "n1"}), 0);
  EXPECT_EQ(command({"resume", "n1"}), 0);
  EXPECT_THAT(errors.text, HasSubstr("pool/web is still paused"));
}

TEST_F(SteeringTest, APauseThatCannotBeReadIsEndedAllTheSame) {
  annotate("n1", {{"haulout.dev/pause", "tomorrow"}});
  EXPECT_EQ(command({"resume", "n1"}), 0);
  EXPECT_THAT(text.text, HasSubstr("node/n1 resumed"));
  EXPECT_EQ(annotation("n1", "haulout.dev/pause"), "<none>");
}

TEST_F(SteeringTest, SeveralNodesAndOneThatIsUnknown) {
  EXPECT_EQ(command({"pause", "n1", "n9", "n2"}), 1);
  EXPECT_THAT(errors.text, HasSubstr("n9"));
  EXPECT_NE(annotation("n1", "haulout.dev/pause"), "<none>");
  EXPECT_NE(annotation("n2", "haulout.dev/pause"), "<none>");
  EXPECT_EQ(command({"resume", "-l", "zone=a"}), 0);
  EXPECT_THAT(text.text,
              AllOf(HasSubstr("node/n1 resumed"), HasSubstr("node/n2 resumed"), HasSubstr("node/n3 is not paused")));
}

TEST_F(SteeringTest, SaysWhenAPauseMayComeTooLateOrMeetsNoAgent) {
  set_state("n1", "draining");
  EXPECT_EQ(command({"pause", "n1", "n2"}), 0);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("node/n1 is already being updated (state draining)"),
                                 HasSubstr("no agent has reported on node/n2")));
}

// The error is the same as that of a drain, and contains none of the server's own words.
TEST_F(SteeringTest, ANodeThatIsNotThere) {
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{{"pause", "nosuch"},
                                                                                    {"resume", "nosuch"},
                                                                                    {"request-reboot", "nosuch"},
                                                                                    {"explain", "nosuch"},
                                                                                    {"status", "nosuch"}}) {
    EXPECT_EQ(command(args), 1) << args[0];
    EXPECT_THAT(errors.text, AllOf(HasSubstr("node nosuch does not exist in this cluster"), Not(HasSubstr("404"))))
        << args[0];
  }
}

TEST_F(SteeringTest, ANamespaceThatIsNotThere) {
  EXPECT_EQ(command({"pause", "--all", "-n", "elsewhere"}), 1);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("elsewhere"), HasSubstr("-n")));
}

// The command does not overwrite what another client writes in the meantime.
TEST_F(SteeringTest, SurvivesOtherWriters) {
  set_state("n1", "idle");
  for (int i = 1; i <= 100; ++i) cluster.after(i * 1ms, [this, i] { annotate("n1", {{"other", std::to_string(i)}}); });
  EXPECT_EQ(command({"pause", "n1"}), 0);
  EXPECT_TRUE(std::any_of(cluster.audit().begin(), cluster.audit().end(),
                          [](const sim::AuditEntry& entry) { return entry.verb == "patch" && entry.status == 409; }));
  EXPECT_NE(annotation("n1", "haulout.dev/pause"), "<none>");
  EXPECT_EQ(annotation("n1", "other"), "100");
}

TEST_F(SteeringTest, NotPermitted) {
  cluster.forbid("patch", "nodes");
  EXPECT_EQ(command({"pause", "n1"}), 3);
  EXPECT_THAT(errors.text, HasSubstr("n1"));
}

TEST_F(SteeringTest, RequestsAReboot) {
  set_state("n1", "idle");
  EXPECT_EQ(command({"request-reboot", "n1"}), 0);
  EXPECT_EQ(text.text, "reboot of node/n1 requested (state idle)\n");
  EXPECT_EQ(annotation("n1", "haulout.dev/request"), "reboot");
  EXPECT_EQ(command({"request-reboot", "n1", "--reason", "again"}), 0);
  EXPECT_THAT(text.text, HasSubstr("already"));
  EXPECT_EQ(annotation("n1", "haulout.dev/request"), "reboot");
}

TEST_F(SteeringTest, ARequestWithAReasonIsOneForTheAgent) {
  set_state("n1", "degraded", "RebootLoop");
  EXPECT_EQ(command({"request-reboot", "n1", "--reason", "sysctl; grub"}), 0);
  EXPECT_EQ(annotation("n1", "haulout.dev/request"), "reboot; sysctl; grub (jane@desk)");
  EXPECT_THAT(errors.text, HasSubstr("degraded"));
  k8s::Node node;
  for (const auto& [value, asks] : std::map<std::string, bool>{
           {"reboot", true}, {"reboot; why", true}, {"reboots", false}, {"no reboot", false}, {"", false}}) {
    node.annotations = {{"haulout.dev/request", value}};
    EXPECT_EQ(agent::reboot_requested(node, clock.wall_now()), asks) << value;
  }
}

TEST_F(SteeringTest, RequestsARebootForLater) {
  set_state("n1", "idle");
  const WallTime later = std::chrono::floor<std::chrono::seconds>(clock.wall_now() + 3h);
  const std::string time = k8s::format_time(later);
  EXPECT_EQ(command({"request-reboot", "n1", "--at", time, "--reason", "new disk"}), 0);
  EXPECT_EQ(text.text, "reboot of node/n1 requested for " + time + " (state idle)\n");
  EXPECT_EQ(annotation("n1", "haulout.dev/request"), "reboot at " + time + "; new disk (jane@desk)");
  EXPECT_EQ(command({"request-reboot", "n1", "--at", time}), 0);
  EXPECT_EQ(text.text, "a reboot of node/n1 was already requested for " + time + " (state idle)\n");
  EXPECT_EQ(command({"request-reboot", "n1"}), 0);
  EXPECT_EQ(text.text, "reboot of node/n1 requested, in place of the request for " + time + " (state idle)\n");
  EXPECT_EQ(annotation("n1", "haulout.dev/request"), "reboot");
  EXPECT_EQ(command({"request-reboot", "n1", "--at", "90m"}), 0);
  EXPECT_THAT(annotation("n1", "haulout.dev/request"), StartsWith("reboot at 20"));
}

TEST_F(SteeringTest, ATimeInThePastRequestsNothing) {
  set_state("n1", "idle");
  EXPECT_EQ(command({"request-reboot", "n1", "--at", "2020-01-01T00:00:00Z"}), 2);
  EXPECT_THAT(errors.text, HasSubstr("--at 2020-01-01T00:00:00Z is in the past"));
  EXPECT_EQ(annotation("n1", "haulout.dev/request"), "<none>");
}

TEST_F(SteeringTest, WithoutAnAgentNothingIsRequested) {
  EXPECT_EQ(command({"request-reboot", "n1"}), 1);
  EXPECT_THAT(errors.text, HasSubstr("no agent has reported on node/n1"));
  EXPECT_EQ(annotation("n1", "haulout.dev/request"), "<none>");
}

TEST_F(SteeringTest, NamesOfNodesForAShell) {
  EXPECT_EQ(command({"__complete"}), 0);
  EXPECT_EQ(out.text, "n1\nn2\nn3\n");
  cluster.forbid("list", "nodes");
  EXPECT_EQ(command({"__complete"}), 0);
  EXPECT_THAT(out.text + text.text + errors.text, IsEmpty());
}

// The Deployment shop/web with a pod that a drain of n1 has surged.
class ReleaseTest : public PeopleTest {
 protected:
  void add_set() {
    const nlohmann::json labels = {{"app", "web"}, {"pod-template-hash", "6d4b9"}};
    cluster.create("replicasets", {{"metadata", {{"name", "web-6d4b9"}, {"namespace", "shop"}}},
                                   {"spec",
                                    {{"replicas", 1},
                                     {"selector", {{"matchLabels", labels}}},
                                     {"template", {{"metadata", {{"labels", labels}}}}}}}});
    set_uid_ = nlohmann::json(cluster.get("replicasets", "shop", "web-6d4b9"))["metadata"]["uid"];
  }
  void add_pod(const char* name, const char* node, bool surged) {
    nlohmann::json made = {{"metadata", {{"name", name}, {"namespace", "shop"}, {"labels", {{"app", "web"}}}}},
                           {"spec", {{"nodeName", node}}},
                           {"status", {{"phase", "Running"}}}};
    const k8s::SurgeMark mark{"run", "me", {}, node, "6d4b9", "web-6d4b9", set_uid_, 1};
    if (surged) made["metadata"]["annotations"]["haulout.dev/surged"] = k8s::encode_surge_mark(mark);
    cluster.create("pods", made);
  }
  nlohmann::json metadata(const char* name) {
    return nlohmann::json(cluster.get("pods", "shop", name)).value("metadata", nlohmann::json::object());
  }
  bool has_mark(const char* name) {
    return metadata(name).value("annotations", nlohmann::json::object()).contains("haulout.dev/surged");
  }
  std::string set_uid_ = "no-such-uid";
};

TEST_F(ReleaseTest, GivesBackThePodsThatADrainHasSurged) {
  add_set();
  add_pod("web-1", "n1", true);
  add_pod("other", "n1", false);
  add_pod("elsewhere", "n2", true);
  EXPECT_EQ(command({"release", "n1"}), 0) << errors.text;
  EXPECT_EQ(text.text, "pod/shop/web-1 given back to its ReplicaSet\n");
  EXPECT_EQ(metadata("web-1").at("labels").at("pod-template-hash"), "6d4b9");
  EXPECT_EQ(metadata("web-1").at("ownerReferences").at(0).at("uid"), set_uid_);
  EXPECT_FALSE(has_mark("web-1"));
  EXPECT_FALSE(metadata("other").at("labels").contains("pod-template-hash"));
  EXPECT_FALSE(metadata("elsewhere").at("labels").contains("pod-template-hash"));

  EXPECT_EQ(command({"release", "n1"}), 0);
  EXPECT_EQ(text.text, "node/n1 has no pod to give back\n");
  EXPECT_EQ(command({"release", "nosuch"}), 1);
}

TEST_F(ReleaseTest, APodWhoseReplicaSetIsGoneKeepsItsMarkAndIsNamed) {
  add_pod("web-1", "n1", true);
  EXPECT_EQ(command({"release", "n1"}), 1);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("shop/web-1"), HasSubstr("web-6d4b9 does not exist any more")));
  EXPECT_TRUE(has_mark("web-1"));
  EXPECT_FALSE(metadata("web-1").at("labels").contains("pod-template-hash"));
}

TEST_F(ReleaseTest, NamesWhatItMayNotGiveBack) {
  add_set();
  add_pod("web-1", "n1", true);
  cluster.server().intercept([](const sim::Call&, const sim::AuditEntry& entry) -> std::optional<http::Response> {
    if (entry.verb != "patch" || entry.resource != "pods") return std::nullopt;
    return sim::forbidden_by_rbac("jane", "patch", *sim::find_resource("pods"), "", "shop", "web-1").response();
  });
  EXPECT_EQ(command({"release", "n1"}), 1);
  EXPECT_THAT(errors.text, AllOf(HasSubstr("shop/web-1"), HasSubstr("could not be given back")));
  EXPECT_TRUE(has_mark("web-1"));
}

}  // namespace
}  // namespace haulout::cli
