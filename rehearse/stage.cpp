#include "rehearse/stage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <istream>
#include <set>

#include "base/files.hpp"
#include "k8s/codec.hpp"
#include "rehearse/snapshot_command.hpp"
#include "rehearse/world_json.hpp"
#include "retry/task_group.hpp"
#include "sim/api_server.hpp"
#include "sim/cluster_parts.hpp"
#include "sim/loader.hpp"
#include "sim/virtual_clock.hpp"

namespace haulout::rehearse {

namespace {

// More than are ever in progress at a time.
constexpr std::size_t kept_requests = 10'000;
// A watch gets a bookmark once a minute, so it never needs an older change than that.
constexpr std::size_t kept_changes = 1'000;
constexpr Duration kept_for = std::chrono::minutes(3);

using Prepare = std::function<void(sim::Json&)>;

Result<std::vector<sim::Json>> read_file(const std::string& path, const Prepare& prepare) {
  auto pieces = FilePieces::open(path);
  if (!pieces) return std::move(pieces).error();
  std::istream stream(&*pieces);
  auto objects = sim::read_json_objects(stream, prepare);
  if (pieces->failure() != 0) return Error(Errc::unavailable, std::strerror(pieces->failure()));
  if (objects) return *std::move(objects);
  auto text = read_whole_file(path);
  if (!text) return std::move(text).error();
  return sim::read_objects(*text, prepare);
}

Result<std::vector<sim::Json>> read_document(Document document, const Prepare& prepare) {
  return document.in_file ? read_file(document.file, prepare) : sim::read_objects(document.text, prepare);
}

// People also give what manifests are made from. Returns what this document is then, and what to do; otherwise an empty
// string.
std::string to_render(const Document& document) {
  if (document.file.empty()) return {};
  const std::filesystem::path path(document.file);
  const std::string name = path.filename(), folder = path.has_parent_path() ? path.parent_path().string() : ".";
  if (name == "kustomization.yaml" || name == "kustomization.yml")
    return fmt::format("it is a kustomization, so build it first: kubectl kustomize {} | haulout audit -f -", folder);
  if (name == "Chart.yaml")
    return fmt::format("it belongs to a Helm chart, so render that first: helm template {} | haulout audit -f -",
                       folder);
  const std::string& text = document.text;
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  // In JSON, braces may follow each other, and a text may have those of a template.
  const bool is_json = text.compare(begin, 1, "{") == 0 && text.compare(begin, 2, "{{") != 0;
  if (is_json || text.find("{{") == std::string::npos) return {};
  return "it is a template with {{ }}, so render it first: helm template CHART | haulout audit -f -";
}

}  // namespace

Result<SnapshotObjects> objects_of(Snapshot& snapshot, const OnProgress& on_progress) {
  SnapshotObjects read;
  std::size_t count = 0;
  const auto prepare = [&](sim::Json& object) {
    weigh_times(object, snapshot.read_at, read.newest);
    drop_unread(object);
    ++count;
    if (on_progress) on_progress({StepProgress::Step::reading, count, 0});
  };
  for (Document& document : snapshot.documents) {
    const std::string remedy = to_render(document);
    auto objects = read_document(std::exchange(document, {.text = {}, .file = document.file}), prepare);
    if (!objects)
      return Error(Errc::decode,
                   fmt::format("the snapshot{}{} cannot be used: {}{}{}", document.file.empty() ? "" : " in ",
                               document.file, objects.error().message(), remedy.empty() ? "" : "; ", remedy));
    read.parts.push_back({document.file, objects->size()});
    std::move(objects->begin(), objects->end(), std::back_inserter(read.all));
  }
  return read;
}

Result<> check_whole(const std::vector<sim::Json>& objects) {
  const auto has = [&](const char* kind) {
    return std::any_of(objects.begin(), objects.end(), [&](const sim::Json& object) { return object["kind"] == kind; });
  };
  const char* missing = !has("Node") ? "nodes" : !has("Pod") ? "pods" : nullptr;
  if (missing)
    return Error(Errc::decode, fmt::format("the snapshot has no {}; make it by {}", missing, snapshot_command));
  return {};
}

Result<> check_controllers(const std::vector<sim::Json>& objects) {
  std::set<std::string> kinds;
  for (const sim::Json& object : objects) kinds.insert(sim::text(object, "/kind"));
  for (const sim::Json& object : objects) {
    if (object["kind"] != "Pod" || sim::pod_finished(object)) continue;
    const sim::Json& controller = sim::controller_of(object);
    const std::string kind = sim::text(controller, "/kind");
    if (sim::text(controller, "/apiVersion") != "apps/v1" || (kind != "ReplicaSet" && kind != "StatefulSet")) continue;
    if (kinds.contains(kind)) continue;
    return Error(
        Errc::decode,
        fmt::format("pod {}/{} belongs to a {}, and the snapshot has no {}s, so nothing would replace its pods; "
                    "make the snapshot by {}",
                    sim::ns_of(object), sim::name_of(object), kind, kind, snapshot_command));
  }
  return {};
}

std::string assumed_time(WallTime dated) {
  return "the snapshot was taken at the newest time in it, " + k8s::format_time(dated);
}

Stage::Stage(const Assumptions& assumptions, std::uint64_t seed, std::uint32_t page_size)
    : assumptions_(assumptions),
      world_rng_(seed),
      rng(seed + 1),
      cluster(context_.get_executor(), clock, world_rng_, timing_of(assumptions)),
      client(cluster.api(), clock, {k8s::FieldValidation::strict, page_size}) {
  cluster.switches().pods_wait_for_volumes = true;
  cluster.server().limit_audit(kept_requests);
  cluster.parts().store.limit_history(kept_changes, kept_for);
}

Result<> Stage::load(Snapshot& snapshot, const OnProgress& on_progress) {
  auto objects = objects_of(snapshot, on_progress);
  if (!objects) return std::move(objects).error();
  if (snapshot.stored) {
    if (auto whole = check_whole(objects->all); !whole) return whole;
    dated_ = objects->newest;
  }
  load(std::move(objects->all), dated_.value_or(snapshot.read_at));
  return {};
}

void Stage::load(std::vector<sim::Json> objects, WallTime now) {
  // Sets the clock so that it shows the time of the snapshot when the controllers have nothing left to do. Then
  // terminating pods have as much time left as in the real cluster.
  clock.shift_wall(now - rest_of(assumptions_) - clock.wall_now());
  cluster.add(std::move(objects));
  keep_expectations(cluster);
  if (!pods_of_missing_daemon_sets(cluster).empty()) cluster.forbid("get", "daemonsets");
  of_volumes_ = prepare_volumes(cluster);
  for (const std::string& node : silent_nodes(cluster)) cluster.stop_kubelet(node);
}

std::vector<std::string> Stage::assumed() const {
  std::vector<std::string> phrases = assumed_of_pods(assumptions_, cluster);
  phrases.insert(phrases.end(), of_volumes_.begin(), of_volumes_.end());
  if (dated_) phrases.push_back(assumed_time(*dated_));
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
