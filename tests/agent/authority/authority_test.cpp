// Tests the rules of authority.hpp.
#include "agent/authority/authority.hpp"

#include <gmock/gmock.h>

#include "k8s/requests.hpp"

namespace haulout::agent {
namespace {
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

k8s::Self bound() {
  return {"system:serviceaccount:haulout:agent", {}, "n1", "u1", "agent-x", "p1"};
}
k8s::Self kubelet() {
  return {"system:node:n1", {"system:nodes"}, "", "", "", ""};
}
k8s::Self admin() {
  return {"kubernetes-admin", {}, "", "", "", ""};
}

TEST(ResolveNode, TheCredentialKnows) {
  EXPECT_EQ(*resolve_node("", bound()), (OwnNode{"n1", "u1"}));
  EXPECT_EQ(*resolve_node("n1", bound()), (OwnNode{"n1", "u1"}));
  EXPECT_EQ(*resolve_node("", kubelet()), (OwnNode{"n1", ""}));
  EXPECT_EQ(*resolve_node("n1", kubelet()), (OwnNode{"n1", ""}));
  EXPECT_EQ(*resolve_node("n7", admin()), (OwnNode{"n7", ""}));
}

TEST(ResolveNode, AContradictionIsAnError) {
  for (const auto& self : {bound(), kubelet()}) {
    const auto node = resolve_node("n2", self);
    ASSERT_FALSE(node);
    EXPECT_EQ(node.error().code(), Errc::invalid);
    EXPECT_THAT(node.error().message(), AllOf(HasSubstr("n2"), HasSubstr("n1"), HasSubstr("remove node-name")));
  }
}

TEST(ResolveNode, NobodyKnowingIsAnErrorThatSaysWhatToDo) {
  const auto node = resolve_node("", admin());
  ASSERT_FALSE(node);
  EXPECT_THAT(node.error().message(), AllOf(HasSubstr("kubernetes-admin"), HasSubstr("HAULOUT_NODE_NAME")));
}

TEST(Candidates, FitTheCredential) {
  using K = AuthorityKind;
  EXPECT_THAT(candidates(AuthorityChoice::automatic, bound()), ElementsAre(K::impersonation, K::policies));
  EXPECT_THAT(candidates(AuthorityChoice::automatic, admin()), ElementsAre(K::impersonation, K::policies));
  EXPECT_THAT(candidates(AuthorityChoice::automatic, kubelet()), ElementsAre(K::kubelet));
  EXPECT_THAT(candidates(AuthorityChoice::service_account, bound()), ElementsAre(K::service_account));
  EXPECT_THAT(candidates(AuthorityChoice::policies, kubelet()), ElementsAre(K::policies));
}

TEST(Turns, NeedLeasesAndTheOtherNodes) {
  Authority authority{.kind = AuthorityKind::kubelet, .user = "system:node:n1"};
  const auto allowed = may_use_slots(authority, SlotsChoice::lease);
  ASSERT_FALSE(allowed);
  EXPECT_THAT(allowed.error().message(), AllOf(HasSubstr("kubelet"), HasSubstr("fleetlock"), HasSubstr("none")));
  EXPECT_TRUE(may_use_slots(authority, SlotsChoice::fleetlock));
  EXPECT_TRUE(may_use_slots(authority, SlotsChoice::none));
  authority.rights.leases = true;
  EXPECT_FALSE(may_use_slots(authority, SlotsChoice::lease));
  authority.rights.other_nodes = true;
  EXPECT_TRUE(may_use_slots(authority, SlotsChoice::lease));
}

TEST(Users, AreTakenApart) {
  EXPECT_EQ(service_account_namespace("system:serviceaccount:haulout:agent"), "haulout");
  EXPECT_EQ(service_account_namespace("system:serviceaccount:haulout"), "");
  EXPECT_EQ(service_account_namespace("system:node:n1"), "");
  EXPECT_EQ(node_of_user("system:node:n1.example"), "n1.example");
  EXPECT_EQ(node_of_user("system:nodes:n1"), "");
}

TEST(AsTheNode, RequestsAboutTheNodeAndItsPodsAreImpersonated) {
  const auto list = [](const k8s::Api& api, std::string selector, std::string ns = {}) {
    k8s::ListOptions options;
    options.field_selector = std::move(selector);
    options.ns = std::move(ns);
    options.limit = 5;
    return k8s::list(api, options);
  };
  k8s::WatchOptions watch_pods;
  watch_pods.resource_version = "7";
  watch_pods.field_selector = "spec.nodeName=n1";
  k8s::WatchOptions watch_node;
  watch_node.resource_version = "7";
  watch_node.field_selector = "metadata.name=n1";
  k8s::WatchOptions watch_leases;
  watch_leases.resource_version = "7";
  watch_leases.ns = "haulout";
  k8s::DeleteOptions with_uid;
  with_uid.uid = "u";
  for (const auto& request :
       {k8s::get<k8s::Node>("n1"), k8s::patch<k8s::Node>({}, "n1", "{}", {}), k8s::patch_node_status("n1", "{}", {}),
        list(k8s::Kind<k8s::Node>::api, "metadata.name=n1"), k8s::watch(k8s::Kind<k8s::Node>::api, watch_node),
        list(k8s::Kind<k8s::Pod>::api, "spec.nodeName=n1"),
        list(k8s::Kind<k8s::Pod>::api, "status.phase=Running,spec.nodeName=n1"),
        list(k8s::Kind<k8s::Pod>::api, "spec.nodeName=n1", "shop"), k8s::watch(k8s::Kind<k8s::Pod>::api, watch_pods),
        k8s::evict("shop", "web-0", with_uid)})
    EXPECT_TRUE(goes_as_node(request, "n1")) << request.method << " " << request.target;
  for (const auto& request :
       {k8s::get<k8s::Node>("n2"), k8s::get<k8s::Node>("n11"), k8s::patch<k8s::Node>({}, "n2", "{}", {}),
        list(k8s::Kind<k8s::Node>::api, ""), list(k8s::Kind<k8s::Node>::api, "metadata.name=n11"),
        list(k8s::Kind<k8s::Pod>::api, ""), list(k8s::Kind<k8s::Pod>::api, "spec.nodeName=n11"),
        list(k8s::Kind<k8s::Pod>::api, "spec.nodeName!=n1"), k8s::remove<k8s::Pod>("shop", "web-0", with_uid),
        list(k8s::Kind<k8s::PodDisruptionBudget>::api, ""), list(k8s::Kind<k8s::VolumeAttachment>::api, ""),
        k8s::get<k8s::PersistentVolume>("pv-1").value(), list(k8s::Kind<k8s::Lease>::api, "", "haulout"),
        k8s::watch(k8s::Kind<k8s::Lease>::api, watch_leases), k8s::get<k8s::ConfigMap>("haulout", "haulout"),
        k8s::get<k8s::DaemonSet>("shop", "logs").value(), k8s::create_self_review(),
        k8s::create_access_review({"patch", "", "nodes", "", "", "n1"})})
    EXPECT_FALSE(goes_as_node(request, "n1")) << request.method << " " << request.target;
  EXPECT_FALSE(goes_as_node(k8s::get<k8s::Node>("n1"), ""));
}

TEST(ObjectsInCollection, AreThoseOfThePageAndThoseAfterIt) {
  EXPECT_EQ(objects_in_collection(R"({"metadata":{"continue":"x","remainingItemCount":1999},"items":[{}]})"), 2000u);
  EXPECT_EQ(objects_in_collection(R"({"metadata":{"resourceVersion":"7"},"items":[{},{}]})"), 2u);
  EXPECT_EQ(objects_in_collection(R"({"metadata":{},"items":[]})"), 0u);
}

TEST(ObjectsInCollection, AreNotKnownFromAnyOtherAnswer) {
  for (const char* page :
       {"", "[]", "{}", R"({"items":{}})", R"({"items":[{}]})", R"({"metadata":[],"items":[{}]})",
        R"({"metadata":{"continue":"x"},"items":[{}]})", R"({"metadata":{"remainingItemCount":"many"},"items":[{}]})",
        R"({"metadata":{"remainingItemCount":-1},"items":[{}]})"})
    EXPECT_EQ(objects_in_collection(page), 0u) << page;
}

}  // namespace
}  // namespace haulout::agent
