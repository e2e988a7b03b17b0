#include "rehearse/stage.hpp"

#include <fmt/format.h>

#include "k8s/codec.hpp"
#include "rehearse/world_json.hpp"
#include "retry/task_group.hpp"
#include "sim/api_server.hpp"
#include "sim/loader.hpp"
#include "sim/virtual_clock.hpp"

namespace haulout::rehearse {

namespace {

// Fails with Errc::decode if the objects contain no nodes or no pods. Every real cluster has both, so such a file was
// made by a wrong command, and without pods every drain would succeed.
Result<> check_whole(const std::vector<sim::Json>& objects) {
  const auto has = [&](const char* kind) {
    return std::any_of(objects.begin(), objects.end(), [&](const sim::Json& object) { return object["kind"] == kind; });
  };
  const char* missing = !has("Node") ? "nodes" : !has("Pod") ? "pods" : nullptr;
  if (missing)
    return Error(Errc::decode, fmt::format("the snapshot has no {}; make it by kubectl get "
                                           "nodes,pods,pdb,deploy,rs,sts,ds,pv,pvc,volumeattachments,quota -A -o json",
                                           missing));
  return {};
}

// More than are ever in progress at a time.
constexpr std::size_t kept_requests = 10'000;

}  // namespace

Stage::Stage(const Assumptions& assumptions, std::uint64_t seed, std::uint32_t page_size)
    : assumptions_(assumptions),
      world_rng_(seed),
      rng(seed + 1),
      cluster(context_.get_executor(), clock, world_rng_, timing_of(assumptions)),
      client(cluster.api(), clock, {k8s::FieldValidation::strict, page_size}) {
  cluster.switches().pods_wait_for_volumes = true;
  cluster.server().limit_audit(kept_requests);
}

Result<> Stage::load(Snapshot& snapshot) {
  std::vector<sim::Json> all;
  const auto prepare = [&](sim::Json& object) {
    if (snapshot.stored) weigh_times(object, snapshot.read_at, dated_);
    drop_unread(object);
  };
  for (Document& document : snapshot.documents) {
    const std::string text = std::exchange(document.text, {});
    auto objects = sim::read_objects(text, prepare);
    if (!objects)
      return Error(Errc::decode, fmt::format("the snapshot{}{} cannot be used: {}", document.file.empty() ? "" : " in ",
                                             document.file, objects.error().message()));
    std::move(objects->begin(), objects->end(), std::back_inserter(all));
  }
  if (snapshot.stored) {
    if (auto whole = check_whole(all); !whole) return whole;
  }
  // Sets the clock so that it shows the time of the snapshot when the controllers have nothing left to do. Then
  // terminating pods have as much time left as in the real cluster.
  clock.shift_wall(dated_.value_or(snapshot.read_at) - rest_of(assumptions_) - clock.wall_now());
  cluster.add(std::move(all));
  keep_expectations(cluster);
  if (!pods_of_missing_daemon_sets(cluster).empty()) cluster.forbid("get", "daemonsets");
  of_volumes_ = prepare_volumes(cluster);
  for (const std::string& node : silent_nodes(cluster)) cluster.stop_kubelet(node);
  return {};
}

std::vector<std::string> Stage::assumed() const {
  std::vector<std::string> phrases = assumed_of_pods(assumptions_, cluster);
  phrases.insert(phrases.end(), of_volumes_.begin(), of_volumes_.end());
  if (dated_) phrases.push_back("the snapshot was taken at the newest time in it, " + k8s::format_time(*dated_));
  return phrases;
}

Result<> Stage::play(std::function<boost::asio::awaitable<void>()> act) {
  auto played = sim::play(context_, clock, with_task_group([this, &act](TaskGroup& group) {
                            group.spawn(cluster.run());
                            return act();
                          }));
  if (!played) return std::move(played).error().with_context("the rehearsal cannot be completed");
  return {};
}

boost::asio::awaitable<void> Stage::come_to_rest() {
  co_await clock.sleep_until(clock.now() + rest_of(assumptions_));
}

}  // namespace haulout::rehearse
