#include "drain/eviction_pacing.hpp"

#include "tests/drain/pipeline_fixture.hpp"

namespace haulout::drain {
namespace {
using namespace std::chrono_literals;
using testing::a_pod;
using ::testing::Contains;
using testing::PipelineTest;
using testing::status_error;

class RequestWindowTest : public ::testing::Test {
 protected:
  TimePoint now{1h};
  RequestWindow window{10};
  int next = 0;

  std::size_t send_all(const std::string& ns = "shop") {
    std::size_t sent = 0;
    window.look(now);
    while (window.takes(ns)) window.sent(std::to_string(next++), ns, now), ++sent;
    return sent;
  }
};

TEST_F(RequestWindowTest, EachThatIsSlowLetsOneMoreGo) {
  EXPECT_EQ(send_all(), 10u);
  now += 999ms;
  EXPECT_EQ(send_all(), 0u);
  EXPECT_EQ(window.next(), now + 1ms);
  now += 1ms;
  EXPECT_EQ(send_all(), 10u);
  for (int i = 0; i < 20; ++i) now += 1s, send_all();
  EXPECT_EQ(window.out(), RequestWindow::most);
  EXPECT_EQ(window.next(), TimePoint::max());
}

TEST_F(RequestWindowTest, NotWhileSlowAnswersAreBad) {
  send_all();
  now += 1s;
  send_all();
  for (int i = 0; i < 10; ++i) window.answered(std::to_string(i), false);
  EXPECT_TRUE(window.full());
  now += 5s;
  EXPECT_EQ(send_all(), 0u);
  for (int i = 10; i < 20; ++i) window.answered(std::to_string(i), true);
  EXPECT_EQ(send_all(), 10u);
  now += 1s;
  EXPECT_EQ(send_all(), 10u) << "slow, but good";
}

TEST_F(RequestWindowTest, ShrinksWhenAnswersAreQuickAgain) {
  send_all();
  now += 1s;
  EXPECT_EQ(send_all(), 10u);
  for (int i = 0; i < 20; ++i) window.answered(std::to_string(i), true);
  EXPECT_EQ(send_all(), 10u);
}

TEST_F(RequestWindowTest, P9_TheFirstOfANamespaceGoesBeyondIt) {
  send_all("slow");
  EXPECT_TRUE(window.full());
  EXPECT_EQ(send_all("quick"), 1u);
  EXPECT_EQ(send_all("quick"), 0u);
  window.answered("10", true);
  EXPECT_EQ(send_all("quick"), 1u);
}

// A slow webhook of one namespace does not hold up the evictions of another namespace.
TEST_F(PipelineTest, P9_ManySlowEvictionsOfOneNamespaceHoldUpNoOther) {
  make({.max_places = 0});
  std::vector<k8s::Pod> pods;
  for (int i = 0; i < 200; ++i) pods.push_back(a_pod("web-" + std::to_string(i), "a"));
  pods.push_back(a_pod("quick", "b"));
  plan(pods);
  const auto first = take();
  EXPECT_EQ(first.size(), 11u);
  EXPECT_THAT(first, Contains("quick"));
  EXPECT_EQ(pipeline->next_wake(now), now + RequestWindow::slow);
  now += RequestWindow::slow;
  EXPECT_EQ(take().size(), 10u);
}

}  // namespace
}  // namespace haulout::drain
