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
    if (value.is_array())
      for (const std::string& one : texts(value)) call.words.push_back(fmt::format("{}={}", flag, one));
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

bool is_values(const Json& document) {
  return document.is_object() && !document.contains("kind") && member(document, "configuration").is_object();
}

// Adds the objects of a document that may be meant, and those in its lists.
void collect(const Json& document, int depth, std::vector<const Json*>& daemon_sets) {
  if (text(document, "kind") == "DaemonSet" && kured_container(document) != nullptr) daemon_sets.push_back(&document);
  const Json& items = member(document, "items");
  if (!items.is_array() || depth == deepest_list) return;
  for (const Json& item : items) collect(item, depth + 1, daemon_sets);
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

}  // namespace

Result<KuredCall> read_kured_manifest(std::string_view manifest, std::string_view name) {
  const auto documents = documents_of(manifest);
  if (!documents) return documents.error();
  std::vector<const Json*> daemon_sets;
  const Json* values = nullptr;
  for (const Json& document : *documents) {
    collect(document, 0, daemon_sets);
    if (is_values(document)) values = &document;
    // The chart may be a part of another one.
    if (const Json& part = member(document, "kured"); !document.contains("kind") && is_values(part)) values = &part;
  }
  if (daemon_sets.empty() && values != nullptr) return call_of_values(*values);
  if (daemon_sets.empty())
    return Error(Errc::decode,
                 "it has no DaemonSet with a container of kured, and no values of kured's chart (a key configuration): "
                 "give the manifest of kured, or the output of kubectl get daemonset -A -o yaml");
  if (daemon_sets.size() == 1) return call_of(*daemon_sets.front());
  std::vector<std::string> names;
  std::vector<const Json*> named;
  for (const Json* daemon_set : daemon_sets) {
    names.push_back(name_of(*daemon_set));
    if (text(member(*daemon_set, "metadata"), "name") == name) named.push_back(daemon_set);
  }
  if (named.size() == 1) return call_of(*named.front());
  return Error(Errc::decode,
               fmt::format("it has several DaemonSets of kured, and --name {} does not choose one of them: "
                           "{}",
                           printable(name), joined(names, ", ")));
}

Result<KuredCall> read_kured_daemon_set(std::string_view json) {
  const Json daemon_set = Json::parse(json, nullptr, false);
  if (text(daemon_set, "kind") != "DaemonSet") return Error(Errc::decode, "the API server did not send a DaemonSet");
  return call_of(daemon_set);
}

}  // namespace haulout::cli
