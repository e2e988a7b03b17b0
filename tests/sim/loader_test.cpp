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

std::string read(const std::string& text) {
  const auto objects = read_objects(text);
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
      [&seen](Json& object) {
        seen += name_of(object);
        object["metadata"]["name"] = "prepared";
      });
  ASSERT_TRUE(objects);
  EXPECT_EQ(seen, "pn");
  for (const Json& object : *objects) EXPECT_EQ(name_of(object), "prepared");
}

}  // namespace
}  // namespace haulout::sim
