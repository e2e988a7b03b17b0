#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "cli/migrate/kured_manifest.hpp"
#include "k8s/yaml_codec.hpp"

namespace haulout::cli {
namespace {

using Json = nlohmann::ordered_json;

// Lists may be in lists; deeper ones are a mistake.
constexpr int deepest_list = 8;

const Json& member(const Json& object, std::string_view key) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_primitive() && !value.is_null() ? value.dump() : "";
}

std::string text(const Json& object, std::string_view key) {
  return text_of(member(object, key));
}

std::vector<std::string> texts(const Json& list) {
  std::vector<std::string> result;
  if (list.is_array())
    for (const Json& item : list) result.push_back(text_of(item));
  return result;
}

bool names_kured(std::string_view word) {
  return word.find("kured") != std::string_view::npos;
}

bool is_kured(const Json& container) {
  if (names_kured(text(container, "name")) || names_kured(text(container, "image"))) return true;
  return std::ranges::any_of(texts(member(container, "command")), names_kured);
}

const Json& pod_spec_of(const Json& daemon_set) {
  return member(member(member(daemon_set, "spec"), "template"), "spec");
}

const Json* kured_container(const Json& daemon_set) {
  const Json& containers = member(pod_spec_of(daemon_set), "containers");
  if (!containers.is_array()) return nullptr;
  for (const Json& container : containers)
    if (is_kured(container)) return &container;
  return names_kured(text(member(daemon_set, "metadata"), "name")) && containers.size() == 1 ? &containers.front()
                                                                                             : nullptr;
}

// Returns where a variable without a value gets it from.
std::string source_of(const Json& variable) {
  const Json& from = member(variable, "valueFrom");
  const auto key_of = [](std::string_view kind, const Json& reference) {
    return fmt::format("{} {}, key {}", kind, text(reference, "name"), text(reference, "key"));
  };
  if (const Json& secret = member(from, "secretKeyRef"); secret.is_object()) return key_of("Secret", secret);
  if (const Json& map = member(from, "configMapKeyRef"); map.is_object()) return key_of("ConfigMap", map);
  if (const Json& field = member(from, "fieldRef"); field.is_object()) return "field " + text(field, "fieldPath");
  return "valueFrom";
}

std::vector<KuredVariable> variables_of(const Json& env) {
  std::vector<KuredVariable> variables;
  if (!env.is_array()) return variables;
  for (const Json& variable : env) {
    const std::string name = text(variable, "name");
    if (member(variable, "valueFrom").is_object())
      variables.push_back({name, std::nullopt, printable(source_of(variable))});
    else
      variables.push_back({name, text(variable, "value")});
  }
  return variables;
}

std::vector<std::string> variable_sets_of(const Json& sets) {
  std::vector<std::string> names;
  if (!sets.is_array()) return names;
  for (const Json& set : sets) {
    const bool secret = member(set, "secretRef").is_object();
    names.push_back(fmt::format("{} {}", secret ? "Secret" : "ConfigMap",
                                text(member(set, secret ? "secretRef" : "configMapRef"), "name")));
  }
  return names;
}

// Returns the mounts of a container, by the volumes of its pod.
std::vector<KuredMount> mounts_of(const Json& volume_mounts, const Json& volumes) {
  std::vector<KuredMount> mounts;
  if (!volume_mounts.is_array()) return mounts;
  for (const Json& mount : volume_mounts) {
    std::string host;
    if (volumes.is_array())
      for (const Json& volume : volumes)
        if (text(volume, "name") == text(mount, "name")) host = text(member(volume, "hostPath"), "path");
    if (const std::string sub_path = text(mount, "subPath"); !host.empty() && !sub_path.empty()) host += "/" + sub_path;
    while (host.size() > 1 && host.ends_with('/')) host.pop_back();
    std::string path = text(mount, "mountPath");
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    if (!path.empty()) mounts.push_back({std::move(path), std::move(host)});
  }
  return mounts;
}

// Returns the arguments of kured. The image of kured starts it, so a container may have arguments alone. Another
// program may start it, as tini does.
Result<std::vector<std::string>> words_of(const Json& container, const std::string& from) {
  std::vector<std::string> words = texts(member(container, "args"));
  const std::vector<std::string> command = texts(member(container, "command"));
  if (command.empty()) return words;
  const auto is_program = [](const std::string& word) { return word.substr(word.find_last_of('/') + 1) == "kured"; };
  const auto program = std::ranges::find_if(command, is_program);
  if (program == command.end())
    return Error(Errc::decode,
                 fmt::format("{}: the command of its container is not kured, but {}: write kured's options as the "
                             "arguments of kured in a copy of the manifest, and read that with -f",
                             from, printable(command.front())));
  words.insert(words.begin(), program + 1, command.end());
  return words;
}

std::string name_of(const Json& daemon_set) {
  const Json& metadata = member(daemon_set, "metadata");
  const std::string ns = text(metadata, "namespace");
  return printable((ns.empty() ? "" : ns + "/") + text(metadata, "name"));
}

bool tolerates_control_planes(const Json& tolerations) {
  if (!tolerations.is_array()) return false;
  return std::ranges::any_of(tolerations, [](const Json& toleration) {
    const std::string key = text(toleration, "key");
    return key == "node-role.kubernetes.io/control-plane" || (key.empty() && text(toleration, "operator") == "Exists");
  });
}

// Returns true for what Helm's templates take for false.
bool is_empty(const Json& value) {
  if (value.is_number()) return value == 0;
  return value.is_null() || value == false || value == "" || ((value.is_array() || value.is_object()) && value.empty());
}

// Returns what keeps kured from nodes on which Haulout's agents would run: these run on every Linux node, whatever its
// taints. `pod` is the spec of kured's pods, or the values of its chart, which have the same keys; the chart adds the
// tolerations of control-plane nodes if its values have no tolerations.
std::vector<KuredStray> placement_of(const Json& pod, bool by_chart) {
  std::vector<KuredStray> rows;
  const auto add = [&](std::string spelled, std::string_view what, std::string_view way_out) {
    rows.push_back({std::move(spelled), Outcome::decide,
                    fmt::format("kured {}, and Haulout's agents run on every Linux node: {}", what, way_out)});
  };
  Json selector = member(pod, "nodeSelector");
  if (selector.is_object()) selector.erase("kubernetes.io/os");
  if (selector.is_object() && !selector.empty())
    add("nodeSelector " + selector.dump(-1, ' ', false, Json::error_handler_t::replace),
        "runs only on the nodes that it selects", "set it for their DaemonSet, too");
  if (member(member(member(pod, "affinity"), "nodeAffinity"), "requiredDuringSchedulingIgnoredDuringExecution")
          .is_object())
    add("affinity.nodeAffinity", "runs only on the nodes that it selects", "set it for their DaemonSet, too");
  const Json& tolerations = member(pod, "tolerations");
  if (!(by_chart && is_empty(tolerations)) && !tolerates_control_planes(tolerations))
    add("tolerations", "does not run on control-plane nodes, because it does not tolerate their taint",
        "if the control plane is to be left alone, keep the pool control-plane paused (haulout pause --pool "
        "control-plane)");
  return rows;
}

Result<KuredCall> call_of(const Json& daemon_set) {
  KuredCall call{.from = "DaemonSet " + name_of(daemon_set)};
  const Json* container = kured_container(daemon_set);
  if (container == nullptr)
    return Error(Errc::decode, call.from +
                                   " has no container whose name, image or command has the word kured: name "
                                   "the DaemonSet of kured with -n NAMESPACE and --name NAME");
  auto words = words_of(*container, call.from);
  if (!words) return std::move(words).error();
  call.words = *std::move(words);
  call.variables = variables_of(member(*container, "env"));
  call.variable_sets = variable_sets_of(member(*container, "envFrom"));
  call.mounts = mounts_of(member(*container, "volumeMounts"), member(pod_spec_of(daemon_set), "volumes"));
  call.placement = placement_of(pod_spec_of(daemon_set), false);
  return call;
}

// The values of the chart.

// Returns the name of a flag as the chart writes it: lock-ttl is lockTtl.
std::string key_of(std::string_view flag) {
  std::string key;
  for (std::size_t i = 0; i < flag.size(); ++i)
    if (flag[i] == '-' && i + 1 < flag.size())
      key += static_cast<char>(flag[++i] - 'a' + 'A');
    else
      key += flag[i];
  return key;
}

// The chart sets these by itself.
bool is_of_release(std::string_view flag) {
  return flag == "ds-name" || flag == "ds-namespace" || flag == "node-id";
}

KuredCall call_of_values(const Json& values) {
  KuredCall call{.from = "the values of kured's chart"};
  const Json& configuration = member(values, "configuration");
  const Json& host_path = member(configuration, "useRebootSentinelHostPath");
  const bool mounts_sentinel = host_path.is_null() || !is_empty(host_path);
  std::vector<std::string> known = {"useRebootSentinelHostPath"};
  for (const KuredOption& option : kured_options()) {
    if (is_of_release(option.name)) continue;
    known.push_back(key_of(option.name));
    const Json& value = member(configuration, known.back());
    if (is_empty(value)) continue;
    if (option.name == "reboot-sentinel-command" && mounts_sentinel) {
      call.unused_values.push_back({"configuration." + known.back(), Outcome::decide,
                                    "kured looks for the file rebootSentinel: the chart passes this to kured only if "
                                    "useRebootSentinelHostPath is false; an older chart always did"});
      continue;
    }
    const std::string flag = "--" + std::string(option.name);
    if (value.is_structured())
      for (const Json& one : value) call.words.push_back(fmt::format("{}={}", flag, text_of(one)));
    else
      call.words.push_back(fmt::format("{}={}", flag, text_of(value)));
  }
  // With useRebootSentinelHostPath the chart mounts the directory of the file, so its path is that on the host.
  const std::string sentinel = text(configuration, "rebootSentinel");
  if (const std::size_t slash = sentinel.find_last_of('/'); mounts_sentinel && slash != std::string::npos && slash != 0)
    call.mounts.push_back({sentinel.substr(0, slash), sentinel.substr(0, slash)});
  if (configuration.is_object())
    for (const auto& [key, value] : configuration.items())
      if (!is_empty(value) && std::ranges::find(known, key) == known.end())
        call.unused_values.push_back(
            {"configuration." + printable(key), Outcome::unknown, "kured's chart has no such value", true});
  if (const Json& more = member(values, "extraArgs"); more.is_object())
    for (const auto& [key, value] : more.items())
      call.words.push_back(is_empty(value) ? fmt::format("--{}", key) : fmt::format("--{}={}", key, text_of(value)));
  call.variables = variables_of(member(values, "extraEnvVars"));
  for (KuredMount& mount : mounts_of(member(values, "volumeMounts"), member(values, "volumes")))
    call.mounts.push_back(std::move(mount));
  call.placement = placement_of(values, true);
  return call;
}

// The keys of the chart's values, and those that any chart may have.
constexpr std::string_view chart_keys[] = {"affinity",
                                           "configuration",
                                           "containerSecurityContext",
                                           "dsAnnotations",
                                           "extraArgs",
                                           "extraEnvVars",
                                           "fullnameOverride",
                                           "hostNetwork",
                                           "image",
                                           "initContainers",
                                           "livenessProbe",
                                           "maxUnavailable",
                                           "metrics",
                                           "nameOverride",
                                           "nodeSelector",
                                           "podAnnotations",
                                           "podLabels",
                                           "podSecurityPolicy",
                                           "priorityClassName",
                                           "rbac",
                                           "readinessProbe",
                                           "resources",
                                           "revisionHistoryLimit",
                                           "service",
                                           "serviceAccount",
                                           "tolerations",
                                           "updateStrategy",
                                           "volumeMounts",
                                           "volumes"};
// The last two are the titles that `helm get values` writes without -o yaml.
constexpr std::string_view keys_of_any_chart[] = {"global", "enabled", "USER-SUPPLIED VALUES", "COMPUTED VALUES"};

// Returns true if these may be the values of kured's chart, and not those of another one.
bool is_values(const Json& document) {
  if (!document.is_object() || document.contains("kind")) return false;
  if (document.contains("configuration")) return member(document, "configuration").is_object();
  if (const Json& more = member(document, "extraArgs"); more.is_object())
    for (const auto& [key, value] : more.items())
      if (find_kured_option(key) != nullptr) return true;
  bool any = false;
  for (const auto& [key, value] : document.items()) {
    const bool of_chart = std::ranges::find(chart_keys, key) != std::end(chart_keys);
    if (!of_chart && std::ranges::find(keys_of_any_chart, key) == std::end(keys_of_any_chart)) return false;
    any = any || of_chart;
  }
  return any;
}

// Returns the values of kured's chart, which may be a part of another one.
const Json& part_of_kured(const Json& values) {
  const Json& part = member(values, "kured");
  return is_values(part) && !values.contains("kind") ? part : values;
}

// Releases of the chart: a HelmRelease of Flux, an Application of Argo CD.

struct Release {
  std::string from;  // "HelmRelease flux-system/kured"
  std::string name;
  Json values;
  std::vector<KuredStray> unread;  // what may set values, too
};

// Returns true if a chart with this name is that of kured, or has it as a part. The names of what releases it count
// only if the values look like those of kured's chart.
bool releases_kured(const std::string& chart, const std::string& names, const Json& values) {
  if (chart.substr(chart.find_last_of('/') + 1) == "kured" || is_values(member(values, "kured"))) return true;
  return names_kured(names) && is_values(values);
}

void add_unread(Release& release, const Json& object, const std::string& path,
                std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (!is_empty(member(object, key)))
      release.unread.push_back(
          {fmt::format("{}.{}", path, key), Outcome::decide,
           "it was not read, and may change what kured gets: write that to the values, and read them again", true});
}

void add_flux_release(const Json& object, std::vector<Release>& releases) {
  const Json& spec = member(object, "spec");
  const Json& values = member(spec, "values");
  const std::string name = text(member(object, "metadata"), "name");
  std::string chart = text(member(member(spec, "chart"), "spec"), "chart");
  if (chart.empty()) chart = text(member(spec, "chartRef"), "name");
  if (!releases_kured(chart, chart + " " + name, values)) return;
  Release release{"HelmRelease " + name_of(object), name, part_of_kured(values), {}};
  add_unread(release, spec, "spec", {"valuesFrom", "postRenderers"});
  releases.push_back(std::move(release));
}

// Argo CD takes valuesObject, and values only without it.
Result<Json> values_of_source(const Json& source) {
  const Json& helm = member(source, "helm");
  if (const Json& object = member(helm, "valuesObject"); object.is_object()) return object;
  const std::string written = text(helm, "values");
  if (written.empty()) return Json();
  const auto converted = k8s::yaml_to_json(written);
  if (!converted) return converted.error();
  Json values = Json::parse(*converted, nullptr, false);
  if (!values.is_object() && !values.is_null()) return Error(Errc::decode, "they are not keys with values");
  return values;
}

Result<void> add_argo_release(const Json& object, std::vector<Release>& releases) {
  const Json& spec = member(object, "spec");
  std::vector<const Json*> sources{&member(spec, "source")};
  if (const Json& more = member(spec, "sources"); more.is_array())
    for (const Json& source : more) sources.push_back(&source);
  const std::string name = text(member(object, "metadata"), "name");
  for (const Json* source : sources) {
    const std::string chart = text(*source, "chart");
    const std::string names = fmt::format("{} {} {} {}", chart, text(*source, "path"), text(*source, "repoURL"), name);
    auto values = values_of_source(*source);
    if (!values && !names_kured(names)) continue;
    if (!values)
      return std::move(values).error().with_context(fmt::format("the values of Application {}", name_of(object)));
    if (!releases_kured(chart, names, *values)) continue;
    Release release{"Application " + name_of(object), name, part_of_kured(*values), {}};
    add_unread(release, member(*source, "helm"), "helm", {"parameters", "fileParameters", "valueFiles"});
    releases.push_back(std::move(release));
  }
  return {};
}

KuredCall call_of_release(Release release) {
  KuredCall call = call_of_values(release.values);
  call.from = std::move(release.from);
  for (KuredStray& unread : release.unread) call.unused_values.push_back(std::move(unread));
  return call;
}

// What a text has of kured.
struct Found {
  std::vector<const Json*> daemon_sets;
  std::vector<Release> releases;
  std::string no_release;        // why something that may be a release is none of kured's chart; may be empty
  const Json* values = nullptr;  // of the chart, as a document
};

void not_released(const Json& object, std::string_view way_out, Found& found) {
  if (!found.no_release.empty() && !names_kured(name_of(object))) return;
  found.no_release =
      fmt::format("{} {}: it has no values of kured's chart: give {} as a file of its own, or the manifest of kured",
                  text(object, "kind"), name_of(object), way_out);
}

// Adds what the document has of kured, and what the objects in its lists have.
Result<void> collect(const Json& document, int depth, Found& found) {
  const std::string kind = text(document, "kind");
  if (kind == "DaemonSet" && kured_container(document) != nullptr) found.daemon_sets.push_back(&document);
  const std::size_t before = found.releases.size();
  if (kind == "HelmRelease") {
    add_flux_release(document, found.releases);
    if (found.releases.size() == before) not_released(document, "spec.values of it", found);
  } else if (kind == "Application") {
    if (auto added = add_argo_release(document, found.releases); !added) return added;
    if (found.releases.size() == before) {
      const bool by_helm = member(member(member(document, "spec"), "source"), "helm").is_object();
      not_released(document, by_helm ? "spec.source.helm.values of it" : "the values that its source has", found);
    }
  } else if (kind == "ApplicationSet") {
    not_released(document, "the values of its template", found);
  }
  const Json& items = member(document, "items");
  if (!items.is_array() || depth == deepest_list) return {};
  for (const Json& item : items)
    if (auto added = collect(item, depth + 1, found); !added) return added;
  return {};
}

Result<std::vector<Json>> documents_of(std::string_view text) {
  std::vector<Json> documents;
  // Large lists of objects are usually JSON, and the YAML reader is slow.
  if (Json json = Json::parse(text, nullptr, false); !json.is_discarded()) {
    documents.push_back(std::move(json));
    return documents;
  }
  auto converted = k8s::yaml_documents_to_json(text);
  if (!converted) return std::move(converted).error();
  for (const std::string& document : *converted) {
    documents.push_back(Json::parse(document, nullptr, false));
    if (documents.back().is_discarded()) return Error(Errc::decode, "it is not UTF-8");
  }
  return documents;
}

// Returns which of several objects has this name. `what` says what they are.
Result<std::size_t> only_with(std::string_view name, const std::vector<std::string>& names,
                              const std::vector<std::string>& shown, std::string_view what) {
  if (names.size() == 1) return 0;
  if (std::ranges::count(names, name) == 1)
    return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  return Error(Errc::decode, fmt::format("it has several {}, and --name {} does not choose one of them: {}", what,
                                         printable(name), joined(shown, ", ")));
}

}  // namespace

Result<KuredCall> read_kured_manifest(std::string_view manifest, std::string_view name) {
  const auto documents = documents_of(manifest);
  if (!documents) return documents.error();
  Found found;
  for (const Json& document : *documents) {
    if (auto added = collect(document, 0, found); !added) return added.error();
    if (const Json& part = part_of_kured(document); is_values(part)) found.values = &part;
  }
  std::vector<std::string> names, shown;
  if (!found.daemon_sets.empty()) {
    for (const Json* daemon_set : found.daemon_sets) {
      names.push_back(text(member(*daemon_set, "metadata"), "name"));
      shown.push_back(name_of(*daemon_set));
    }
    const auto chosen = only_with(name, names, shown, "DaemonSets of kured");
    if (!chosen) return chosen.error();
    return call_of(*found.daemon_sets[*chosen]);
  }
  if (!found.releases.empty()) {
    for (const Release& release : found.releases) {
      names.push_back(release.name);
      shown.push_back(release.from);
    }
    const auto chosen = only_with(name, names, shown, "releases of kured's chart");
    if (!chosen) return chosen.error();
    return call_of_release(std::move(found.releases[*chosen]));
  }
  if (found.values != nullptr) return call_of_values(*found.values);
  if (!found.no_release.empty()) return Error(Errc::decode, found.no_release);
  return Error(Errc::decode,
               "it has no DaemonSet with a container of kured, and no values of kured's chart, such as configuration: "
               "give the manifest of kured, or the output of kubectl get daemonset -A -o yaml");
}

Result<KuredCall> read_kured_daemon_set(std::string_view json) {
  const Json daemon_set = Json::parse(json, nullptr, false);
  if (text(daemon_set, "kind") != "DaemonSet") return Error(Errc::decode, "the API server did not send a DaemonSet");
  return call_of(daemon_set);
}

}  // namespace haulout::cli
