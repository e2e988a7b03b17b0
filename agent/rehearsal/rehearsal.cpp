#include "agent/rehearsal/rehearsal.hpp"

#include <boost/asio/io_context.hpp>

#include "agent/rehearsal/world_json.hpp"
#include "drain/drain.hpp"
#include "k8s/client.hpp"
#include "retry/task_group.hpp"
#include "sim/cluster.hpp"
#include "sim/play.hpp"
#include "sim/virtual_clock.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

constexpr Duration request_limit = std::chrono::seconds(30);

drain::Options options_of(const RehearsalInput& input) {
  drain::Options options = input.drain;
  if (!options.timeout) options.timeout = input.assumptions.give_up;
  options.dry_run = drain::DryRunMode::none;
  options.fail_fast = false;
  options.review_access = false;
  options.run_id = "rehearsal";
  options.cordoned_by = "rehearsal";
  return options;
}

class Stage {
 public:
  explicit Stage(const RehearsalInput& input)
      : input_(input),
        options_(options_of(input)),
        world_rng_(input.seed),
        rng_(input.seed + 1),
        cluster_(context_.get_executor(), clock_, world_rng_, timing_of(input.assumptions)),
        client_(cluster_.api(), clock_, {k8s::FieldValidation::strict, options_.page_size}) {
    // The drain begins at the time of the snapshot, so that what is on its way out has as long to go as it really has.
    clock_.shift_wall(input.now - rest_of(input_.assumptions) - clock_.wall_now());
  }

  Result<Rehearsal> play() {
    for (const std::string& document : input_.documents) {
      auto loaded = cluster_.load(document);
      if (!loaded) return std::move(loaded).error().with_context("the snapshot cannot be used");
    }
    auto played = sim::play(context_, clock_, run());
    if (!played) return std::move(played).error().with_context("the rehearsal cannot be played to its end");
    if (error_) return std::move(*error_);
    return std::move(result_);
  }

 private:
  asio::awaitable<void> run() {
    co_await with_task_group([this](TaskGroup& group) {
      group.spawn(cluster_.run());
      return act();
    });
  }

  asio::awaitable<void> act() {
    co_await clock_.sleep_until(clock_.now() + rest_of(input_.assumptions));
    auto names = co_await names_of_nodes();
    if (!names) {
      error_ = std::move(names).error();
      co_return;
    }
    const std::set<std::string> before = homeless(cluster_);
    for (const std::string& name : *names)
      for (std::string& pod : not_weighed(cluster_, name)) result_.not_weighed.push_back(std::move(pod));
    const TimePoint began = clock_.now();
    co_await drain_all(*std::move(names));
    result_.took = clock_.now() - began;
    co_await clock_.sleep_until(clock_.now() + rest_of(input_.assumptions));
    result_.no_room = no_room(cluster_, before);
  }

  Task<std::vector<std::string>> names_of_nodes() {
    const TimePoint deadline = clock_.now() + request_limit;
    CO_TRY(const auto nodes, co_await client_.list_nodes(input_.selector, deadline));
    std::vector<std::string> names;
    names.reserve(nodes.items.size());
    if (!input_.selector.empty()) {
      for (const k8s::Node& node : nodes.items) names.push_back(node.name);
      if (names.empty()) co_return Error(Errc::invalid, "no node of the snapshot matches " + input_.selector);
      co_return names;
    }
    for (const std::string& name : input_.nodes) {
      const bool known =
          std::any_of(nodes.items.begin(), nodes.items.end(), [&](const k8s::Node& node) { return node.name == name; });
      if (!known)
        co_return Error(Errc::invalid,
                        fmt::format("the snapshot has no node \"{}\"; it has {} nodes", name, nodes.items.size()));
    }
    co_return input_.nodes;
  }

  // As the command does it: all preflights, all cordons, then one node after the other.
  asio::awaitable<void> drain_all(std::vector<std::string> names) {
    std::vector<std::unique_ptr<drain::Drain>> drains;
    drains.reserve(names.size());
    std::vector<bool> goes_on(names.size(), true);
    for (const std::string& name : names)
      drains.push_back(std::make_unique<drain::Drain>(client_, rng_, result_.timeline, options_, name));
    for (std::size_t i = 0; i < drains.size(); ++i) goes_on[i] = co_await drains[i]->preflight();
    for (std::size_t i = 0; i < drains.size(); ++i)
      if (goes_on[i]) goes_on[i] = co_await drains[i]->cordon();
    for (std::size_t i = 0; i < drains.size(); ++i) {
      if (goes_on[i]) co_await drains[i]->evict();
      result_.drains.push_back(drains[i]->report());
    }
  }

  const RehearsalInput& input_;
  drain::Options options_;
  asio::io_context context_{1};
  sim::VirtualClock clock_{context_};
  SeededRng world_rng_;
  SeededRng rng_;
  sim::Cluster cluster_;
  k8s::Client client_;
  Rehearsal result_;
  std::optional<Error> error_;
};

}  // namespace

Result<Rehearsal> rehearse(const RehearsalInput& input) {
  return Stage(input).play();
}

}  // namespace haulout::agent
