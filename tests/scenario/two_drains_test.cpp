// Two nodes are drained at the same time by two independent clients.
#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::EventType;
using drain::Outcome;
using ::testing::SizeIs;

class TwoDrains : public Scenario {
 protected:
  struct One {
    std::string node;
    SeededRng rng;
    Recorder told{};
    std::optional<drain::Report> report{};

    std::vector<WallTime> evicted() const {
      std::vector<WallTime> times;
      for (const auto& entry : told.entries)
        if (entry.type == EventType::evicted) times.push_back(entry.at);
      return times;
    }
  };

  boost::asio::awaitable<void> drain_one(One& one) {
    k8s::Client client(cluster.api(), clock, {k8s::FieldValidation::strict});
    drain::Drain drain(client, one.rng, one.told, options, one.node);
    one.report = co_await drain.run();
  }
  void drain_both() {
    auto body = [this](TaskGroup& world) -> boost::asio::awaitable<void> {
      world.spawn(cluster.run());
      co_await clock.sleep_until(clock.now() + 5s);
      watch_budget();
      auto both = [this](TaskGroup& group) -> boost::asio::awaitable<void> {
        group.spawn(drain_one(first));
        co_await drain_one(second);
        co_await clock.sleep_until(clock.now() + 30min);
      };
      co_await with_task_group(both);
    };
    run(with_task_group(body));
  }
  // Records the smallest number of Ready pods that are not terminating, independently of the budget's status.
  void watch_budget() {
    cluster.on_change([this](const sim::Change& change) {
      if (change.key.resource != "pods") return;
      std::size_t serving = 0;
      for (const auto& pod : cluster.store().list("pods"))
        serving += sim::pod_ready(*pod) && !sim::terminating(*pod) ? 1u : 0u;
      fewest = std::min(fewest, serving);
    });
  }

  One first{"n1", SeededRng{3}}, second{"n2", SeededRng{4}};
  std::size_t fewest = SIZE_MAX;
};

TEST_F(TwoDrains, S30_OfPodsBehindOneBudgetShareIt) {
  for (const char* node : {"n1", "n2"})
    add(a_workload("Deployment", std::string("web-") + node, 5, {{"terminationGracePeriodSeconds", 4}},
                   {{"sim.haulout.dev/prefers-node", node}}));
  add(a_budget("web", {{"maxUnavailable", 1}}));
  options.timeout = 20min;
  drain_both();
  for (const One* one : {&first, &second}) {
    ASSERT_TRUE(one->report) << one->node;
    EXPECT_THAT(*one->report, Ended(Outcome::drained)) << one->node;
    EXPECT_THAT(one->evicted(), SizeIs(5)) << one->node << ": none that came from the other node";
  }
  EXPECT_EQ(fewest, 9u) << "of ten, whoever asks";
  // Neither drain waits for the other one to end.
  EXPECT_LT(first.evicted().front(), second.evicted().back());
  EXPECT_LT(second.evicted().front(), first.evicted().back());
  EXPECT_EQ(accepted_evictions(), 10u);
  std::size_t conflicts = 0;
  for (const auto& entry : evictions()) conflicts += entry.status == 409 || entry.status >= 500 ? 1u : 0u;
  EXPECT_EQ(conflicts, 0u) << "what loses the race is told that the budget is closed";
  EXPECT_LE(evictions().size(), 40u);
}

}  // namespace
}  // namespace haulout::scenario
