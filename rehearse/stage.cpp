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

Result<std::vector<sim::Json>> read_file(const std::string& path, const sim::Reading& reading) {
  auto pieces = FilePieces::open(path);
  if (!pieces) return std::move(pieces).error();
  std::istream stream(&*pieces);
  auto objects = sim::read_json_objects(stream, reading);
  if (pieces->failure() != 0) return Error(Errc::unavailable, std::strerror(pieces->failure()));
  if (objects) return *std::move(objects);
  auto text = read_whole_file(path);
  if (!text) return std::move(text).error();
  return sim::read_objects(*text, reading);
}

Result<std::vector<sim::Json>> read_document(Document document, const sim::Reading& reading) {
  return document.in_file ? read_file(document.file, reading) : sim::read_objects(document.text, reading);
}

// People also give what manifests are made from. Returns what this document is then, judged by its name and its text.
std::optional<Skipped::Why> to_render(const Document& document) {
  if (document.file.empty()) return std::nullopt;
  const std::string name = std::filesystem::path(document.file).filename();
  if (name == "kustomization.yaml" || name == "kustomization.yml") return Skipped::Why::kustomization;
  if (name == "Chart.yaml") return Skipped::Why::chart;
  const std::string& text = document.text;
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  // In JSON, braces may follow each other, and a text may have those of a template.
  const bool is_json = text.compare(begin, 1, "{") == 0 && text.compare(begin, 2, "{{") != 0;
  if (is_json || text.find("{{") == std::string::npos) return std::nullopt;
  return Skipped::Why::is_template;
}

std::string remedy_for(Skipped::Why why, const std::filesystem::path& file) {
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  switch (why) {
    case Skipped::Why::kustomization:
      return fmt::format("; it is a kustomization, so build it first: kubectl kustomize {} | haulout audit -f -",
                         folder);
    case Skipped::Why::chart:
      return fmt::format("; it belongs to a Helm chart, so render that first: helm template {} | haulout audit -f -",
                         folder);
    case Skipped::Why::is_template:
      return "; it is a template with {{ }}, so render it first: helm template CHART | haulout audit -f -";
    case Skipped::Why::hidden:
    case Skipped::Why::no_object: break;
  }
  return {};
}

// Gives names to the objects that have only metadata.generateName, as an API server does when they are created.
void name_generated(std::vector<sim::Json>& objects) {
  const auto is_nameless = [](const sim::Json& object) { return sim::name_of(object).empty(); };
  if (std::ranges::none_of(objects, is_nameless)) return;
  std::set<std::string> names;
  for (const sim::Json& object : objects) names.insert(sim::name_of(object));
  for (sim::Json& object : objects) {
    if (!is_nameless(object)) continue;
    const std::string prefix = sim::text(object, "/metadata/generateName");
    std::size_t number = 1;
    while (!names.insert(fmt::format("{}{}", prefix, number)).second) ++number;
    object["metadata"]["name"] = fmt::format("{}{}", prefix, number);
  }
}

std::string kind_of(const sim::Json& object) {
  const std::string version = sim::text(object, "/apiVersion");
  const std::size_t slash = version.find('/');
  return sim::text(object, "/kind") + (slash == std::string::npos ? "" : "." + version.substr(0, slash));
}

// Returns true for a kind on which no finding depends. Repositories have many ConfigMaps with numbers as labels.
bool is_never_judged(std::string_view kind) {
  return kind == "ConfigMap" || kind == "Event" || kind == "Lease";
}

// Reads the documents of a snapshot, one after the other.
class Reader {
 public:
  Reader(Snapshot& snapshot, const OnProgress& on_progress) : snapshot_(snapshot), on_progress_(on_progress) {}

  Result<SnapshotObjects> read() {
    read_.skipped = std::move(snapshot_.skipped);
    for (Document& document : snapshot_.documents)
      if (auto taken = take(document); !taken) return std::move(taken).error();
    name_generated(read_.all);
    return std::move(read_);
  }

 private:
  Result<> take(Document& document) {
    const auto why = to_render(document);
    if (document.found && why && why != Skipped::Why::is_template) {
      document.text.clear();
      skip(*why, document.file);
      return {};
    }
    // A text without this word has no Kubernetes object, whatever is wrong with it.
    const bool has_kind = document.in_file || document.text.find("kind") != std::string::npos;
    const bool found = document.found;
    const std::string file = document.file;
    auto objects = read_document(std::exchange(document, {.text = {}, .file = file}), reading_of(file, found));
    if (!objects && found && objects.error().code() == Errc::decode && (why || !has_kind)) {
      skip(why.value_or(Skipped::Why::no_object), file);
      return {};
    }
    if (!objects)
      return Error(Errc::decode, fmt::format("the snapshot{}{} cannot be used: {}{}", file.empty() ? "" : " in ", file,
                                             objects.error().message(), why ? remedy_for(*why, file) : ""));
    read_.parts.push_back({file, objects->size()});
    std::move(objects->begin(), objects->end(), std::back_inserter(read_.all));
    return {};
  }

  sim::Reading reading_of(const std::string& file, bool found) {
    sim::Reading reading{.prepare = [this](sim::Json& object) { prepare(object); },
                         .on_unknown = [this](const sim::Json& object) { read_.others.insert(kind_of(object)); },
                         .may_be_nameless = snapshot_.stored};
    if (!found) return reading;
    reading.may_be_broken = is_never_judged;
    reading.on_foreign = [this, file](sim::Foreign why) {
      skip(why == sim::Foreign::is_template ? Skipped::Why::is_template : Skipped::Why::no_object, file);
    };
    return reading;
  }

  void prepare(sim::Json& object) {
    weigh_times(object, snapshot_.read_at, read_.newest);
    drop_unread(object);
    ++count_;
    if (on_progress_) on_progress_({StepProgress::Step::reading, count_, 0});
  }

  void skip(Skipped::Why why, const std::string& file) {
    const bool is_said = !read_.skipped.empty() && read_.skipped.back().file == file && read_.skipped.back().why == why;
    if (!is_said) read_.skipped.push_back({why, file});
  }

  Snapshot& snapshot_;
  const OnProgress& on_progress_;
  SnapshotObjects read_;
  std::size_t count_ = 0;
};

}  // namespace

Result<SnapshotObjects> objects_of(Snapshot& snapshot, const OnProgress& on_progress) {
  return Reader(snapshot, on_progress).read();
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
