#include "cli/terminal/live_view.hpp"

#include "base/text.hpp"
#include "retry/task_group.hpp"
#include "tests/cli/drain/samples.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::cli {
namespace {

using namespace std::chrono_literals;
using drain::EventType;
using drain::PodOutcome;
using samples::event;
using samples::pod;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr drain::Progress half{12, 6, 1, 2, 3};

LiveState sample_state() {
  LiveState state;
  state.apply(event(EventType::planned, 0, nullptr, nullptr, "", half));
  const auto db = pod("db-1", PodOutcome::terminating);
  const auto web = pod("web-0", PodOutcome::waiting, "BlockedByBudget", "PodDisruptionBudget shop/web allows none");
  const auto api = pod("api-7d9", PodOutcome::waiting, "BlockedByBudget", "");
  state.apply(event(EventType::evicted, 2, &db, nullptr, "", half));
  state.apply(event(EventType::parked, 20, &web, nullptr, "", half));
  state.apply(event(EventType::parked, 10, &api, nullptr, "", half));
  return state;
}

TEST(LiveViewTest, ShowsProgressAndWhatHoldsItUp) {
  EXPECT_THAT(render({sample_state()}, {80, 24, false, false}, samples::at(72)),
              ElementsAre("node/n1  [##########-----------]  6/12 deleted, 1 terminating, 2 waiting  1m12s",
                          "  waiting     shop/api-7d9  1m02s  BlockedByBudget",
                          "  waiting     shop/web-0      52s  PodDisruptionBudget shop/web allows none",
                          "  terminating shop/db-1     1m10s"));
}

TEST(LiveViewTest, FitsEverySize) {
  LiveState state = sample_state();
  const drain::Diagnosis zero{"BudgetNeverAllows", "PodDisruptionBudget shop/web", std::string(200, 'x'),
                              samples::at(0)};
  state.apply(event(EventType::diagnosis_raised, 21, nullptr, &zero, "", half));
  state.apply(event(EventType::disconnected, 22, nullptr, nullptr, std::string(200, 'y'), half));
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "备";
  const auto denied = pod("denied", PodOutcome::waiting, "AdmissionDenied", wide);
  state.apply(event(EventType::parked, 20, &denied, nullptr, "", half));
  for (int i = 0; i < 30; ++i) {
    const auto extra = pod("extra-" + std::to_string(i), PodOutcome::terminating);
    state.apply(event(EventType::evicted, i, &extra, nullptr, "", half));
  }
  for (const bool utf8 : {false, true})
    for (std::size_t width = 0; width <= 200; ++width)
      for (const std::size_t height : {0u, 1u, 2u, 3u, 5u, 24u, 60u}) {
        const auto lines = render({state}, {width, height, utf8, false}, samples::at(100));
        ASSERT_LE(lines.size() + 1, std::max<std::size_t>(height, 1)) << width << "x" << height;
        for (const std::string& line : lines)
          ASSERT_LT(columns(line), std::max<std::size_t>(width, 1)) << width << "x" << height << ": " << line;
      }
}

TEST(LiveViewTest, SaysHowManyPodsDoNotFit) {
  const auto lines = render({sample_state()}, {80, 4, true, false}, samples::at(72));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[1], HasSubstr("api-7d9"));
  EXPECT_EQ(lines[2], "  and 2 more");
}

TEST(LiveViewTest, ProblemsStandBelowAndGoWhenTheyHeal) {
  LiveState state = sample_state();
  const drain::Diagnosis zero{"BudgetNeverAllows", "PodDisruptionBudget shop/web", "it never allows one",
                              samples::at(0)};
  state.apply(event(EventType::diagnosis_raised, 21, nullptr, &zero));
  state.apply(event(EventType::disconnected, 22, nullptr, nullptr, "reset"));
  const auto with = render({state}, {80, 24, true, false}, samples::at(72));
  EXPECT_THAT(with, Contains("  BudgetNeverAllows PodDisruptionBudget shop/web: it never allows one"));
  EXPECT_THAT(with, Contains("  waiting for the API server: reset"));
  state.apply(event(EventType::diagnosis_withdrawn, 23, nullptr, &zero));
  state.apply(event(EventType::reconnected, 24));
  EXPECT_EQ(render({state}, {80, 24, true, false}, samples::at(72)).size(), 4u);
}

TEST(LiveViewTest, AReasonThatDoesNotFitTakesALineOfItsOwn) {
  LiveState state;
  const auto web = pod("web-0", PodOutcome::waiting, "BlockedByBudget",
                       "pod shop/web-0 is blocked by PodDisruptionBudget shop/checkout: needs 2 healthy, has 2");
  state.apply(event(EventType::parked, 0, &web, nullptr, "", half));
  const auto wide = render({state}, {80, 24, true, false}, samples::at(9));
  ASSERT_EQ(wide.size(), 2u);
  EXPECT_THAT(wide[1], HasSubstr("9s  blocked by PodDisruptionBudget shop/checkout"));
  EXPECT_THAT(render({state}, {60, 24, true, false}, samples::at(9)),
              ElementsAre(::testing::_, "  waiting     shop/web-0     9s",
                          "      blocked by PodDisruptionBudget shop/checkout: needs \u2026"));
}

TEST(LiveViewTest, AProblemOfAPodIsToldOnceAndInFull) {
  LiveState state;
  const auto web = pod("web-0", PodOutcome::waiting, "OverlappingBudgets", "pod shop/web-0 is selected by several");
  state.apply(event(EventType::parked, 0, &web, nullptr, "", half));
  const drain::Diagnosis overlap{
      "OverlappingBudgets", "pod shop/web-0",
      "pod shop/web-0 is selected by several PodDisruptionBudgets; narrow the selector of all but one", samples::at(0)};
  state.apply(event(EventType::diagnosis_raised, 1, nullptr, &overlap, "", half));
  EXPECT_THAT(render({state}, {80, 24, true, false}, samples::at(9)),
              ElementsAre(::testing::_, "  waiting     shop/web-0     9s  OverlappingBudgets",
                          "  OverlappingBudgets pod shop/web-0: selected by several",
                          "      PodDisruptionBudgets; narrow the selector of all but one"));
  EXPECT_THAT(render({state}, {80, 5, true, false}, samples::at(9)).back(), ::testing::EndsWith("\u2026"))
      << "on a small screen it leaves room to the pods";
}

TEST(LiveViewTest, CountsWhatItLists) {
  LiveState state;
  const auto web = pod("web-0", PodOutcome::terminating);
  state.apply(event(EventType::evicted, 0, &web, nullptr, "", {12, 6, 0, 0, 0}));
  EXPECT_THAT(render({state}, {80, 24, true, false}, samples::at(0)).front(), HasSubstr("1 terminating"));
}

TEST(LiveViewTest, VolumesAreListedUntilTheyAreDetached) {
  LiveState state;
  auto volume = samples::volume("pv-1", drain::VolumeOutcome::detaching);
  volume.unused_at = samples::at(10);
  auto waiting = event(EventType::volume_waiting, 10);
  waiting.volume = &volume;
  state.apply(waiting);
  const auto lines = render({state}, {80, 24, true, false}, samples::at(52));
  EXPECT_THAT(lines,
              ElementsAre(HasSubstr("1 detaching"), "  detaching   shop/data    42s  csi.example.com is detaching it"));
  EXPECT_EQ(render({state}, {80, 2, true, false}, samples::at(52)).size(), 1u);
  auto detached = event(EventType::volume_detached, 60);
  detached.volume = &volume;
  state.apply(detached);
  EXPECT_EQ(render({state}, {80, 24, true, false}, samples::at(60)).size(), 1u);
}

TEST(LiveViewTest, VolumesAreListedWhileTheyAreWaitedForElsewhere) {
  LiveState state;
  auto volume =
      samples::detached_volume("pv-1", drain::Reattach::waiting, "csi.example.com is attaching it to node n2");
  auto told = event(EventType::volume_reattach, 10);
  told.volume = &volume;
  state.apply(told);
  EXPECT_THAT(render({state}, {90, 24, true, false}, samples::at(52)),
              ElementsAre(::testing::AllOf(HasSubstr("1 reattaching"), ::testing::Not(HasSubstr("detaching,"))),
                          "  reattaching shop/data    42s  csi.example.com is attaching it to node n2"));
  volume.reattach = drain::Reattach::attached;
  state.apply(told);
  EXPECT_EQ(render({state}, {90, 24, true, false}, samples::at(60)).size(), 1u);
}

TEST(LiveViewTest, ManyVolumesLeaveRoom) {
  LiveState state;
  for (const char* name : {"a", "b", "c", "d"}) {
    const auto volume = samples::volume(name, drain::VolumeOutcome::detaching);
    auto waiting = event(EventType::volume_waiting, 0);
    waiting.volume = &volume;
    state.apply(waiting);
  }
  const auto lines = render({state}, {80, 4, true, false}, samples::at(1));
  EXPECT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines.back(), "  and 3 more volumes");
}

TEST(LiveViewTest, AWaitLastsThroughRetriesAndEndsWithThePod) {
  LiveState state = sample_state();
  const auto web = pod("web-0", PodOutcome::waiting, "BlockedByBudget", "still none");
  state.apply(event(EventType::resumed, 30, &web));
  state.apply(event(EventType::parked, 31, &web));
  EXPECT_EQ(state.held.at("uid-web-0").since, samples::at(20)) << "trying again is still waiting";
  state.apply(event(EventType::evicted, 40, &web));
  EXPECT_EQ(state.held.at("uid-web-0").since, samples::at(40));
  EXPECT_EQ(state.held.at("uid-web-0").outcome, PodOutcome::terminating);
  state.apply(event(EventType::vanished, 41, &web));
  EXPECT_EQ(state.held.count("uid-web-0"), 0u);
}

std::vector<LiveState> three_nodes() {
  std::vector<LiveState> nodes(3, sample_state());
  nodes[1].node = "n2";
  nodes[1].held.clear();
  nodes[2].node = "n3";
  return nodes;
}

TEST(LiveViewTest, SeveralNodesShareTheLines) {
  // Of seven lines three are head lines. The first node may have one of the other four, the second needs none of its
  // two, so the third has three.
  EXPECT_THAT(render(three_nodes(), {80, 8, false, false}, samples::at(72)),
              ElementsAre(HasSubstr("node/n1"), "  and 3 more", HasSubstr("node/n2"), HasSubstr("node/n3"),
                          HasSubstr("shop/api-7d9"), HasSubstr("shop/web-0"), HasSubstr("shop/db-1")));
}

TEST(LiveViewTest, MoreNodesThanLines) {
  EXPECT_THAT(render(three_nodes(), {80, 3, false, false}, samples::at(72)),
              ElementsAre(HasSubstr("node/n1"), "and 2 more nodes"));
  for (const std::size_t height : {0u, 1u, 2u, 3u, 4u, 5u, 9u})
    EXPECT_LE(render(three_nodes(), {80, height, false, false}, samples::at(72)).size(),
              height - std::min(1ul, height));
}

TEST(LiveViewTest, WhatLeavesOrStaysWithoutUsWaitsNoMore) {
  LiveState state = sample_state();
  const auto web = pod("web-0", PodOutcome::terminating);
  const auto api = pod("api-7d9", PodOutcome::skipped, "Finished", "has succeeded, so it does not run any more");
  state.apply(event(EventType::terminating, 30, &web));
  state.apply(event(EventType::left, 31, &api));
  EXPECT_THAT(
      render({state}, {80, 24, false, false}, samples::at(72)),
      ElementsAre(HasSubstr("2 terminating"), "  terminating shop/db-1   1m10s", "  terminating shop/web-0    42s"));
}

TEST(LiveViewTest, AThrottleIsOverWithTheNextEviction) {
  LiveState state = sample_state();
  const auto web = pod("web-0", PodOutcome::planned);
  state.apply(event(EventType::disconnected, 22, nullptr, nullptr, "reset"));
  state.apply(event(EventType::throttled, 22, nullptr, nullptr, "429 Too Many Requests"));
  const Terminal terminal{80, 24, true, false};
  EXPECT_THAT(render({state}, terminal, samples::at(72)), Contains("  evictions wait: 429 Too Many Requests"));
  state.apply(event(EventType::eviction_sent, 23, &web));
  EXPECT_THAT(render({state}, terminal, samples::at(72)), Not(Contains(HasSubstr("429"))));
  EXPECT_THAT(render({state}, terminal, samples::at(72)), Contains("  waiting for the API server: reset"));
}

TEST(LiveViewTest, ColoursOnlyWhereAllowed) {
  LiveState state = sample_state();
  state.apply(event(EventType::disconnected, 22, nullptr, nullptr, "reset"));
  const auto has_escape = [](const std::vector<std::string>& lines) {
    return std::any_of(lines.begin(), lines.end(), [](const auto& line) { return line.find('\x1b') != line.npos; });
  };
  EXPECT_TRUE(has_escape(render({state}, {80, 24, true, true}, samples::at(72))));
  EXPECT_FALSE(has_escape(render({state}, {80, 24, true, false}, samples::at(72))));
}

struct CountingSink final : agent::Sink {
  std::size_t writes = 0;
  std::string last;
  void write(std::string_view text) override {
    ++writes;
    last = text;
  }
};

using LiveViewTimeTest = haulout::testing::VirtualTimeTest;

boost::asio::awaitable<void> feed(LiveView& view, Clock& clock, int events, Duration gap) {
  for (int i = 0; i < events; ++i) {
    view.on_event(event(EventType::planned, 0, nullptr, nullptr, "", {12, static_cast<std::size_t>(i), 0, 0, 0}));
    co_await clock.sleep_until(clock.now() + gap);
  }
}

TEST_F(LiveViewTimeTest, DrawsAtMostTenTimesASecond) {
  CountingSink sink;
  Console console(sink, sink);
  LiveView view(context.get_executor(), clock, console, [] { return Terminal{}; });
  const auto body = [&](TaskGroup& group) -> boost::asio::awaitable<void> {
    group.spawn(view.run());
    co_await feed(view, clock, 2000, 1ms);
  };
  run(with_task_group(body));
  EXPECT_GE(sink.writes, 18u);
  EXPECT_LE(sink.writes, 21u);
}

TEST_F(LiveViewTimeTest, DrawsOnceASecondWhenNothingHappens) {
  CountingSink sink;
  Console console(sink, sink);
  LiveView view(context.get_executor(), clock, console, [] { return Terminal{}; });
  const auto body = [&](TaskGroup& group) -> boost::asio::awaitable<void> {
    group.spawn(view.run());
    co_await feed(view, clock, 1, 10s);
  };
  run(with_task_group(body));
  EXPECT_GE(sink.writes, 9u);
  EXPECT_LE(sink.writes, 11u);
  view.clear("n1");
  EXPECT_EQ(sink.last, "\r\x1b[1A\x1b[J") << "the block is taken away";
}

TEST_F(LiveViewTimeTest, ANewNodeTakesThePlaceOfTheOneThatHasReportedNothingForLongest) {
  CountingSink sink;
  Console console(sink, sink);
  LiveView view(context.get_executor(), clock, console, [] { return Terminal{80, 24, false, false}; }, 2);
  const std::vector<std::string> names = {"n1", "n2", "n1", "n3"};
  const auto body = [&](TaskGroup& group) -> boost::asio::awaitable<void> {
    group.spawn(view.run());
    for (const std::string& node : names)
      view.on_event({EventType::planned, samples::at(0), node, nullptr, nullptr, "", {12, 1, 0, 0, 0}});
    co_await clock.sleep_until(clock.now() + 1s);
  };
  run(with_task_group(body));
  EXPECT_THAT(sink.last, AllOf(HasSubstr("node/n1"), HasSubstr("node/n3"), Not(HasSubstr("node/n2"))));
  view.on_event({EventType::finished, samples::at(0), names[0], nullptr, nullptr, "", {}});
  EXPECT_THAT(sink.last, AllOf(HasSubstr("node/n3"), Not(HasSubstr("node/n1"))));
}

}  // namespace
}  // namespace haulout::cli
