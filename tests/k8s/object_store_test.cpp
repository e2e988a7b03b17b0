#include "k8s/object_store.hpp"

#include <gmock/gmock.h>

#include "k8s/objects.hpp"

namespace haulout::k8s {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

struct ObjectStoreTest : ::testing::Test {
  static Pod pod(const std::string& name, const std::string& uid, const std::string& version = "1") {
    Pod made;
    made.ns = "shop";
    made.name = name;
    made.uid = uid;
    made.resource_version = version;
    return made;
  }
  std::vector<std::string> take_told() { return std::exchange(told, {}); }

  std::vector<std::string> told;
  ObjectStore<Pod> store{[this](const std::string& uid, const Pod* object) {
    told.push_back(object ? "+" + uid + "@" + object->resource_version : "-" + uid);
  }};
};

TEST_F(ObjectStoreTest, TellsWhatChanges) {
  store.put(pod("a", "ua"));
  store.put(pod("a", "ua"));
  store.put(pod("a", "ua", "2"));
  store.erase("ua", "3");
  store.erase("ua", "3");
  EXPECT_THAT(told, ElementsAre("+ua@1", "+ua@2", "-ua"));
  EXPECT_TRUE(store.take_news());
  EXPECT_FALSE(store.take_news());
}

TEST_F(ObjectStoreTest, KnowsWhatItHolds) {
  EXPECT_EQ(store.memory(), 0u);
  store.put(pod("a", "ua"));
  const std::size_t one = store.memory();
  EXPECT_GE(one, sizeof(Pod));
  Pod labelled = pod("a", "ua", "2");
  labelled.labels["app"] = std::string(10'000, 'x');
  store.put(labelled);
  EXPECT_GT(store.memory(), one + 10'000);
  store.put(pod("a", "ub"));
  EXPECT_EQ(store.memory(), one);
  store.erase("ub", "3");
  EXPECT_EQ(store.memory(), 0u);
}

TEST_F(ObjectStoreTest, AListIsTheWholeTruth) {
  store.put(pod("a", "ua"));
  store.put(pod("b", "ub"));
  take_told();
  store.replace({pod("b", "ub"), pod("c", "uc")});
  EXPECT_THAT(told, ElementsAre("-ua", "+uc@1"));
}

TEST_F(ObjectStoreTest, OfOneNameThereIsOne) {
  store.put(pod("a", "old"));
  store.put(pod("a", "new"));
  EXPECT_THAT(take_told(), ElementsAre("+old@1", "-old", "+new@1"));
  store.replace({pod("a", "new"), pod("a", "newest")});
  EXPECT_THAT(told, ElementsAre("-new", "+newest@1"));
}

// The watch reports a version of the object that is older than its deletion. It is a repetition, or it comes from an
// etcd that was restored from a backup. In the second case only a list shows which objects exist.
TEST_F(ObjectStoreTest, WhatWasDeletedComesBackWithAListOrWhatIsNewer) {
  store.put(pod("a", "ua", "8"));
  store.erase("ua", "10");
  take_told();
  for (const char* version : {"8", "9", "10"}) store.put(pod("a", "ua", version));
  EXPECT_THAT(take_told(), IsEmpty());
  store.replace({pod("a", "ua", "3")});
  EXPECT_THAT(take_told(), ElementsAre("+ua@3"));
  store.put(pod("a", "ua", "4"));
  EXPECT_THAT(told, ElementsAre("+ua@4"));
}

// If an object no longer matches the label selector, the watch reports it as deleted. If it matches again, the watch
// reports it as added.
TEST_F(ObjectStoreTest, WhatIsSelectedAgainIsThereAgain) {
  store.put(pod("a", "ua", "8"));
  store.erase("ua", "9");
  store.put(pod("a", "ua", "10"));
  store.erase("ua", "11");
  EXPECT_THAT(take_told(), ElementsAre("+ua@8", "-ua", "+ua@10", "-ua"));
  store.erase("ua", "9");
  store.put(pod("a", "ua", "10"));
  EXPECT_THAT(take_told(), IsEmpty()) << "that is a repetition";
  store.put(pod("a", "ua", "12"));
  EXPECT_THAT(told, ElementsAre("+ua@12"));
}

TEST_F(ObjectStoreTest, EventsKnowMoreThanTheListThatWasMadeMeanwhile) {
  for (const char* name : {"kept", "missing", "changed", "deleted"}) store.put(pod(name, name));
  take_told();
  {
    const ObjectStore<Pod>::Listening listening(store);
    for (const char* uid : {"changed", "new"}) {
      store.heard_of(uid);
      store.put(pod(uid, uid, "9"));
    }
    store.heard_of("deleted");
    store.erase("deleted", "9");
    take_told();
    store.overlay({pod("kept", "kept"), pod("changed", "changed"), pod("deleted", "deleted")});
    EXPECT_THAT(take_told(), UnorderedElementsAre("-missing", "+kept@1"));
  }
  const ObjectStore<Pod>::Listening again(store);
  store.overlay({pod("deleted", "deleted")});
  EXPECT_THAT(told, UnorderedElementsAre("-kept", "-changed", "-new", "+deleted@1"));
}

TEST_F(ObjectStoreTest, AnOlderListDoesNotRestoreAnObjectWhoseNameIsUsedAgain) {
  store.put(pod("a", "old"));
  const ObjectStore<Pod>::Listening listening(store);
  store.heard_of("new");
  store.put(pod("a", "new", "9"));
  take_told();
  store.overlay({pod("a", "old")});
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(ObjectStoreTest, EachNameHasTheOneThatTookItLast) {
  constexpr int many = 500;
  for (int i = 0; i < many; ++i) store.put(pod(std::to_string(i), "old-" + std::to_string(i)));
  for (int i = 0; i < many; ++i) store.put(pod(std::to_string(i), "new-" + std::to_string(i), "2"));
  EXPECT_THAT(store.objects(), ::testing::SizeIs(many));
  for (const auto& [uid, object] : store.objects()) EXPECT_EQ(uid, "new-" + object.name);
}

TEST_F(ObjectStoreTest, AnObjectThatIsRenamedHasItsNewNameAlone) {
  store.put(pod("a", "ua"));
  store.put(pod("b", "ua", "2"));
  take_told();
  store.put(pod("a", "other"));
  EXPECT_THAT(take_told(), ElementsAre("+other@1"));
  store.put(pod("b", "ub"));
  EXPECT_THAT(told, ElementsAre("-ua", "+ub@1"));
}

TEST_F(ObjectStoreTest, WhatIsNotWantedIsNotThere) {
  store.keep_only([](const Pod& candidate) { return candidate.resource_version != "2"; });
  store.put(pod("a", "ua"));
  store.put(pod("a", "ua", "2"));
  store.put(pod("b", "ub", "2"));
  EXPECT_THAT(told, ElementsAre("+ua@1", "-ua"));
  EXPECT_THAT(store.objects(), IsEmpty());
}

}  // namespace
}  // namespace haulout::k8s
