#include "audit/sifting.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "audit/report.hpp"
#include "base/text.hpp"
#include "rehearse/snapshot_command.hpp"

namespace haulout::audit {
namespace {

using rehearse::Skipped;
using sim::Json;

constexpr const char* build = "kubectl kustomize DIR | haulout audit -f -";
constexpr const char* render = "helm template CHART | haulout audit -f -";

// At most so many objects are named for one reason.
constexpr std::size_t most_named = 5;

bool is_one_of(const std::string& kind, std::initializer_list<std::string_view> kinds) {
  return std::ranges::find(kinds, kind) != kinds.end();
}

// Returns true for a kind of which the audit judges each object by itself, so that it matters which one counts.
bool is_judged(const std::string& kind) {
  return is_one_of(kind, {"Deployment", "ReplicaSet", "StatefulSet", "Job", "Pod", "PodDisruptionBudget",
                          "HorizontalPodAutoscaler", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"});
}

bool is_workload(const std::string& kind) {
  return is_one_of(kind, {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"});
}

// Returns true if an API server takes the selector of such a workload from its template, as old versions did.
bool has_default_selector(const Json& object) {
  const std::string version = sim::text(object, "/apiVersion");
  return sim::text(object, "/kind") == "Job" || version.starts_with("extensions/") || version == "apps/v1beta1";
}

// Returns why the object can only be a patch of another one; empty if it is whole.
std::string why_patch(const Json& object) {
  const std::string kind = sim::text(object, "/kind");
  if (!is_judged(kind) && !is_workload(kind)) return {};
  if (object.contains("$patch")) return "has $patch";
  const bool selects = sim::at(object, "/spec/selector").is_object();
  if (kind == "PodDisruptionBudget") return selects ? "" : "has no spec.selector";
  if (!is_workload(kind)) return {};
  if (!sim::at(object, "/spec/template").is_object()) return "has no spec.template";
  if (!selects && !has_default_selector(object)) return "has no spec.selector";
  return !selects && sim::at(object, "/spec/template/spec/containers").empty() ? "has no containers" : "";
}

OwnerName named(const Json& object) {
  const std::string kind = sim::text(object, "/kind"), ns = sim::ns_of(object);
  const sim::ResourceInfo* info = sim::find_kind(kind);
  const bool has_ns = !ns.empty() || !info || !info->namespaced;
  return {has_ns ? ns : "default", kind, sim::name_of(object)};
}

std::string words(const OwnerName& name) {
  return fmt::format("{} {}{}", name.kind, name.ns.empty() ? "" : name.ns + '/', name.name);
}

std::string in_file(const std::string& file) {
  return file.empty() ? "" : " in " + file;
}

void add_bounded(std::vector<std::string>& to, const std::vector<std::string>& phrases, std::string_view more) {
  to.insert(to.end(), phrases.begin(), phrases.begin() + std::min<std::ptrdiff_t>(most_named, std::ssize(phrases)));
  if (phrases.size() > most_named) to.push_back(fmt::format("and {} more {}", phrases.size() - most_named, more));
}

class Sieve {
 public:
  Sifted run(rehearse::SnapshotObjects read) {
    auto object = read.all.begin();
    for (const auto& [file, objects] : read.parts)
      for (const auto end = object + static_cast<std::ptrdiff_t>(objects); object != end; ++object)
        take(std::move(*object), file);
    result_.patches = patches_.size();
    add_bounded(result_.assumed, doubles_, "objects that are in two files, of which only the first counts");
    add_bounded(result_.assumed, patches_, "patches that are left out");
    return std::move(result_);
  }

 private:
  void take(Json object, const std::string& file) {
    const OwnerName name = named(object);
    if (const std::string why = why_patch(object); !why.empty()) {
      patches_.push_back(fmt::format("{}{} {}, so it counts as a patch and is left out; build what it patches: {}",
                                     words(name), in_file(file), why, build));
      return;
    }
    const auto [first, is_new] = index_.try_emplace(name, result_.objects.size());
    if (!is_new && is_judged(name.kind)) {
      const std::string& known = result_.files[name.text()];
      if (object != result_.objects[first->second])
        doubles_.push_back(fmt::format(
            "{} is {}, and only the first counts; audit one environment at a time, for example {}", words(name),
            known == file ? "twice" + in_file(file) : fmt::format("in {} and in {}", known, file), build));
      return;
    }
    result_.files.try_emplace(name.text(), file);
    result_.objects.push_back(std::move(object));
  }

  Sifted result_;
  std::map<OwnerName, std::size_t> index_;  // into Sifted::objects
  std::vector<std::string> doubles_, patches_;
};

std::string phrase_for(Skipped::Why why, const std::vector<std::string>& files) {
  const auto skipped = [&](std::string_view what) {
    return fmt::format("{} {} skipped", count_of(files.size(), what), files.size() == 1 ? "was" : "were");
  };
  switch (why) {
    case Skipped::Why::hidden: return skipped("hidden file") + ": " + some_of(files);
    case Skipped::Why::kustomization:
      return fmt::format("{}, because a kustomization only names manifests ({} builds it): {}",
                         skipped("kustomization"), build, some_of(files));
    case Skipped::Why::chart: return skipped("Chart.yaml of Helm") + ": " + some_of(files);
    case Skipped::Why::is_template:
      return fmt::format("{} because of {{{{ }}}} ({} renders a chart): {}", skipped("template"), render,
                         some_of(files));
    case Skipped::Why::no_object: break;
  }
  return fmt::format("{}, in whole or in part, because what has no kind is no Kubernetes object: {}", skipped("file"),
                     some_of(files));
}

// A kind whose controller makes workloads of what is elsewhere.
struct Maker {
  const char* kind;  // "Kind.group"
  const char* remedy;
};
constexpr Maker makers[] = {
    {"HelmRelease.helm.toolkit.fluxcd.io", render},
    {"HelmChart.helm.cattle.io", render},
    {"Kustomization.kustomize.toolkit.fluxcd.io", build},
    {"Application.argoproj.io", build},
};

}  // namespace

Sifted sifted(rehearse::SnapshotObjects read) {
  return Sieve().run(std::move(read));
}

std::vector<std::string> assumed_of(const std::vector<Skipped>& skipped) {
  std::map<Skipped::Why, std::vector<std::string>> files;
  for (const Skipped& each : skipped) files[each.why].push_back(each.file);
  std::vector<std::string> phrases;
  phrases.reserve(files.size());
  for (const auto& [why, of] : files) phrases.push_back(phrase_for(why, of));
  return phrases;
}

bool have_cron_jobs(const std::set<std::string>& others) {
  return others.contains("CronJob.batch");
}

Result<> check_manifests(const Sifted& manifests, const std::set<std::string>& others,
                         const std::vector<Skipped>& skipped, bool kustomizes) {
  const bool any = std::ranges::any_of(manifests.objects, [](const Json& object) {
    const std::string kind = sim::text(object, "/kind");
    return kind == "Pod" || kind == "PodDisruptionBudget" || is_workload(kind);
  });
  if (any || have_cron_jobs(others)) return {};
  const auto were_skipped = [&](Skipped::Why why) { return std::ranges::count(skipped, why, &Skipped::why) > 0; };
  if (manifests.patches > 0)
    return Error(
        Errc::decode,
        fmt::format("the files have only patches of workloads or budgets, so build what they patch: {}", build));
  if (kustomizes || were_skipped(Skipped::Why::kustomization))
    return Error(Errc::decode, fmt::format("a kustomization only names manifests, so build it first: {}", build));
  for (const Maker& maker : makers)
    if (others.contains(maker.kind)) {
      const std::string_view kind(maker.kind);
      return Error(Errc::decode,
                   fmt::format("the files have no workloads or budgets, but {} {}, from which a "
                               "controller makes them; render what it names: {}",
                               kind.starts_with('A') ? "an" : "a", kind.substr(0, kind.find('.')), maker.remedy));
    }
  if (were_skipped(Skipped::Why::is_template) || were_skipped(Skipped::Why::chart))
    return Error(Errc::decode,
                 fmt::format("the files have only templates with {{{{ }}}}, so render them first: {}", render));
  return Error(Errc::decode, fmt::format("the files have no nodes, and no workloads or budgets either; give a snapshot "
                                         "({}), or manifests with workloads",
                                         rehearse::snapshot_command));
}

}  // namespace haulout::audit
