// Reading the objects of a cluster from text. The items of a List are taken while the text is parsed.
#include "sim/loader.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "retry/rng.hpp"

namespace haulout::sim {
namespace {

using ::testing::HasSubstr;

constexpr const char* pod = R"({"kind":"Pod","metadata":{"name":"p"}})";
constexpr const char* node = R"({"kind":"Node","metadata":{"name":"n"}})";
constexpr const char* nameless = R"({"metadata":{"name":"x"}})";

std::string read(const std::string& text, const Reading& reading = {}) {
  const auto objects = read_objects(text, reading);
  if (!objects) return objects.error().message();
  std::string names;
  for (const Json& object : *objects) names += fmt::format("{}/{} ", placement::text(object, "/kind"), name_of(object));
  return names;
}

TEST(Loader, ReadsObjectsInTheOrderOfTheText) {
  struct Row {
    const char* what;
    std::string text;
    const char* expected;
  };
  const auto list = [](std::string before, std::string items, std::string after = "") {
    return "{" + before + "\"items\":[" + items + "]" + after + "}";
  };
  const std::string p = pod, n = node, x = nameless;
  const Row table[] = {
      {"a List", list(R"("kind":"List",)", p + "," + n), "Pod/p Node/n "},
      {"the kind after the items", list("", p + "," + n, R"(,"kind":"List")"), "Pod/p Node/n "},
      {"items without kind", list(R"("kind":"PodList",)", x + "," + x), "Pod/x Pod/x "},
      {"items without kind, the kind after them", list("", x + "," + n + "," + x, R"(,"kind":"PodList")"),
       "Pod/x Node/n Pod/x "},
      {"items without kind in a List", list(R"("kind":"List",)", p + "," + x), "document 1: an object without kind"},
      {"nothing", list(R"("kind":"List",)", ""), ""},
      {"null items", list(R"("kind":"List",)", "null," + p), "Pod/p "},
      {"an item that is no object", list(R"("kind":"List",)", p + ",5"), "document 1: not a Kubernetes object"},
      {"an item that is a list of JSON", list(R"("kind":"List",)", "[]," + p), "document 1: not a Kubernetes object"},
      {"a List in a List", list(R"("kind":"List",)", list(R"("kind":"List",)", p) + "," + n), "Pod/p Node/n "},
      {"the first error counts", list(R"("kind":"List",)", R"({"kind":"Pod"},5)"),
       "document 1: a Pod without metadata.name"},
      {"items twice", R"({"items":[5],"kind":"List","items":[)" + n + "]}", "Node/n "},
      {"items twice, the second of another type", R"({"items":[5],"kind":"List","items":7})", ""},
      {"a single object", p, "Pod/p "},
      {"an object with items of its own", R"({"kind":"Pod","metadata":{"name":"p"},"spec":{"items":[{"a":1}]}})",
       "Pod/p "},
      {"unknown kinds", list(R"("kind":"List",)", R"({"kind":"Secret","metadata":{"name":"s"}},)" + p), "Pod/p "},
      {"YAML", "kind: Pod\nmetadata:\n  name: p\n---\nkind: Node\nmetadata:\n  name: n1\n", "Pod/p Node/n1 "},
      {"the error of the second document", "kind: Pod\nmetadata:\n  name: p\n---\nkind: Pod\n",
       "document 2: a Pod without metadata.name"},
  };
  for (const Row& row : table) EXPECT_EQ(read(row.text), row.expected) << row.what;
}

TEST(Loader, AnErrorOfTheTextComesBeforeThoseOfItsItems) {
  EXPECT_THAT(read(R"({"kind":"List","items":[5,{"kind":"Pod"})"), HasSubstr("JSON that ends in the middle"));
}

TEST(Loader, EveryObjectIsPrepared) {
  std::string seen;
  const auto objects = read_objects(
      fmt::format(R"({{"kind":"List","items":[{},{{"kind":"Secret","metadata":{{"name":"s"}}}},{}]}})", pod, node),
      {.prepare = [&seen](Json& object) {
        seen += name_of(object);
        object["metadata"]["name"] = "prepared";
      }});
  ASSERT_TRUE(objects);
  EXPECT_EQ(seen, "pn");
  for (const Json& object : *objects) EXPECT_EQ(name_of(object), "prepared");
}

// Other groups have kinds of the same names. Earlier versions of a group, and earlier groups, are read.
TEST(Loader, AKindIsKnownInItsGroup) {
  const auto object = [](const char* version, const char* kind) {
    return fmt::format(R"({{"apiVersion":"{}","kind":"{}","metadata":{{"name":"x"}}}})", version, kind);
  };
  const struct {
    const char *version, *kind;
    bool known;
  } rows[] = {
      {"v1", "Node", true},
      {"longhorn.io/v1beta2", "Node", false},
      {"projectcalico.org/v3", "Node", false},
      {"batch/v1", "Job", true},
      {"batch.volcano.sh/v1alpha1", "Job", false},
      {"apps.kruise.io/v1beta1", "StatefulSet", false},
      {"apps/v1beta1", "StatefulSet", true},
      {"apps/v1beta2", "Deployment", true},
      {"extensions/v1beta1", "Deployment", true},
      {"extensions/v1beta1", "StatefulSet", false},
      {"v1", "Deployment", false},
      {"policy/v1beta1", "PodDisruptionBudget", true},
      {"autoscaling/v1", "HorizontalPodAutoscaler", true},
      {"v1", "Event", true},
  };
  for (const auto& row : rows) {
    std::string unknown;
    const Reading reading{.on_unknown = [&](const Json& other) { unknown += text(other, "/kind"); }};
    const std::string json = object(row.version, row.kind);
    EXPECT_EQ(read(json, reading), row.known ? fmt::format("{}/x ", row.kind) : "") << json;
    EXPECT_EQ(unknown, row.known ? "" : row.kind) << json;
    EXPECT_EQ(read(fmt::format(R"({{"kind":"List","apiVersion":"v1","items":[{}]}})", json)),
              row.known ? fmt::format("{}/x ", row.kind) : "");
  }
  EXPECT_EQ(read(R"({"kind":"NodeList","apiVersion":"longhorn.io/v1beta2","items":[{"metadata":{"name":"x"}}]})"), "");
  EXPECT_EQ(read(R"({"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"x"}}]})"), "Node/x ");
}

TEST(Loader, AGeneratedNameIsEnoughIfThatIsAllowed) {
  const char* generated = R"({"kind":"Job","metadata":{"generateName":"up-"}})";
  EXPECT_EQ(read(generated), "document 1: a Job without metadata.name");
  EXPECT_EQ(read(generated, {.may_be_nameless = true}), "Job/ ");
  EXPECT_EQ(read(R"({"kind":"Job","metadata":{}})", {.may_be_nameless = true}),
            "document 1: a Job without metadata.name");
}

TEST(Loader, ObjectsOfSomeKindsMayBeBroken) {
  const char* broken =
      "kind: ConfigMap\nmetadata: {name: c, labels: {dashboard: 1}}\n---\nkind: Pod\nmetadata: {name: p}\n";
  EXPECT_EQ(read(broken), "document 1: ConfigMap c: metadata.labels.* has to be a string");
  EXPECT_EQ(read(broken, {.may_be_broken = [](std::string_view kind) { return kind == "ConfigMap"; }}), "Pod/p ");
  EXPECT_EQ(read(broken, {.may_be_broken = [](std::string_view kind) { return kind == "Pod"; }}),
            "document 1: ConfigMap c: metadata.labels.* has to be a string");
}

TEST(Loader, WhatIsNoObjectMayBePassedOver) {
  const std::string p = pod;
  const struct {
    std::string text;
    std::string read, passed_over;
  } rows[] = {
      {"replicas: 3\n---\n" + p, "Pod/p ", "no object "},
      {"- op: replace\n", "", "no object "},
      {R"({"name":"web"})", "", "no object "},
      {"items: [a, b]\n", "", "no object "},
      {R"({"items":["a"]})", "", "no object no object "},
      {R"({"items":[{"name":"a"}]})", "", "no object "},
      {R"({"items":[)" + p + "]}", "Pod/p ", ""},
      {"items: [" + p + "]\n", "Pod/p ", ""},
      {"kind: Deployment\nreplicas: 3\n", "", "no object "},
      {"kind: Deployment\nmetadata: {name: web}\nspec: {replicas: '{{ n }}'}\n", "", "template "},
      {"kind: Deployment\nmetadata: {name: web}\nspec: {replicas: many}\n",
       "document 1: Deployment web: spec.replicas has to be an integer", ""},
      {"kind: Pod\napiVersion: v1\n", "document 1: a Pod without metadata.name", ""},
  };
  for (const auto& row : rows) {
    std::string passed_over;
    const auto note = [&](Foreign why) { passed_over += why == Foreign::is_template ? "template " : "no object "; };
    EXPECT_EQ(read(row.text, {.on_foreign = note}), row.read) << row.text;
    EXPECT_EQ(passed_over, row.passed_over) << row.text;
  }
}

}  // namespace
}  // namespace haulout::sim
