#include "tests/scenario/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <optional>
#include <queue>
#include <stdexcept>

#include "drain/drain.hpp"
#include "retry/task_group.hpp"
#include "sim/virtual_clock.hpp"
#include "tests/support/test_cluster.hpp"

namespace haulout::scenario {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

// Records when the cordon was acknowledged. The time before that does not belong to the schedule.
class Stopwatch final : public drain::DrainObserver {
 public:
  explicit Stopwatch(Clock& clock) : clock_(clock) {}
  void on_event(const drain::Event& event) override {
    if (event.type == drain::EventType::cordoned) began_ = clock_.now();
  }
  Duration taken() const { return clock_.now() - began_; }

 private:
  Clock& clock_;
  TimePoint began_{};
};

sim::Json a_pod(std::size_t index, std::int64_t grace) {
  const sim::Json owner = {
      {"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"name", "web"}, {"uid", "web"}, {"controller", true}};
  return {{"kind", "Pod"},
          {"metadata", {{"name", fmt::format("web-{}", index)}, {"namespace", "shop"}, {"ownerReferences", {owner}}}},
          {"spec", {{"nodeName", "n1"}, {"terminationGracePeriodSeconds", grace}, {"containers", sim::Json::array()}}},
          {"status", {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
}

asio::awaitable<Duration> drained_after(sim::TestCluster& cluster, Clock& clock, Rng& rng, std::size_t places) {
  std::optional<Duration> taken;
  std::string message;
  co_await with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
    group.spawn(cluster.run());
    drain::Options options;
    options.max_concurrent = places;
    options.settle = 0s;
    k8s::Client client(cluster.api(), clock);
    Stopwatch stopwatch(clock);
    drain::Drain drain(client, rng, stopwatch, options, "n1");
    const drain::Report report = co_await drain.run();
    if (report.outcome == drain::Outcome::drained) taken = stopwatch.taken();
    message = report.message;
  });
  if (!taken) throw std::runtime_error("not drained: " + message);
  co_return *taken;
}

}  // namespace

std::vector<std::int64_t> random_graces(std::uint64_t seed) {
  SeededRng rng(seed);
  const std::int64_t longest[] = {10, 60, 300, 3600};
  const auto most = static_cast<std::uint64_t>(longest[rng.between(std::uint64_t{0}, std::uint64_t{3})]);
  std::vector<std::int64_t> graces(rng.between(std::uint64_t{5}, std::uint64_t{80}));
  for (std::int64_t& grace : graces) grace = static_cast<std::int64_t>(rng.between(std::uint64_t{1}, most));
  // Half of the workloads have only a few kinds of pods, like real ones.
  if (rng.chance(50))
    for (std::size_t i = 3; i < graces.size(); ++i) graces[i] = graces[i % 3];
  return graces;
}

Duration list_schedule(std::vector<std::int64_t> graces, std::size_t places) {
  std::sort(graces.rbegin(), graces.rend());
  if (places == 0) places = graces.size();
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free_at;
  for (std::size_t i = 0; i < places; ++i) free_at.push(0);
  std::int64_t makespan = 0;
  for (const std::int64_t grace : graces) {
    const std::int64_t ends = free_at.top() + grace;
    free_at.pop();
    free_at.push(ends);
    makespan = std::max(makespan, ends);
  }
  return std::chrono::seconds(makespan);
}

Duration simulated_drain(const std::vector<std::int64_t>& graces, std::size_t places, std::uint64_t seed) {
  asio::io_context context{1};
  sim::VirtualClock clock(context);
  SeededRng world_rng(seed), drain_rng(seed + 1);
  sim::TestCluster cluster(context.get_executor(), clock, world_rng);
  cluster.create("nodes", {{"kind", "Node"}, {"metadata", {{"name", "n1"}}}});
  for (std::size_t i = 0; i < graces.size(); ++i) cluster.create("pods", a_pod(i, graces[i]));
  std::exception_ptr failure;
  Duration taken{};
  asio::co_spawn(context, drained_after(cluster, clock, drain_rng, places),
                 [&](std::exception_ptr thrown, Duration value) {
                   failure = thrown;
                   taken = value;
                 });
  clock.run(clock.now() + 24h * 365);
  if (failure) std::rethrow_exception(failure);
  if (taken == Duration::zero()) throw std::runtime_error("the drain never ended");
  return taken;
}

}  // namespace haulout::scenario
