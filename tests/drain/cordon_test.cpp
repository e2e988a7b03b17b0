#include "drain/cordon.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace haulout::drain {
namespace {
using namespace std::chrono_literals;

constexpr WallTime noon{std::chrono::hours(12)};
const CordonMark mark{"run-1", "ann@desk", noon};

k8s::Node a_node(bool unschedulable, std::optional<WallTime> tainted, std::optional<CordonMark> marked) {
  k8s::Node node;
  node.name = "n1";
  node.uid = "node-uid";
  node.resource_version = "7";
  node.unschedulable = unschedulable;
  if (tainted) node.taints.push_back({std::string(unschedulable_taint), "NoSchedule", *tainted});
  if (marked) node.annotations[std::string(cordon_annotation)] = encode_mark(*marked);
  return node;
}

TEST(P5_OwnMarksOnly, WhoseCordonItIs) {
  const struct {
    const char* what;
    k8s::Node node;
    CordonOwner owner;
  } rows[] = {
      {"schedulable", a_node(false, {}, {}), CordonOwner::nobody},
      {"schedulable with a stale mark", a_node(false, {}, mark), CordonOwner::nobody},
      {"cordoned by a human", a_node(true, noon, {}), CordonOwner::other},
      {"ours", a_node(true, noon + 11ms, mark), CordonOwner::haulout},
      {"ours, the server's clock a little behind", a_node(true, noon - 9s, mark), CordonOwner::haulout},
      {"ours, taint not there yet", a_node(true, {}, mark), CordonOwner::haulout},
      {"uncordoned by kubectl and cordoned again by a human", a_node(true, noon + 11s, mark), CordonOwner::other},
      {"mark from the future", a_node(true, noon - 11s, mark), CordonOwner::other},
  };
  for (const auto& row : rows) EXPECT_EQ(cordon_owner(row.node), row.owner) << row.what;
}

// The server's managedFields record who set the field until it is cleared. So they are right even if a clock is wrong
// or the taint was added late.
TEST(P5_OwnMarksOnly, WhoseCordonTheServerSaysItIs) {
  const struct {
    const char* what;
    k8s::Node node;
    const char* manager;
    CordonOwner owner;
  } rows[] = {
      {"ours, the taint came late", a_node(true, noon + 15s, mark), "haulout", CordonOwner::haulout},
      {"ours, a clock is wrong", a_node(true, noon - 1h, mark), "haulout", CordonOwner::haulout},
      {"ours, taint not there yet", a_node(true, {}, mark), "haulout", CordonOwner::haulout},
      {"our mark has gone", a_node(true, noon, {}), "haulout", CordonOwner::other},
      {"a human's over our stale mark, soon after", a_node(true, noon + 5s, mark), "kubectl", CordonOwner::other},
      {"a human's, taint not there yet", a_node(true, {}, mark), "kubectl", CordonOwner::other},
      {"a human's, the taint still that of ours", a_node(true, noon, mark), "kubectl", CordonOwner::other},
      {"schedulable", a_node(false, {}, mark), "", CordonOwner::nobody},
  };
  for (auto row : rows) {
    row.node.unschedulable_manager = row.manager;
    EXPECT_EQ(cordon_owner(row.node), row.owner) << row.what;
  }
}

TEST(Cordon, AMarkThatLacksItsRunOrHasANumberThereIsAMarkAllTheSame) {
  for (const char* text : {R"({"at":"1970-01-01T12:00:00Z"})", R"({"at":"1970-01-01T12:00:00Z","run":7,"by":null})"}) {
    auto node = a_node(true, noon, {});
    node.annotations[std::string(cordon_annotation)] = text;
    const auto found = mark_of(node);
    ASSERT_TRUE(found) << text;
    EXPECT_EQ(found->run + found->by, "") << text;
    EXPECT_EQ(found->at, noon) << text;
  }
}

TEST(Cordon, ThatTheNodeTookPodsBetweenTwoCordons) {
  auto cordoned = [](const char* manager, std::optional<CordonMark> carries, std::optional<WallTime> tainted = noon) {
    auto node = a_node(true, tainted, std::move(carries));
    node.unschedulable_manager = manager;
    return node;
  };
  const CordonMark next{"another-run", mark.by, mark.at};
  const CordonMark later{mark.run, mark.by, mark.at + 1min};
  const auto ours = cordoned("haulout", mark);
  const auto theirs = cordoned("kubectl", {});
  const struct {
    const char* what;
    k8s::Node before, after;
    bool another;
  } rows[] = {
      {"nothing has happened", ours, ours, false},
      {"somebody has taken our mark away", ours, cordoned("haulout", {}), false},
      {"somebody has taken our taint away, and it is back", ours, cordoned("haulout", mark, noon + 1min), false},
      {"a person has cordoned over our mark", ours, cordoned("kubectl", mark), true},
      {"so has another run", ours, cordoned("haulout", next), true},
      {"so have we", ours, cordoned("haulout", later), true},
      {"a person's is the same", theirs, theirs, false},
      {"somebody else owns the field as well", theirs, cordoned("argocd", {}), false},
      {"a person's is a later one", theirs, cordoned("kubectl", {}, noon + 1min), true},
      {"a person's is so new that nothing tells when it was", theirs, cordoned("kubectl", {}, std::nullopt), true},
      {"the first has its taint now", cordoned("kubectl", {}, std::nullopt), theirs, false},
      {"after a person's came ours", theirs, cordoned("haulout", mark), true},
      {"the server has forgotten whose it is", ours, cordoned("", mark), false},
      {"the server did not know whose it was", cordoned("", mark), ours, false},
      {"nor does it, and it is a later one", cordoned("", mark), cordoned("", mark, noon + 1min), true},
      {"it is the first", a_node(false, {}, {}), ours, false},
      {"it is gone", ours, a_node(false, {}, mark), false},
  };
  for (const auto& row : rows) EXPECT_EQ(is_another_cordon(row.before, row.after), row.another) << row.what;
}

TEST(P5_OwnMarksOnly, AnUnreadableMarkIsNotOurs) {
  auto node = a_node(true, noon, {});
  for (const char* text : {"", "{}", "[]", "not json", R"({"at":5})", R"({"at":"yesterday"})"}) {
    node.annotations[std::string(cordon_annotation)] = text;
    EXPECT_EQ(cordon_owner(node), CordonOwner::other) << text;
  }
}

TEST(Cordon, FieldAndMarkChangeInOneGuardedPatch) {
  const auto patch = nlohmann::json::parse(*cordon_patch(a_node(false, {}, {}), mark));
  EXPECT_EQ(patch["metadata"]["resourceVersion"], "7");
  EXPECT_EQ(patch["spec"]["unschedulable"], true);
  EXPECT_EQ(patch["metadata"]["annotations"][std::string(cordon_annotation)], encode_mark(mark));
  EXPECT_FALSE(cordon_patch(a_node(true, noon, {}), mark)) << "a human's cordon is left alone";
}

TEST(Cordon, TheMarkSurvivesTheRoundTrip) {
  const auto read = mark_of(a_node(true, noon, mark));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->run, mark.run);
  EXPECT_EQ(read->by, mark.by);
  EXPECT_EQ(read->at, mark.at);
}

TEST(Cordon, UncordonTakesBackOnlyItsOwnUnlessToldOtherwise) {
  const struct {
    const char* what;
    k8s::Node node;
    bool foreign_too, patches, clears_field, clears_mark;
  } rows[] = {
      {"nothing to do", a_node(false, {}, {}), false, false, false, false},
      {"ours", a_node(true, noon, mark), false, true, true, true},
      {"a human's", a_node(true, noon, {}), false, false, false, false},
      {"a human's, by command", a_node(true, noon, {}), true, true, true, false},
      {"a human's over our stale mark", a_node(true, noon + 1h, mark), false, true, false, true},
      {"a human's over our stale mark, by command", a_node(true, noon + 1h, mark), true, true, true, true},
      {"stale mark alone", a_node(false, {}, mark), false, true, false, true},
  };
  for (const auto& row : rows) {
    const auto patch = uncordon_patch(row.node, row.foreign_too);
    ASSERT_EQ(patch.has_value(), row.patches) << row.what;
    if (!patch) continue;
    const auto json = nlohmann::json::parse(*patch);
    EXPECT_EQ(json["metadata"]["resourceVersion"], "7") << row.what;
    EXPECT_EQ(json.contains("spec"), row.clears_field) << row.what;
    EXPECT_EQ(json["metadata"].contains("annotations"), row.clears_mark) << row.what;
  }
}

}  // namespace
}  // namespace haulout::drain
