// Tests `find_authority` against the simulated cluster, with the guards of a real cluster.
#include "agent/authority/authority.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "k8s/client.hpp"
#include "k8s/status.hpp"
#include "retry/task_group.hpp"
#include "sim/status_bodies.hpp"
#include "tests/agent/authority/guards.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::agent {
namespace {
namespace asio = boost::asio;
using namespace std::chrono_literals;
using haulout::testing::bound_to;
using sim::Json;
using sim::kubelet_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

k8s::DeleteOptions with_uid(std::string uid) {
  k8s::DeleteOptions options;
  options.uid = std::move(uid);
  return options;
}

class FindAuthorityTest : public haulout::testing::VirtualTimeTest {
 protected:
  FindAuthorityTest() {
    add({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "haulout"}}}});
    add({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "default"}}}});
    for (const std::string name : {"n1", "n2"}) {
      add({{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", name}, {"uid", name + "-uid"}}}});
      add({{"apiVersion", "v1"},
           {"kind", "Pod"},
           {"metadata", {{"name", "agent-" + name}, {"namespace", "haulout"}, {"uid", "agent-" + name + "-uid"}}},
           {"spec", {{"nodeName", name}, {"containers", {{{"name", "agent"}, {"image", "haulout"}}}}}},
           {"status", {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
    }
    // Requests that the roles for impersonation do not grant to the ServiceAccount itself.
    guards.denied = {"patch nodes", "patch nodes/status", "create pods/eviction", "get nodes", "list pods"};
    use(bound_to(cluster, "n1", "agent-n1"));
  }

  void add(const Json& object) { ASSERT_TRUE(cluster.load(object.dump())); }
  void use(sim::Identity identity) { cluster.set_token("secret", std::move(identity)); }
  // Simulates a cluster without the feature gate ConstrainedImpersonation, where admission policies restrict the
  // ServiceAccount.
  void only_policies() {
    guards.impersonation = false;
    guards.denied.clear();
  }
  Result<Authority> find(AuthorityOptions wanted = {}) {
    std::optional<Result<Authority>> found;
    run(with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
      group.spawn(cluster.run());
      found.emplace(co_await find_authority(as_agent, clock, wanted, clock.now() + 60s));
    }));
    return *std::move(found);
  }
  std::string problem(AuthorityOptions options = {}) {
    const auto found = find(std::move(options));
    if (found) return "found " + std::string(to_string(found->kind));
    EXPECT_FALSE(k8s::is_transient(found.error()));
    return found.error().message();
  }

  SeededRng world_rng{2};
  sim::TestCluster cluster{context.get_executor(), clock, world_rng};
  haulout::testing::Guards guards{cluster};
  sim::TokenTransport as_agent{cluster.api(), "secret"};
};

TEST_F(FindAuthorityTest, ImpersonationIsTheBest) {
  const auto found = find();
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->kind, AuthorityKind::impersonation);
  EXPECT_EQ(found->node, (OwnNode{"n1", "n1-uid"}));
  EXPECT_EQ(found->user, "system:serviceaccount:haulout:agent");
  EXPECT_EQ(found->credential, "JTI=6863");
  EXPECT_EQ(found->pod_ns, "haulout");
  EXPECT_EQ(found->pod_name, "agent-n1");
  EXPECT_EQ(found->pod_uid, "agent-n1-uid");
  EXPECT_EQ(found->impersonated_node(), "n1");
  EXPECT_FALSE(found->may_review_access());
  EXPECT_EQ(found->rights, (Rights{true, true, true, true, true, true, true, true}));
  EXPECT_THAT(found->switched_off, IsEmpty());
  EXPECT_THAT(found->passed_over, IsEmpty());
}

// The agent needs both when it starts. Every further request would come from all agents of a fleet at once.
TEST_F(FindAuthorityTest, ReadsTheNodeOnceAndTheSizeOfTheCluster) {
  for (int i = 3; i <= 70; ++i)
    add({{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", "n" + std::to_string(i)}}}});
  const auto found = find();
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->seen.name, "n1");
  EXPECT_EQ(found->seen.uid, "n1-uid");
  EXPECT_EQ(found->cluster_nodes, 70u);
  EXPECT_EQ(std::ranges::count_if(cluster.audit(),
                                  [](const auto& entry) { return entry.verb == "get" && entry.resource == "nodes"; }),
            1);
  EXPECT_EQ(cluster.audit().size(), 21u);
}

// With the base of the manifests, the ServiceAccount's own rights are only to take slots, to write Events and to read
// the fleet. These are enough for an agent that impersonates its node.
TEST_F(FindAuthorityTest, ImpersonationNeedsNoOtherAuthorityBesides) {
  guards.policies = {"slots"};
  guards.denied.insert({"get pods", "watch pods", "delete pods"});
  const auto found = find();
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->kind, AuthorityKind::impersonation);
  EXPECT_FALSE(weakness(found->kind));
  // With the same roles on a server older than 1.36, the error names the remedy.
  guards.impersonation = false;
  EXPECT_THAT(problem(), AllOf(HasSubstr("1.36 and newer"), HasSubstr("component policies-only")));
}

// A person who stole a token may have created as many Leases as the quota allows. An agent that starts after that must
// not fail because of it.
TEST_F(FindAuthorityTest, AQuotaThatIsUsedUpTakesNoRightAway) {
  cluster.server().intercept([](const sim::Call& call, const sim::AuditEntry&) -> std::optional<http::Response> {
    if (!call.info || call.info->resource != "leases" || call.verb != "create" ||
        sim::text(Json::parse(call.request.body), "/spec/holderIdentity") != "n1/n1-uid")
      return std::nullopt;
    sim::StatusBody body;
    body.code = 403;
    body.reason = "Forbidden";
    body.kind = "leases";
    body.name = "haulout-haulout-probe-0";
    body.message =
        "leases.coordination.k8s.io \"haulout-haulout-probe-0\" is forbidden: exceeded quota: haulout-slots, "
        "requested: count/leases.coordination.k8s.io=1, used: 1k, limited: 1k";
    return body.response();
  });
  const auto found = find();
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_TRUE(found->rights.leases);
  EXPECT_TRUE(may_use_slots(*found, SlotsChoice::lease));
}

TEST(Weakness, IsToldOfWhatAThiefCanDo) {
  EXPECT_FALSE(weakness(AuthorityKind::impersonation));
  EXPECT_FALSE(weakness(AuthorityKind::kubelet));
  EXPECT_THAT(weakness(AuthorityKind::policies), ::testing::Optional(HasSubstr("first milliseconds")));
  EXPECT_THAT(weakness(AuthorityKind::service_account), ::testing::Optional(HasSubstr("every Node")));
}

// The admission plug-in NodeRestriction forbids nodes to change taints, so the option cannot work for an agent that
// acts as one.
TEST(WaitingTaintWithoutEffect, IsToldOfAgentsThatActAsNodes) {
  for (const AuthorityKind kind : {AuthorityKind::impersonation, AuthorityKind::kubelet}) {
    EXPECT_FALSE(may_change_taints(kind));
    EXPECT_THAT(taint_without_effect(kind, "example.com/waits"), ::testing::Optional(HasSubstr("has no effect")));
    EXPECT_THAT(taint_without_effect(kind, "example.com/waits"), ::testing::Optional(HasSubstr(to_string(kind))));
    EXPECT_FALSE(taint_without_effect(kind, ""));
  }
  for (const AuthorityKind kind : {AuthorityKind::policies, AuthorityKind::service_account}) {
    EXPECT_TRUE(may_change_taints(kind));
    EXPECT_FALSE(taint_without_effect(kind, "example.com/waits"));
  }
}

// The search changes nothing in the cluster, not even with its probes.
TEST_F(FindAuthorityTest, NothingIsWritten) {
  const std::uint64_t before = cluster.revision();
  ASSERT_TRUE(find());
  only_policies();
  ASSERT_TRUE(find());
  use(kubelet_of("n1"));
  ASSERT_TRUE(find());
  EXPECT_EQ(cluster.revision(), before);
  for (const auto& entry : cluster.audit()) {
    EXPECT_FALSE(entry.applied && !entry.resource.ends_with("selfsubjectreviews")) << entry.text();
    if (entry.subresource == "eviction") EXPECT_TRUE(entry.dry_run);
  }
}

TEST_F(FindAuthorityTest, PoliciesComeNext) {
  only_policies();
  const auto found = find();
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->kind, AuthorityKind::policies);
  EXPECT_EQ(found->impersonated_node(), "");
  EXPECT_TRUE(found->may_review_access());
  ASSERT_EQ(found->passed_over.size(), 1u);
  EXPECT_THAT(found->passed_over[0], AllOf(HasSubstr("impersonation: "), HasSubstr("1.36 and newer"),
                                           HasSubstr("cannot impersonate resource")));
  EXPECT_THAT(found->switched_off, IsEmpty());
}

// P11: all four policies must be in force. If one is missing, the ServiceAccount is not limited to its own node, and
// the agent does not start with it.
TEST_F(FindAuthorityTest, PoliciesThatAreNotAllInForceHoldNobody) {
  only_policies();
  const auto all = guards.policies;
  const std::map<std::string, std::string> held{
      {"node", "what the agents' ServiceAccount may write to Nodes"},
      {"pods", "the options (such as the grace period) with which the agents' ServiceAccount may evict pods"},
      {"own-pods", "the pods that the agents' ServiceAccount may evict"},
      {"slots", "the nodes for which the agents' ServiceAccount may create Leases"}};
  for (const auto& [name, what] : held) {
    guards.policies = all;
    guards.policies.erase(name);
    // A trial request that gets another answer than 403 proves nothing.
    EXPECT_THAT(problem(), AllOf(HasSubstr("rule restricts " + what),
                                 ::testing::AnyOf(HasSubstr("no rule"), HasSubstr("it is not proved that a rule")),
                                 HasSubstr("authority to serviceaccount")))
        << name;
    EXPECT_THAT(problem({.wanted = AuthorityChoice::policies}), HasSubstr(what)) << name;
  }
}

// An agent that impersonates also has its own credential, and takes slots with it. Impersonation limits nothing if that
// credential alone permits the same requests, or permits Leases in the names of other nodes.
TEST_F(FindAuthorityTest, ImpersonationIsRejectedIfTheSameRequestsWorkWithoutIt) {
  guards.policies = {"slots"};
  ASSERT_TRUE(find());
  guards.denied.clear();
  EXPECT_THAT(problem({.wanted = AuthorityChoice::impersonation}), HasSubstr("ServiceAccount may write to Nodes"));
  guards.denied = {"patch nodes"};
  EXPECT_THAT(problem({.wanted = AuthorityChoice::impersonation}), HasSubstr("ServiceAccount may evict pods"));
  guards.denied = {"patch nodes", "create pods/eviction"};
  ASSERT_TRUE(find({.wanted = AuthorityChoice::impersonation}));
  guards.policies.clear();
  EXPECT_THAT(problem(), HasSubstr("the nodes for which the agents' ServiceAccount may create Leases"));
}

// Without the admission plugin NodeRestriction, a node's identity may evict pods of all nodes. So neither impersonation
// nor the credential of a kubelet is accepted as an authority.
TEST_F(FindAuthorityTest, ANodesIdentityThatNothingHoldsIsNone) {
  cluster.switches().node_restriction = false;
  EXPECT_THAT(problem({.wanted = AuthorityChoice::impersonation}), HasSubstr("NodeRestriction"));
  guards.denied.clear();
  const auto found = find();
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->kind, AuthorityKind::policies);
  use(kubelet_of("n1"));
  EXPECT_THAT(problem(), HasSubstr("NodeRestriction"));
}

TEST_F(FindAuthorityTest, ARightThatIsMissingIsNamed) {
  for (const auto& [right, what] :
       {std::pair("list pods", "list the pods"), std::pair("patch nodes", "cordon"),
        std::pair("create pods/eviction", "evict"), std::pair("get nodes", "read its own Node")}) {
    guards.impersonate_on.erase(right);
    EXPECT_THAT(problem({.wanted = AuthorityChoice::impersonation}),
                AllOf(HasSubstr(what), HasSubstr("impersonate-on")));
    guards.impersonate_on.insert(right);
  }
}

TEST_F(FindAuthorityTest, AKubeletsCredentialsSwitchOffWhatTheyCannotReach) {
  use(kubelet_of("n1"));
  const auto found = find();
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->kind, AuthorityKind::kubelet);
  EXPECT_EQ(found->node, (OwnNode{"n1", "n1-uid"}));
  EXPECT_EQ(found->pod_name, "");
  EXPECT_EQ(found->rights, (Rights{.events = true, .node_status = true}));
  EXPECT_THAT(found->switched_off,
              ElementsAre(HasSubstr("may not list Nodes"), HasSubstr("Leases"), HasSubstr("PodDisruptionBudgets"),
                          HasSubstr("DaemonSets"), HasSubstr("VolumeAttachments"), HasSubstr("ConfigMaps")));
  EXPECT_FALSE(may_use_slots(*found, SlotsChoice::lease));
  EXPECT_FALSE(found->may_review_access());
}

TEST_F(FindAuthorityTest, WhoTakesNoLeasesIsNotToldThatTheyAreOutOfReach) {
  use(kubelet_of("n1"));
  for (const SlotsChoice slots : {SlotsChoice::fleetlock, SlotsChoice::none}) {
    const auto found = find({.slots = slots});
    ASSERT_TRUE(found) << found.error().message();
    EXPECT_THAT(found->switched_off,
                ElementsAre(HasSubstr("does not notice updates that failed"), HasSubstr("PodDisruptionBudgets"),
                            HasSubstr("DaemonSets"), HasSubstr("VolumeAttachments"), HasSubstr("ConfigMaps")));
    EXPECT_THAT(found->switched_off, ::testing::Each(::testing::Not(HasSubstr("Lease"))));
    EXPECT_TRUE(may_use_slots(*found, slots));
  }
}

TEST_F(FindAuthorityTest, APlainServiceAccountMustBeAskedFor) {
  guards.impersonation = false;
  guards.policies.clear();
  guards.denied.clear();
  EXPECT_THAT(problem(), AllOf(HasSubstr("impersonation: "), HasSubstr("policies: ")));
  const auto found = find({.wanted = AuthorityChoice::service_account});
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->kind, AuthorityKind::service_account);
  EXPECT_EQ(found->node, (OwnNode{"n1", "n1-uid"}));
}

// If the credential is a token that is not bound to a pod, or a person's kubeconfig, the name of the node must be
// configured, and no policy can limit the agent to that node.
TEST_F(FindAuthorityTest, AnUnboundTokenNeedsANameAndHoldsNothing) {
  guards.denied.clear();
  use(sim::service_account("haulout", "agent"));
  EXPECT_THAT(problem(), HasSubstr("HAULOUT_NODE_NAME"));
  EXPECT_THAT(problem({.node_name = "n1"}), HasSubstr("the token names no pod and Node"));
  guards.policies.clear();
  const auto found = find({.wanted = AuthorityChoice::service_account, .node_name = "n1"});
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->node, (OwnNode{"n1", "n1-uid"}));
}

TEST_F(FindAuthorityTest, WhatWasAskedForIsNotReplacedByAnother) {
  EXPECT_THAT(problem({.wanted = AuthorityChoice::kubelet}), HasSubstr("is not the identity of a kubelet"));
  EXPECT_THAT(problem({.wanted = AuthorityChoice::policies}), HasSubstr("policies: the credential cannot"));
  guards.impersonation = false;
  EXPECT_THAT(problem({.wanted = AuthorityChoice::impersonation}), HasSubstr("cannot impersonate resource"));
  EXPECT_THAT(problem({.wanted = AuthorityChoice::service_account}), HasSubstr("has too few rights"));
}

TEST_F(FindAuthorityTest, TheNodeMustBeTheOneOfTheCredential) {
  EXPECT_THAT(problem({.node_name = "n2"}), HasSubstr("bound to Node n1"));
  cluster.replace_node("n1");
  EXPECT_THAT(problem(), HasSubstr("earlier Node n1"));
  cluster.remove("nodes", "", "n1");
  EXPECT_THAT(problem(), HasSubstr("no Node n1"));
}

TEST_F(FindAuthorityTest, ANamespaceThatIsMissingTakesTheLeasesAway) {
  const auto found = find({.ns = "elsewhere"});
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->rights.leases);
  EXPECT_FALSE(may_use_slots(*found, SlotsChoice::lease));
}

// A server that has just started may answer 403 to requests that it permits later. So a 403 is not final at first.
TEST_F(FindAuthorityTest, OneRefusalProvesNothing) {
  cluster.server().intercept([this](const sim::Call& call, const sim::AuditEntry&) -> std::optional<http::Response> {
    if (elapsed() > 165ms || !call.info || call.info->resource != "nodes") return std::nullopt;
    return sim::forbidden_by_rbac("x", call.verb, *call.info, call.subresource, call.ns, call.name).response();
  });
  const auto found = find();
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->kind, AuthorityKind::impersonation);
}

TEST_F(FindAuthorityTest, AServerThatIsAwayIsAskedAgainLater) {
  cluster.refuse_connections(1h);
  const auto away = find();
  ASSERT_FALSE(away);
  EXPECT_TRUE(k8s::is_transient(away.error()));
}

TEST_F(FindAuthorityTest, ABusyServerDecidesNothing) {
  cluster.server().intercept([](const sim::Call& call, const sim::AuditEntry&) -> std::optional<http::Response> {
    if (!call.info || call.info->resource != "pods") return std::nullopt;
    return http::Response{503, {}, "upstream connect error"};
  });
  const auto busy = find();
  ASSERT_FALSE(busy);
  EXPECT_TRUE(k8s::is_transient(busy.error()));
}

TEST_F(FindAuthorityTest, ACredentialThatIsNotAcceptedIsFinal) {
  cluster.set_token("secret", std::nullopt);
  EXPECT_THAT(problem(), HasSubstr("the identity of this credential"));
}

// Each request alone would be answered before the deadline, but all requests together take longer. The search ends at
// the deadline with an error.
TEST_F(FindAuthorityTest, TheDeadlineIsThatOfTheWholeSearch) {
  struct Slow final : http::Transport {
    Slow(http::Transport& to, Clock& when) : next(to), time(when) {}
    Task<http::Response> round_trip(http::Request request, TimePoint deadline) override {
      const TimePoint answered = time.now() + 5s;
      co_await time.sleep_until(std::min(answered, deadline));
      if (answered >= deadline) co_return Error(Errc::timeout, "no answer before the deadline");
      co_return co_await next.round_trip(std::move(request), deadline);
    }
    Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override {
      return next.open(std::move(request), deadline);
    }
    http::Transport& next;
    Clock& time;
  } slow{as_agent, clock};
  const TimePoint began = clock.now();
  std::optional<Result<Authority>> found;
  run(with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
    group.spawn(cluster.run());
    found.emplace(co_await find_authority(slow, clock, {}, began + 12s));
  }));
  ASSERT_TRUE(found && !*found);
  EXPECT_EQ(found->error().code(), Errc::timeout);
  EXPECT_LE(clock.now(), began + 12s);
}

// P11: with the transport that an agent with impersonation uses, it can change its own node and the pods there, but not
// those of other nodes.
TEST_F(FindAuthorityTest, ImpersonationKeepsToTheOwnNode) {
  run(with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
    group.spawn(cluster.run());
    NodeTransport wire(as_agent, "n1");
    k8s::Client client(wire, clock);
    const TimePoint soon = clock.now() + 30s;
    const auto own = co_await client.patch_node("n1", R"({"spec":{"unschedulable":true}})", k8s::DryRun::none, soon);
    EXPECT_TRUE(own);
    const auto other = co_await client.patch_node("n2", R"({"spec":{"unschedulable":true}})", k8s::DryRun::none, soon);
    EXPECT_TRUE(!other && k8s::is_forbidden(other.error()));
    const auto foreign = co_await client.evict("haulout", "agent-n2", with_uid("agent-n2-uid"), soon);
    EXPECT_TRUE(!foreign && k8s::is_forbidden(foreign.error()));
    const auto mine = co_await client.evict("haulout", "agent-n1", with_uid("agent-n1-uid"), soon);
    EXPECT_TRUE(mine);
    const auto pods = co_await client.list_pods_on("n1", soon);
    EXPECT_TRUE(pods);
    const auto nodes = co_await client.list_nodes("", soon);
    EXPECT_TRUE(nodes && nodes->items.size() == 2);
    const auto leases =
        co_await client.list<k8s::Lease>({.label_selector = "", .limit = k8s::usual_page, .ns = "haulout"}, soon);
    EXPECT_TRUE(leases);
    const auto self = co_await client.review_self(soon);
    EXPECT_TRUE(self);
    k8s::WatchOptions own_pods;
    own_pods.resource_version = pods->meta.resource_version;
    own_pods.field_selector = "spec.nodeName=n1";
    auto stream = co_await wire.open(k8s::watch(k8s::Kind<k8s::Pod>::api, own_pods), soon);
    EXPECT_TRUE(stream && (*stream)->head().status == 200);
  }));
}

}  // namespace
}  // namespace haulout::agent
