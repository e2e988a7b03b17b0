#include "sim/store.hpp"

#include <gmock/gmock.h>

#include "sim/budgets.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> names(const std::vector<Object>& objects) {
  std::vector<std::string> result;
  result.reserve(objects.size());
  for (const Object& object : objects) result.push_back(ns_of(*object) + "/" + name_of(*object));
  return result;
}

Json owned_by(const std::string& uid) {
  return Json::array({{{"kind", "ReplicaSet"}, {"name", "web"}, {"uid", uid}, {"controller", true}}});
}

class StoreTest : public haulout::testing::VirtualTimeTest {
 protected:
  Json pod(const std::string& name, const std::string& ns = "shop") {
    return {{"metadata", {{"name", name}, {"namespace", ns}, {"labels", {{"app", "web"}}}}}, {"spec", Json::object()}};
  }
  void add(const std::string& name, const std::string& controller, const std::string& ns = "shop") {
    Json made = pod(name, ns);
    made["metadata"]["ownerReferences"] = owned_by(controller);
    store.create("pods", std::move(made));
  }
  std::vector<std::string> controlled_by(const std::string& uid, std::string_view ns = "shop") const {
    return names(store.list("pods", ns, By::controller, uid));
  }
  void patch(const std::string& name, const Json& patch) {
    store.modify({"pods", "shop", name}, [&](Json& next) { next.merge_patch(patch); });
  }

  SeededRng rng{1};
  Store store{clock, rng};
};

TEST(Objects, MembersMakeTheSameObjectAsBraces) {
  EXPECT_EQ(object_of({{"b", 1}, {"a", object_of({{"c", Json::array()}})}}),
            (Json{{"a", {{"c", Json::array()}}}, {"b", 1}}));
  EXPECT_EQ(object_of({}), Json::object());
}

TEST(Objects, AnObjectStaysAsItIsUntilItsEnd) {
  const Object object = object_from(Json::parse(R"({"a":[1,{"b":[]},"text"],"c":{}})"));
  const Object other = object;
  EXPECT_EQ(other->dump(), R"({"a":[1,{"b":[]},"text"],"c":{}})");
}

TEST_F(StoreTest, WhatAControllerHasIsFoundInOrderAndInItsNamespace) {
  for (const char* name : {"c", "a", "b"}) add(name, "u1");
  add("d", "u2");
  add("a", "u1", "other");
  EXPECT_THAT(controlled_by("u1"), ElementsAre("shop/a", "shop/b", "shop/c"));
  EXPECT_THAT(controlled_by("u1", ""), ElementsAre("other/a", "shop/a", "shop/b", "shop/c"));
  EXPECT_THAT(controlled_by("u3"), IsEmpty());
  EXPECT_THAT(store.list("replicasets", "shop", By::controller, "u1"), IsEmpty());
}

TEST_F(StoreTest, APodFollowsItsOwnerAndAnOrphanHasNone) {
  add("a", "u1");
  patch("a", {{"metadata", {{"ownerReferences", owned_by("u2")}}}});
  EXPECT_THAT(controlled_by("u1"), IsEmpty());
  EXPECT_THAT(controlled_by("u2"), ElementsAre("shop/a"));
  patch("a", {{"metadata", {{"ownerReferences", nullptr}}}});
  EXPECT_THAT(controlled_by("u2"), IsEmpty());
  EXPECT_THAT(controlled_by(""), ElementsAre("shop/a"));
}

TEST_F(StoreTest, ANamesakeIsNotThePodThatHasGone) {
  add("a", "u1");
  store.remove({"pods", "shop", "a"});
  EXPECT_THAT(controlled_by("u1"), IsEmpty());
  add("a", "u2");
  EXPECT_THAT(controlled_by("u1"), IsEmpty());
  EXPECT_THAT(controlled_by("u2"), ElementsAre("shop/a"));
}

TEST_F(StoreTest, WhatIsFoundIsTheNewestState) {
  add("a", "u1");
  patch("a", {{"status", {{"phase", "Running"}}}});
  const auto found = store.list("pods", "shop", By::controller, "u1");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front(), store.get({"pods", "shop", "a"}));
}

TEST_F(StoreTest, OneThatWasRestoredIsFoundAsItWas) {
  add("a", "u1");
  const auto then = store.revision();
  patch("a", {{"spec", {{"nodeName", "n1"}}}});
  store.remove({"pods", "shop", "a"});
  add("b", "u1");
  store.restore(then);
  EXPECT_THAT(controlled_by("u1"), ElementsAre("shop/a"));
  EXPECT_THAT(names(store.list("pods", {}, By::node, "")), ElementsAre("shop/a"));
  EXPECT_THAT(store.list("pods", {}, By::node, "n1"), IsEmpty());
}

TEST_F(StoreTest, ALimitedHistoryKeepsWhatIsYoungAndAFewOfTheOthers) {
  store.limit_history(2, std::chrono::minutes(3));
  for (const char* name : {"a", "b", "c"}) add(name, "u1");
  EXPECT_EQ(store.history().size(), 3u) << "they are young";
  run(clock.sleep_until(clock.now() + std::chrono::minutes(4)));
  const std::uint64_t before = store.revision();
  add("d", "u1");
  EXPECT_EQ(store.history().size(), 2u);
  EXPECT_EQ(store.history_start(), before - 1) << "a watch that has seen less must list again";
}

TEST_F(StoreTest, VolumesAreFoundByClaimAndAttachments) {
  Json made = pod("a");
  made["spec"]["volumes"] = Json::array({{{"name", "v"}, {"persistentVolumeClaim", {{"claimName", "data"}}}},
                                         {{"name", "scratch"}, {"ephemeral", Json::object()}}});
  store.create("pods", std::move(made));
  store.create("persistentvolumes",
               {{"metadata", {{"name", "pv"}}}, {"spec", {{"claimRef", {{"namespace", "shop"}, {"name", "data"}}}}}});
  store.create("volumeattachments",
               {{"metadata", {{"name", "va"}}}, {"spec", {{"source", {{"persistentVolumeName", "pv"}}}}}});
  EXPECT_THAT(names(store.list("pods", "shop", By::claim, "data")), ElementsAre("shop/a"));
  EXPECT_THAT(names(store.list("pods", "shop", By::claim, "a-scratch")), ElementsAre("shop/a"));
  EXPECT_THAT(names(store.list("persistentvolumes", {}, By::claim_ref, "shop/data")), ElementsAre("/pv"));
  EXPECT_THAT(names(store.list("volumeattachments", {}, By::volume, "pv")), ElementsAre("/va"));
}

TEST_F(StoreTest, ABudgetFindsItsPodsAndAPodItsBudgets) {
  const auto budget = [&](const char* name, const char* selector) {
    return store.create("poddisruptionbudgets", {{"metadata", {{"name", name}, {"namespace", "shop"}}},
                                                 {"spec", {{"selector", Json::parse(selector)}}}});
  };
  const Object web = budget("web", R"({"matchLabels":{"app":"web"}})");
  const Object both = budget("both", R"({"matchLabels":{"app":"web","tier":"front"}})");
  const Object any = budget("any", "{}");
  const Object listed =
      budget("listed", R"({"matchExpressions":[{"key":"app","operator":"In","values":["db","web"]}]})");
  const Object none = budget("none", "null");
  add("b", "u1");
  add("a", "u1");
  add("a", "u1", "other");
  patch("a", {{"metadata", {{"labels", {{"tier", "front"}}}}}});
  const Json a = *store.get({"pods", "shop", "a"}), b = *store.get({"pods", "shop", "b"});
  EXPECT_THAT(names(pods_of_budget(store, *web)), ElementsAre("shop/a", "shop/b"));
  EXPECT_THAT(names(pods_of_budget(store, *both)), ElementsAre("shop/a"));
  EXPECT_THAT(names(pods_of_budget(store, *any)), ElementsAre("shop/a", "shop/b"));
  EXPECT_THAT(names(pods_of_budget(store, *listed)), ElementsAre("shop/a", "shop/b"));
  EXPECT_THAT(pods_of_budget(store, *none), IsEmpty());
  EXPECT_THAT(names(budgets_of_pod(store, a)), ElementsAre("shop/any", "shop/both", "shop/listed", "shop/web"));
  EXPECT_THAT(names(budgets_of_pod(store, b)), ElementsAre("shop/any", "shop/listed", "shop/web"));
  store.modify({"poddisruptionbudgets", "shop", "web"},
               [](Json& next) { next["spec"]["selector"]["matchLabels"]["app"] = "db"; });
  EXPECT_THAT(names(budgets_of_pod(store, b)), ElementsAre("shop/any", "shop/listed"));
}

// Compares each query to the index with a full scan of the store.
TEST_F(StoreTest, TheIndexSaysWhatLookingThroughAllSays) {
  const ResourceInfo& pods = *find_resource("pods");
  const auto pick = [&](const char* of) { return std::string(of) + std::to_string(rng.between(0, 3)); };
  std::uint64_t old = store.revision();
  for (int step = 0; step < 200; ++step) {
    const Key key{"pods", pick("ns"), pick("p")};
    const auto what = rng.between(0, 9);
    if (what == 0) store.remove(key);
    if (what == 1) {
      store.restore(old);
      old = store.revision();
    }
    if (what == 2) old = store.revision();
    Json made = pod(key.name, key.ns);
    made["metadata"]["labels"] = {{"app", pick("a")}, {"tier", pick("t")}};
    made["metadata"]["ownerReferences"] = owned_by(pick("u"));
    if (rng.between(0, 1) == 1) made["spec"]["nodeName"] = pick("n");
    if (what > 2 && !store.create("pods", made)) store.modify(key, [&](Json& next) { next.merge_patch(made); });

    if (step % 4 != 0) continue;
    for (const std::string ns : {"", "ns1"})
      for (const std::string fields :
           {"", "metadata.name=p1", "spec.nodeName=n1", "spec.nodeName=", "spec.nodeName!=n1"})
        for (const std::string labels : {"", "app=a1", "app=a1,tier=t2", "app in (a1,a2)", "app!=a1"}) {
          std::string problem;
          const Selection selection{"pods", ns, *Selector::from_text(labels),
                                    *FieldSelector::parse(fields, pods, &problem), true};
          std::vector<Object> all = store.list("pods");
          std::erase_if(all, [&](const Object& object) { return !selection.matches(*object); });
          ASSERT_EQ(store.select(selection), all) << "step " << step << " " << ns << " " << fields << " " << labels;
        }
    std::vector<Object> controlled = store.list("pods", "ns1");
    std::erase_if(controlled, [&](const Object& object) { return text(controller_of(*object), "/uid") != "u1"; });
    ASSERT_EQ(store.list("pods", "ns1", By::controller, "u1"), controlled) << "step " << step;
  }
}

}  // namespace
}  // namespace haulout::sim
