// PodDisruptionBudgets: the struct, its place in the API and its decoder. Pure.
#pragma once

#include "k8s/label_selector.hpp"
#include "k8s/pod.hpp"

namespace haulout::k8s {

struct PodDisruptionBudget {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::int64_t generation = 0;
  std::int64_t observed_generation = 0;
  std::optional<LabelSelector> selector;  // policy/v1: absent matches nothing, empty matches everything
  std::string min_available;              // as written: "1", "50%" or empty
  std::string max_unavailable;
  bool always_allow_unhealthy = false;  // unhealthyPodEvictionPolicy: AlwaysAllow
  std::int32_t disruptions_allowed = 0;
  std::int32_t current_healthy = 0;
  std::int32_t desired_healthy = 0;
  std::int32_t expected_pods = 0;
  // Pods whose eviction the server has allowed and whose deletion the disruption controller has not seen yet: name →
  // time of the eviction. The controller counts them as deleted for two minutes.
  std::map<std::string, std::optional<WallTime>> disrupted_pods;
  std::string condition_reason;  // reason of the condition DisruptionAllowed
  std::string condition_message;
  // The tool that would undo a change of this budget: the label app.kubernetes.io/managed-by, or the release that Helm
  // records in an annotation. Empty if neither is set.
  std::string managed_by;

  std::string key() const { return ns + "/" + name; }
  bool selects(const Pod& pod) const { return pod.ns == ns && selector && selector->matches(pod.labels); }
  bool operator==(const PodDisruptionBudget&) const = default;
};

namespace codec::budget {

// Limit for the keys and values of a selector, in bytes. A budget with a longer selector is read as one without a
// selector. Then only the API server knows which pods the budget selects.
inline constexpr std::size_t longest_selector = 16 * 1024;

inline std::size_t text_of(const std::vector<LabelSelector::Requirement>& requirements) {
  std::size_t bytes = 0;
  for (const auto& requirement : requirements) {
    bytes += requirement.key.size();
    for (const std::string& value : requirement.values) bytes += value.size();
  }
  return bytes;
}

inline LabelSelector::Operator operator_of(const std::string& text, bool& known) {
  using Operator = LabelSelector::Operator;
  if (text == "In") return Operator::in;
  if (text == "NotIn") return Operator::not_in;
  if (text == "Exists") return Operator::exists;
  known = known && text == "DoesNotExist";
  return Operator::does_not_exist;
}

// Reads the selector. Returns nullopt if there is none, if it is too long, or if it has an unknown operator. Haulout
// then finds no pods that the budget selects. The eviction API, too, skips a budget with an unknown operator.
inline std::optional<LabelSelector> read_selector(const Object& spec) {
  if (!spec.has("selector")) return std::nullopt;
  const auto selector = spec.object("selector");
  std::vector<LabelSelector::Requirement> requirements;
  bool known = true;
  for (auto& [key, value] : selector.strings("matchLabels")) {
    requirements.push_back({key, LabelSelector::Operator::in, {value}});
  }
  selector.each("matchExpressions", [&](const Object& expression) {
    const auto op = operator_of(expression.string("operator"), known);
    requirements.push_back({expression.string("key"), op, expression.string_list("values")});
  });
  if (!known || text_of(requirements) > longest_selector) return std::nullopt;
  return LabelSelector(std::move(requirements));
}

}  // namespace codec::budget

template <>
struct Kind<PodDisruptionBudget> {
  static constexpr std::string_view name = "PodDisruptionBudget";
  static constexpr Api api{"policy/v1", "poddisruptionbudgets", Scope::namespaced,
                           Names::ours, "PodDisruptionBudget",  "PodDisruptionBudgets"};
  static constexpr ListBudget budget{100'000, 0, megabytes(16), kilobytes(1)};
  static constexpr std::array<std::string_view, 1> dropped = {"managedFields"};

  // Its outline: the identity and the selector.
  static void read_outline(const codec::Object& json, PodDisruptionBudget& pdb) {
    codec::read_identity(json.object("metadata"), pdb);
    pdb.selector = codec::budget::read_selector(json.object("spec"));
  }
  static void read(const codec::Object& json, PodDisruptionBudget& pdb) {
    read_outline(json, pdb);
    const auto metadata = json.object("metadata");
    pdb.generation = metadata.integer("generation").value_or(0);
    pdb.managed_by = metadata.object("labels").string("app.kubernetes.io/managed-by");
    if (const auto release = metadata.object("annotations").string("meta.helm.sh/release-name"); !release.empty())
      pdb.managed_by = "Helm, release " + release;
    const auto spec = json.object("spec");
    pdb.min_available = spec.int_or_string("minAvailable");
    pdb.max_unavailable = spec.int_or_string("maxUnavailable");
    pdb.always_allow_unhealthy = spec.string("unhealthyPodEvictionPolicy") == "AlwaysAllow";
    const auto status = json.object("status");
    pdb.observed_generation = status.integer("observedGeneration").value_or(0);
    pdb.disruptions_allowed = status.integer32("disruptionsAllowed");
    pdb.current_healthy = status.integer32("currentHealthy");
    pdb.desired_healthy = status.integer32("desiredHealthy");
    pdb.expected_pods = status.integer32("expectedPods");
    status.members("disruptedPods", [&](std::string_view name, std::optional<std::string_view> text) {
      const auto when = text ? parse_time(*text) : Result<WallTime>(WallTime{});
      pdb.disrupted_pods.emplace(name, text && when ? std::optional(*when) : std::nullopt);
    });
    status.each("conditions", [&](const codec::Object& condition) {
      if (condition.string("type") != "DisruptionAllowed") return;
      pdb.condition_reason = condition.string("reason");
      pdb.condition_message = condition.string("message");
    });
  }
  static std::size_t text_in(const PodDisruptionBudget& pdb) {
    return pdb.condition_message.size() + (pdb.selector ? codec::budget::text_of(pdb.selector->requirements()) : 0);
  }
};

}  // namespace haulout::k8s
