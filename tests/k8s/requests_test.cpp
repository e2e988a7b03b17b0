#include "k8s/requests.hpp"

#include <gtest/gtest.h>

namespace haulout::k8s {
namespace {

TEST(Requests, Reads) {
  EXPECT_EQ(get<Node>("n 1/é").target, "/api/v1/nodes/n%201%2F%C3%A9");
  EXPECT_EQ(get<Node>("n1").method, "GET");
  EXPECT_TRUE(get<Node>("n1").repeatable);
  EXPECT_EQ(get<Node>("n1").headers.find("Accept"), "application/json");
  EXPECT_EQ(get<DaemonSet>("kube-system", "proxy").value().target,
            "/apis/apps/v1/namespaces/kube-system/daemonsets/proxy");
  EXPECT_EQ(get<Service>("hooks", "guard").value().target, "/api/v1/namespaces/hooks/services/guard");
}

TEST(Requests, Lists) {
  EXPECT_EQ(list(Kind<Pod>::api, {}).target, "/api/v1/pods");
  EXPECT_EQ(list(Kind<Pod>::api, {"spec.nodeName=n1", "", 500, ""}).target,
            "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=500");
  EXPECT_EQ(list(Kind<Node>::api, {"", "a in (b,c)", 2, "to/k=="}).target,
            "/api/v1/nodes?labelSelector=a%20in%20%28b%2Cc%29&limit=2&continue=to%2Fk%3D%3D");
  EXPECT_EQ(list(Kind<PodDisruptionBudget>::api, {}).target, "/apis/policy/v1/poddisruptionbudgets");
}

// P12: the server returns an object in which the name of another object is missing or invalid. Then no request for that
// other object is made: the result is an error, not the end of the program or a request to another path.
TEST(Requests, WhatAServerDoesNotNameIsNotAskedFor) {
  const Result<http::Request> none[] = {get<PersistentVolume>(""),
                                        get<PersistentVolumeClaim>("", "data"),
                                        get<PersistentVolumeClaim>("shop", ""),
                                        get<Namespace>(".."),
                                        get<Service>("", "guard"),
                                        get<Service>("hooks", "."),
                                        get<DaemonSet>("shop", ""),
                                        get_workload("deployments", "", "web"),
                                        get_workload("deployments", "shop", ""),
                                        get_scale("", "a", "shop", "w"),
                                        get_scale("apps/", "a", "shop", "w"),
                                        get_scale("apps/v1", "", "shop", "w"),
                                        get_scale("v1", "a", "", "w"),
                                        get_scale("v1", "a", "shop", ""),
                                        discover("")};
  for (const auto& request : none) {
    ASSERT_FALSE(request);
    EXPECT_EQ(request.error().code(), Errc::decode);
  }
  EXPECT_EQ(get_workload("deployments", "shop", "..").error().message(),
            "an object of the cluster refers to the workload '..', which is not a valid name "
            "(/apis/apps/v1/namespaces/shop/deployments/…); correct the reference in that object");
}

TEST(Requests, Watches) {
  const auto request = watch(Kind<Pod>::api, {"spec.nodeName=n1", "42", std::chrono::seconds(250)});
  EXPECT_EQ(request.target,
            "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn1&resourceVersion=42&allowWatchBookmarks=true"
            "&timeoutSeconds=250");
  EXPECT_TRUE(request.repeatable);
}

TEST(Requests, AnEvictionNamesItsInstance) {
  const auto request = evict("shop", "web-0", {"u1", std::nullopt, {}});
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/api/v1/namespaces/shop/pods/web-0/eviction");
  EXPECT_EQ(request.headers.find("Content-Type"), "application/json");
  EXPECT_TRUE(request.repeatable);
  EXPECT_EQ(request.body,
            R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"web-0","namespace":"shop"},)"
            R"("deleteOptions":{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u1"}}})");
}

// Names come from a server. Whatever they contain, they must not change the structure of the JSON.
TEST(Requests, NamesOfAnEvictionAreEscaped) {
  const auto request = evict("s\\", "a\"\n\xff", {"u\t", std::nullopt, {}});
  EXPECT_EQ(request.body,
            R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"a\"\n)"
            "\xef\xbf\xbd"
            R"(","namespace":"s\\"},)"
            R"("deleteOptions":{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u\t"}}})");
}

TEST(Requests, GraceDryRunAndStrictOnlyWhenAsked) {
  const auto request = evict("shop", "web-0", {"u1", 0, {DryRun::server, FieldValidation::strict}});
  EXPECT_EQ(request.target, "/api/v1/namespaces/shop/pods/web-0/eviction?dryRun=All&fieldValidation=Strict");
  EXPECT_NE(request.body.find(R"("gracePeriodSeconds":0,)"), std::string::npos);
  EXPECT_EQ(request.body.find("dryRun"), std::string::npos);
}

TEST(Requests, ADeletionNamesItsInstance) {
  const auto request = remove<Pod>("shop", "web-0", {"u1", 5, {DryRun::server, FieldValidation::strict}});
  EXPECT_EQ(request.method, "DELETE");
  EXPECT_EQ(request.target, "/api/v1/namespaces/shop/pods/web-0");
  EXPECT_EQ(request.body, R"({"apiVersion":"v1","kind":"DeleteOptions","dryRun":["All"],)"
                          R"("gracePeriodSeconds":5,"preconditions":{"uid":"u1"}})");
  EXPECT_TRUE(request.repeatable);
}

TEST(Requests, PatchesAreNotRepeatedBlindly) {
  const auto request = patch<Node>({}, "n1", R"({"spec":{}})", {DryRun::none, FieldValidation::warn});
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.target, "/api/v1/nodes/n1?fieldManager=haulout");
  EXPECT_EQ(request.headers.find("Content-Type"), "application/merge-patch+json");
  EXPECT_EQ(request.body, R"({"spec":{}})");
  EXPECT_FALSE(request.repeatable);
  EXPECT_EQ(patch<Node>({}, "n1", "{}", {DryRun::server, FieldValidation::strict}).target,
            "/api/v1/nodes/n1?fieldManager=haulout&dryRun=All&fieldValidation=Strict");
}

TEST(Requests, AccessReview) {
  const auto request = create_access_review({"create", "", "pods", "eviction", "shop", ""});
  EXPECT_EQ(request.target, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
  EXPECT_EQ(request.body,
            R"({"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":)"
            R"({"verb":"create","resource":"pods","subresource":"eviction","namespace":"shop"}}})");
}

TEST(Requests, HostileNamesStayNames) {
  const auto request = evict("a/../b?x=#", "p", {"u\"1", std::nullopt, {}});
  EXPECT_EQ(request.target, "/api/v1/namespaces/a%2F..%2Fb%3Fx%3D%23/pods/p/eviction");
  EXPECT_NE(request.body.find(R"("uid":"u\"1")"), std::string::npos);
  EXPECT_FALSE(evict("\xff", "p", {"u", std::nullopt, {}}).body.empty());
}

TEST(RequestsDeathTest, WithoutANameNothingIsSent) {
  EXPECT_DEATH(get<Node>(""), "Node name");
  EXPECT_DEATH(evict("", "p", {"u", std::nullopt, {}}), "namespace");
  EXPECT_DEATH(evict("s", "", {"u", std::nullopt, {}}), "Pod name");
  EXPECT_DEATH(evict("s", "p", {}), "UID");
  EXPECT_DEATH(remove<Pod>("s", "p", {}), "UID");
  EXPECT_DEATH(list(Kind<Pod>::api, {"spec.nodeName=", "", 0, ""}), "selector");
  EXPECT_DEATH(watch(Kind<Pod>::api, {"spec.nodeName=", "1", std::chrono::seconds(1)}), "selector");
  EXPECT_DEATH(watch(Kind<Pod>::api, {"spec.nodeName=n1", "", std::chrono::seconds(1)}), "resourceVersion");
}

}  // namespace
}  // namespace haulout::k8s
