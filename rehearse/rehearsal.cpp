#include "rehearse/rehearsal.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "drain/drain.hpp"
#include "rehearse/stage.hpp"
#include "rehearse/world_json.hpp"

namespace haulout::rehearse {
namespace asio = boost::asio;

namespace {

drain::Options options_of(const RehearsalInput& input) {
  drain::Options options = input.drain;
  if (!options.timeout) options.timeout = input.assumptions.give_up + drain::longest_limit(input.drain.policy.rules);
  options.dry_run = drain::DryRunMode::none;
  options.fail_fast = false;
  options.review_access = false;
  options.run_id = "rehearsal";
  options.cordoned_by = "rehearsal";
  return options;
}

class Drains {
 public:
  explicit Drains(RehearsalInput input)
      : input_(std::move(input)),
        options_(options_of(input_)),
        stage_(input_.assumptions, input_.seed, options_.page_size) {}

  Result<Rehearsal> play() {
    if (auto loaded = stage_.load(input_.snapshot, input_.on_progress); !loaded) return std::move(loaded).error();
    return play_loaded();
  }
  Result<Rehearsal> play(std::vector<sim::Json> objects) {
    stage_.load(std::move(objects), input_.snapshot.read_at);
    return play_loaded();
  }

 private:
  Result<Rehearsal> play_loaded() {
    result_.assumed = stage_.assumed();
    result_.assumed_of_world = result_.assumed.size();
    result_.timeout_given = input_.drain.timeout.has_value();
    if (auto played = stage_.play([this] { return act(); }); !played) return std::move(played).error();
    if (error_) return std::move(*error_);
    return std::move(result_);
  }

  asio::awaitable<void> act() {
    co_await stage_.come_to_rest();
    auto names = co_await names_of_nodes();
    if (!names) {
      error_ = std::move(names).error();
      co_return;
    }
    const std::set<std::string> all(names->begin(), names->end());
    for (std::string& phrase : assumed_of_volumes(input_.assumptions, stage_.cluster, all))
      result_.assumed.push_back(std::move(phrase));
    assume_no_work_ends(result_.assumed, options_.policy, stage_.cluster, all);
    assume_silent_responders(result_.assumed, options_, stage_.cluster, all);
    const std::set<std::string> before = homeless(stage_.cluster);
    for (const std::string& name : *names)
      for (std::string& pod : not_weighed(stage_.cluster, name)) result_.not_weighed.push_back(std::move(pod));
    const TimePoint began = stage_.clock.now();
    co_await drain_all(*std::move(names));
    result_.took = stage_.clock.now() - began;
    co_await stage_.come_to_rest();
    result_.no_room = no_room(stage_.cluster, before);
    if (!result_.no_room.empty()) co_await wait_for_room(before);
    assume_no_preemption(result_.assumed, result_.no_room);
  }

  // Waits until the terminating pods of other nodes are deleted, because they keep their resources until then. Then
  // lists the pods without a node again.
  asio::awaitable<void> wait_for_room(std::set<std::string> before) {
    const auto last = last_to_go(stage_.cluster);
    const Duration wait = last ? *last - stage_.clock.wall_now() : Duration::zero();
    if (wait <= Duration::zero() || wait > input_.assumptions.give_up) co_return;
    co_await stage_.clock.sleep_until(stage_.clock.now() + wait);
    co_await stage_.come_to_rest();
    const std::vector<NoRoom> first = std::exchange(result_.no_room, no_room(stage_.cluster, before));
    assume_later_room(result_.assumed, first, result_.no_room);
  }

  // Returns the noun for what was read: files of the user, or the cluster itself.
  std::string_view source() const { return input_.snapshot.stored ? "snapshot" : "cluster"; }

  Task<std::vector<std::string>> names_of_nodes() {
    const TimePoint deadline = stage_.clock.now() + Stage::request_limit;
    CO_TRY(const auto nodes, co_await stage_.client.list_nodes(input_.selector, deadline));
    std::vector<std::string> names;
    names.reserve(nodes.items.size());
    if (!input_.selector.empty()) {
      for (const k8s::Node& node : nodes.items) names.push_back(node.name);
      if (names.empty())
        co_return Error(Errc::invalid,
                        fmt::format("no node of the {} matches the selector \"{}\"", source(), input_.selector));
      co_return names;
    }
    for (const std::string& name : input_.nodes) {
      const bool known =
          std::any_of(nodes.items.begin(), nodes.items.end(), [&](const k8s::Node& node) { return node.name == name; });
      if (!known)
        co_return Error(Errc::invalid, fmt::format("the {} has no node \"{}\"; it has {}", source(), name,
                                                   count_of(nodes.items.size(), "node")));
    }
    co_return input_.nodes;
  }

  // Drains the nodes as the command does: all preflights, then all cordons, then the evictions of one node after
  // another.
  asio::awaitable<void> drain_all(std::vector<std::string> names) {
    options_.drained_together = {names.begin(), names.end()};
    std::vector<std::unique_ptr<drain::Drain>> drains;
    drains.reserve(names.size());
    std::vector<bool> goes_on(names.size(), true);
    for (const std::string& name : names)
      drains.push_back(std::make_unique<drain::Drain>(stage_.client, stage_.rng, result_.timeline, options_, name));
    for (std::size_t i = 0; i < drains.size(); ++i) goes_on[i] = co_await drains[i]->preflight();
    for (std::size_t i = 0; i < drains.size(); ++i)
      if (goes_on[i]) goes_on[i] = co_await drains[i]->cordon();
    for (std::size_t i = 0; i < drains.size(); ++i) {
      if (goes_on[i]) co_await drains[i]->evict();
      result_.drains.push_back(drains[i]->report());
    }
  }

  RehearsalInput input_;
  drain::Options options_;
  Stage stage_;
  Rehearsal result_;
  std::optional<Error> error_;
};

}  // namespace

Result<Rehearsal> rehearse(RehearsalInput input) {
  return Drains(std::move(input)).play();
}

Result<Rehearsal> rehearse(RehearsalInput input, std::vector<sim::Json> objects) {
  return Drains(std::move(input)).play(std::move(objects));
}

}  // namespace haulout::rehearse
