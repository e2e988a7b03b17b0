#include "drain/reattach.hpp"

#include <gmock/gmock.h>

#include "drain/volumes.hpp"
#include "tests/drain/builders.hpp"

namespace haulout::drain {
namespace {

using namespace std::chrono_literals;
using Elsewhere = ReattachFacts::Elsewhere;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr TimePoint start{1h};
constexpr WallTime wall{1h};

ReattachFacts facts(Duration later, Elsewhere elsewhere) {
  return {.comes_back = true, .elsewhere = elsewhere, .now = start + later, .detached_at = start, .limit = 90s};
}

struct Row {
  std::string what;
  Reattach before;
  ReattachFacts facts;
  Reattach after;
};

TEST(DecideReattach, Table) {
  const auto with = [](ReattachFacts facts, auto change) {
    change(facts);
    return facts;
  };
  const auto here = [](ReattachFacts& f) { f.used_here = true; };
  const auto nobody = [](ReattachFacts& f) { f.comes_back = false; };
  const auto off = [](ReattachFacts& f) { f.limit = 0s; };
  const auto short_of_time = [](ReattachFacts& f) { f.until = start + 10s; };
  using enum Elsewhere;
  const Row rows[] = {
      {"off", Reattach::waiting, with(facts(0s, nowhere), off), Reattach::none},
      {"not looked at", Reattach::none, facts(0s, attached), Reattach::none},
      {"nothing brings its pod back", Reattach::waiting, with(facts(0s, nowhere), nobody), Reattach::none},
      {"but it is there", Reattach::waiting, with(facts(0s, attached), nobody), Reattach::attached},
      {"just detached", Reattach::waiting, facts(0s, nowhere), Reattach::waiting},
      {"before the hold", Reattach::waiting, facts(claim_hold - 1ms, nowhere), Reattach::waiting},
      {"nobody asks for it", Reattach::waiting, facts(claim_hold, nowhere), Reattach::unclaimed},
      {"somebody does", Reattach::waiting, facts(claim_hold, attaching), Reattach::waiting},
      {"before the limit", Reattach::waiting, facts(90s - 1ms, attaching), Reattach::waiting},
      {"at the limit", Reattach::waiting, facts(90s, attaching), Reattach::late},
      {"another node has it", Reattach::waiting, facts(1s, attached), Reattach::attached},
      {"it has it at the limit", Reattach::waiting, facts(90s, attached), Reattach::attached},
      {"used here again", Reattach::waiting, with(facts(1s, attaching), here), Reattach::unclaimed},
      {"shared, and used here, too", Reattach::waiting, with(facts(1s, attached), here), Reattach::attached},
      {"before the end of the drain", Reattach::waiting, with(facts(9s, attaching), short_of_time), Reattach::waiting},
      {"at the end of the drain", Reattach::waiting, with(facts(10s, attaching), short_of_time), Reattach::late},
      {"late stays late", Reattach::late, with(facts(91s, attaching), here), Reattach::late},
      {"late, and there after all", Reattach::late, facts(10min, attached), Reattach::attached},
      {"unclaimed is not claimed again", Reattach::unclaimed, facts(40s, attaching), Reattach::unclaimed},
      {"unclaimed, and there after all", Reattach::unclaimed, facts(50s, attached), Reattach::attached},
      {"attached stays so", Reattach::attached, facts(60s, nowhere), Reattach::attached},
  };
  for (const Row& row : rows) EXPECT_EQ(decide_reattach(row.before, row.facts), row.after) << row.what;
}

TEST(DecideReattach, WakesWhenItCanChange) {
  EXPECT_EQ(reattach_wake(Reattach::waiting, facts(0s, Elsewhere::nowhere)), start + claim_hold);
  EXPECT_EQ(reattach_wake(Reattach::waiting, facts(claim_hold, Elsewhere::attaching)), start + 90s);
  ReattachFacts soon = facts(0s, Elsewhere::nowhere);
  soon.limit = 10s;
  EXPECT_EQ(reattach_wake(Reattach::waiting, soon), start + 10s);
  soon.until = start + 5s;
  EXPECT_EQ(reattach_wake(Reattach::waiting, soon), start + 5s);
  EXPECT_EQ(reattach_wake(Reattach::late, soon), TimePoint::max());
}

class ReattachBookTest : public ::testing::Test {
 protected:
  k8s::VolumeAttachment attachment(const std::string& node, bool attached) {
    k8s::VolumeAttachment result;
    result.name = "csi-" + node;
    result.uid = result.name + "-uid";
    result.node_name = node;
    result.attacher = "csi.example.com";
    result.persistent_volume = "pv-data";
    result.attached = attached;
    return result;
  }
  void see(const k8s::VolumeAttachment& seen) { book.attachment_changed(seen.uid, &seen, now, wall); }
  void gone(const std::string& node) { book.attachment_changed("csi-" + node + "-uid", nullptr, now, wall); }
  void look(Duration later) {
    now = start + later;
    book.look(use, now, wall);
  }
  void detach_here() {
    see(attachment("n1", true));
    book.resolved("pv-data", "shop/data");
    look(0s);
    gone("n1");
    look(0s);
  }
  const VolumeReport report() {
    const auto reports = book.reports();
    EXPECT_EQ(reports.size(), 1u);
    return reports.empty() ? VolumeReport{} : reports.front();
  }
  bool waits() const {
    bool any = false;
    book.detached().each_waited_for([&](const VolumeReport&) { any = true; });
    return any;
  }

  TimePoint now = start;
  ClaimUse use{.left = {"shop/data"}, .coming_back = {"shop/data"}};
  std::vector<std::string> told;
  VolumeBook book{"n1", 2min,
                  [this](EventType type, const VolumeReport& volume) {
                    if (type == EventType::volume_reattach) told.emplace_back(to_string(volume.reattach));
                  },
                  90s};
};

TEST_F(ReattachBookTest, UntilAnotherNodeHasIt) {
  detach_here();
  EXPECT_TRUE(waits());
  EXPECT_TRUE(book.all_detached()) << "here";
  EXPECT_EQ(book.next_wake(now), start + claim_hold);
  see(attachment("n2", false));
  look(1s);
  EXPECT_TRUE(waits());
  EXPECT_THAT(report().message, HasSubstr("csi.example.com is attaching it to node n2"));
  see(attachment("n2", true));
  look(2s);
  EXPECT_FALSE(waits());
  EXPECT_EQ(report().attached_to, "n2");
  EXPECT_THAT(told, ElementsAre("waiting", "waiting", "attached"));
  gone("n2");
  look(3s);
  EXPECT_FALSE(waits());
}

TEST_F(ReattachBookTest, TheWarningSaysWhatIsInTheWayAndWhatToDo) {
  detach_here();
  auto failing = attachment("n2", false);
  failing.attach_error = "too many disks";
  see(failing);
  look(90s);
  EXPECT_EQ(report().reattach, Reattach::late);
  EXPECT_THAT(report().message,
              ::testing::AllOf(HasSubstr("90 s"), HasSubstr("cannot attach it to node n2: too many disks"),
                               HasSubstr("claim shop/data"), HasSubstr("--reattach-limit")));
  look(91s);
  EXPECT_THAT(told, ElementsAre("waiting", "late")) << "once";
}

TEST_F(ReattachBookTest, WhatIsBeingDetachedElsewhereIsNoClaim) {
  detach_here();
  auto leaving = attachment("n2", true);
  leaving.deletion_timestamp = wall;
  see(leaving);
  look(1s);
  EXPECT_TRUE(waits());
}

TEST_F(ReattachBookTest, ASharedVolumeIsThereAlready) {
  see(attachment("n3", true));
  detach_here();
  EXPECT_EQ(report().reattach, Reattach::attached);
  EXPECT_THAT(told, ElementsAre("attached"));
}

TEST_F(ReattachBookTest, WhatNothingBringsBackIsNotWaitedForAndNotTold) {
  use.coming_back.clear();
  detach_here();
  EXPECT_FALSE(waits());
  EXPECT_EQ(report().reattach, Reattach::none);
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(ReattachBookTest, WhoseClaimIsNotKnownIsNotWaitedFor) {
  see(attachment("n1", true));
  look(0s);
  gone("n1");
  look(0s);
  EXPECT_FALSE(waits());
}

TEST_F(ReattachBookTest, NotBeyondTheTimeOfTheDrain) {
  book.detached().end_waits_at(start + 20s);
  detach_here();
  EXPECT_EQ(book.next_wake(now), start + 20s);
  look(20s);
  EXPECT_EQ(report().reattach, Reattach::late);
  EXPECT_THAT(report().message, HasSubstr("raise --timeout (agent: --drain-deadline) if"));
}

TEST(ClaimUseTest, WhatComesBack) {
  std::map<std::string, TrackedPod> pods;
  const auto add = [&](const std::string& name, PodState state) -> TrackedPod& {
    TrackedPod& tracked = pods[name];
    tracked.pod = testing::owned_by(testing::a_pod(name), "apps/v1", "StatefulSet", "db", "sts-uid");
    tracked.pod.claims = {name};
    tracked.state = state;
    return tracked;
  };
  add("vanished", PodState::vanished);
  add("leaves", PodState::terminating);
  add("stays", PodState::left);
  add("stopped", PodState::terminating).pod.phase = k8s::PodPhase::failed;
  add("unmanaged", PodState::vanished).pod.controller.reset();
  add("finished", PodState::vanished).had_finished = true;
  add("ephemeral", PodState::vanished).pod.own_claims = {"ephemeral"};
  EXPECT_THAT(claim_use(pods).coming_back, ElementsAre("shop/leaves", "shop/stopped", "shop/vanished"));
}

}  // namespace
}  // namespace haulout::drain
