#include "agent/rehearsal/stage.hpp"

#include "agent/rehearsal/world_json.hpp"
#include "retry/task_group.hpp"
#include "sim/play.hpp"

namespace haulout::agent {

Stage::Stage(const Assumptions& assumptions, WallTime now, std::uint64_t seed, std::uint32_t page_size)
    : rest_(rest_of(assumptions)),
      world_rng_(seed),
      rng(seed + 1),
      cluster(context_.get_executor(), clock, world_rng_, timing_of(assumptions)),
      client(cluster.api(), clock, {k8s::FieldValidation::strict, page_size}) {
  // What is on its way out has as long to go as it really has.
  clock.shift_wall(now - rest_ - clock.wall_now());
}

Result<> Stage::load(const std::vector<std::string>& documents) {
  for (const std::string& document : documents) {
    auto loaded = cluster.load(document);
    if (!loaded) return std::move(loaded).error().with_context("the snapshot cannot be used");
  }
  return {};
}

Result<> Stage::play(std::function<boost::asio::awaitable<void>()> act) {
  auto played = sim::play(context_, clock, with_task_group([this, &act](TaskGroup& group) {
                            group.spawn(cluster.run());
                            return act();
                          }));
  if (!played) return std::move(played).error().with_context("the rehearsal cannot be played to its end");
  return {};
}

boost::asio::awaitable<void> Stage::come_to_rest() {
  co_await clock.sleep_until(clock.now() + rest_);
}

}  // namespace haulout::agent
