// Tests how check_fit() reads the nodes and pods of a cluster: in pages, and without what it does not need.
#include <gmock/gmock.h>

#include "tests/placement/fit_fixture.hpp"
#include "tests/support/scripted_transport.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::placement {
namespace {

using haulout::testing::json_response;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using namespace std::chrono_literals;

class FitPagesTest : public haulout::testing::VirtualTimeTest {
 protected:
  void too_long() { transport.fail(Error(Errc::protocol, "the body is longer than 4194304 bytes")); }
  void page(const char* kind, std::vector<Json> items, const char* more = "") {
    const Json list = {{"kind", kind}, {"metadata", {{"resourceVersion", "7"}, {"continue", more}}}, {"items", items}};
    transport.answer(json_response(200, list.dump()));
  }
  std::string target(std::size_t i) { return transport.requests().at(i).request.target; }
  Result<std::vector<PodFit>> check(std::set<std::string> leaving) {
    return run(check_fit(client, {std::move(leaving), {"n1"}}, 500, start + 60s));
  }

  haulout::testing::ScriptedTransport transport{clock};
  k8s::Client client{transport, clock, {k8s::FieldValidation::strict, 500}};
};

// Pods of 10 kB are ordinary, and a page of 500 of them is longer than an answer may be.
TEST_F(FitPagesTest, PagesThatAreTooLongAreReadInParts) {
  page("NodeList", {node_json("n1"), node_json("n2")});
  too_long();
  page("PodList", {pod_json("a", "1")}, "t1");
  page("PodList", {pod_json("b", "1500m")});
  const auto fits = check({"a", "b"});
  ASSERT_TRUE(fits) << fits.error().message();
  EXPECT_THAT(*fits, SizeIs(2));
  EXPECT_THAT(target(1), AllOf(HasSubstr("/api/v1/pods?"), HasSubstr("status.phase"), HasSubstr("limit=500")));
  EXPECT_THAT(target(2), HasSubstr("limit=62"));
  EXPECT_THAT(target(3), AllOf(HasSubstr("limit=124"), HasSubstr("continue=t1")));
}

// What is not needed is dropped by its key. Labels may have the same keys.
TEST_F(FitPagesTest, LabelsNamedLikeWhatIsDroppedCount) {
  Json node = node_json("n2");
  node["metadata"]["labels"]["images"] = "large";
  node["status"]["images"] = {{{"names", {"a:1"}}}};
  Json pod = pod_json("a", "1", R"({"nodeSelector":{"images":"large"}})");
  pod["metadata"]["annotations"] = {{"env", "production"}};
  pod["metadata"]["managedFields"] = {
      {{"manager", "kubelet"}, {"fieldsV1", {{"f:spec", {{"f:nodeName", Json::object()}}}}}}};
  pod["spec"]["containers"][0]["env"] = {{{"name", "A"}, {"value", "b"}}};
  const auto keeper = [](const char* name, const char* label) {
    Json other = pod_json(name, "0", anti_affinity_to(label, "kubernetes.io/hostname").c_str());
    other["spec"]["nodeName"] = "n2";
    return other;
  };
  page("NodeList", {node_json("n1"), node, node_json("n3")});
  page("PodList", {pod, keeper("keeper", "nobody")});
  const auto fits = check({"a"});
  ASSERT_TRUE(fits) << fits.error().message();
  EXPECT_THAT(verdicts(*fits), ElementsAre("shop/a fits n2"));

  pod["metadata"]["labels"] = {{"env", "production"}};
  Json guard = keeper("guard", "");
  guard["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["labelSelector"]
       ["matchLabels"] = {{"env", "production"}};
  page("NodeList", {node_json("n1"), node});
  page("PodList", {pod, guard});
  const auto kept_apart = check({"a"});
  ASSERT_TRUE(kept_apart) << kept_apart.error().message();
  EXPECT_THAT(verdicts(*kept_apart), ElementsAre("shop/a does-not-fit"));
}

}  // namespace
}  // namespace haulout::placement
