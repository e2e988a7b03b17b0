#include "sim/placement.hpp"

#include <fmt/format.h>

#include <charconv>
#include <set>

#include "sim/quantity.hpp"
#include "sim/selectors.hpp"

namespace haulout::sim {
namespace {

using Amounts = std::map<std::string, std::int64_t>;

void add(Amounts& to, const Amounts& more) {
  for (const auto& [resource, amount] : more) to[resource] += amount;
}

Amounts amounts(const Json& quantities) {
  Amounts result;
  if (!quantities.is_object()) return result;
  for (const auto& [resource, quantity] : quantities.items()) {
    const auto value = quantity.is_string()           ? thousandths(quantity.get<std::string>())
                       : quantity.is_number_integer() ? std::optional(quantity.get<std::int64_t>() * 1000)
                                                      : std::nullopt;
    if (value) result[resource] = *value;
  }
  return result;
}

Amounts allocatable(const Json& node) {
  const Json& stated = at(node, "/status/allocatable");
  return amounts(stated.is_object() ? stated : at(node, "/status/capacity"));
}

std::optional<std::int64_t> whole(const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  return failure == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

bool holds(const Json& expression, const std::string* value) {
  const std::string op = text(expression, "/operator");
  const Json& values = at(expression, "/values");
  if (op == "Exists") return value != nullptr;
  if (op == "DoesNotExist") return value == nullptr;
  const bool listed = value != nullptr && values.is_array() && std::count(values.begin(), values.end(), *value) > 0;
  if (op == "In") return listed;
  if (op == "NotIn") return !listed;
  if (value == nullptr || !values.is_array() || values.empty() || !values[0].is_string()) return false;
  const auto left = whole(*value), right = whole(values[0].get<std::string>());
  if (!left || !right) return false;
  return op == "Gt" ? *left > *right : op == "Lt" && *left < *right;
}

// One of nodeSelectorTerms: all of its expressions hold. A term without any matches nothing.
bool term_matches(const Json& term, const Json& node) {
  const Json& expressions = at(term, "/matchExpressions");
  const Json& fields = at(term, "/matchFields");
  if (expressions.empty() && fields.empty()) return false;
  for (const Json& expression : expressions) {
    const auto value = label(node, text(expression, "/key"));
    if (!holds(expression, value ? &*value : nullptr)) return false;
  }
  const std::string name = name_of(node);
  for (const Json& field : fields)
    if (text(field, "/key") != "metadata.name" || !holds(field, &name)) return false;
  return true;
}

const Json& anti_affinity(const Json& pod) {
  return at(pod, "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution");
}

// Whether a term of `owner`'s anti-affinity is about `other`.
bool is_about(const Json& term, const Json& owner, const Json& other) {
  const Json& namespaces = at(term, "/namespaces");
  const bool everywhere = at(term, "/namespaceSelector").is_object();
  const bool here = namespaces.empty() ? ns_of(other) == ns_of(owner)
                                       : std::count(namespaces.begin(), namespaces.end(), ns_of(other)) > 0;
  return (everywhere || here) && Selector::from_object(at(term, "/labelSelector")).matches(other);
}

// What stands where, as far as one pod's placement needs it.
class Surroundings {
 public:
  Surroundings(const Json& pod, const std::vector<Object>& nodes, const std::vector<Object>& pods,
               const std::map<std::string, std::string>& under_way) {
    for (const Object& node : nodes) by_name_.emplace(name_of(*node), Place{node.get(), 0, {}});
    for (const Object& other : pods) {
      std::string node = text(*other, "/spec/nodeName");
      if (node.empty()) {
        const auto chosen = under_way.find(uid_of(*other));
        if (chosen != under_way.end()) node = chosen->second;
      }
      const auto place = by_name_.find(node);
      if (place == by_name_.end()) continue;
      ++place->second.pods;
      if (pod_finished(*other)) continue;
      if (!allocatable(*place->second.node).empty()) add(place->second.used, requests_of(*other));
      keep_apart(pod, *other, *place->second.node);
    }
  }

  std::size_t pods_on(const Json& node) const { return by_name_.at(name_of(node)).pods; }

  // The resource that is short there; empty: none.
  std::string short_of(const Json& node, const Amounts& wanted) const {
    const Amounts& used = by_name_.at(name_of(node)).used;
    const Amounts limits = allocatable(node);
    if (limits.empty()) return {};
    for (const auto& [resource, want] : wanted) {
      const auto limit = limits.find(resource);
      const auto taken = used.find(resource);
      // What the node does not state it does not have; but every node has some pods.
      if (want == 0 || (limit == limits.end() && resource == "pods")) continue;
      if (limit == limits.end() || (taken == used.end() ? 0 : taken->second) + want > limit->second) return resource;
    }
    return {};
  }

  bool kept_apart(const Json& node) const {
    return std::any_of(taken_.begin(), taken_.end(), [&](const auto& domain) {
      const auto value = label(node, domain.first);
      return value && *value == domain.second;
    });
  }

 private:
  struct Place {
    const Json* node;
    std::size_t pods;
    Amounts used;
  };

  void keep_apart(const Json& pod, const Json& other, const Json& node) {
    const auto add_terms = [&](const Json& owner, const Json& about) {
      for (const Json& term : anti_affinity(owner)) {
        const std::string key = text(term, "/topologyKey");
        const auto value = label(node, key);
        if (value && is_about(term, owner, about)) taken_.emplace(key, *value);
      }
    };
    add_terms(pod, other);
    add_terms(other, pod);
  }

  std::map<std::string, Place> by_name_;
  std::set<std::pair<std::string, std::string>> taken_;  // label and value: domains where it may not go
};

std::string untolerated(const Json& pod, const Json& node) {
  for (const Json& taint : at(node, "/spec/taints")) {
    const std::string effect = text(taint, "/effect");
    const std::string key = text(taint, "/key");
    const std::string value = text(taint, "/value");
    if (effect == "PreferNoSchedule" || tolerates(pod, key, effect, value)) continue;
    return fmt::format("node(s) had untolerated taint {{{}: {}}}", key, value);
  }
  return {};
}

// Why the pod cannot go there; empty when it can.
std::string misfit(const Json& pod, const Json& node, const Amounts& wanted, const Surroundings& around) {
  if (flag(node, "/spec/unschedulable") && !tolerates(pod, "node.kubernetes.io/unschedulable", "NoSchedule"))
    return "node(s) were unschedulable";
  if (terminating(node)) return "node(s) were being deleted";
  if (!node_ready(node)) return "node(s) had untolerated taint {node.kubernetes.io/not-ready: }";
  std::string taint = untolerated(pod, node);
  if (!taint.empty()) return taint;
  if (!wants_node(pod, node)) return "node(s) didn't match Pod's node affinity/selector";
  const std::string missing = around.short_of(node, wanted);
  if (missing == "pods") return "Too many pods";
  if (!missing.empty()) return "Insufficient " + missing;
  if (around.kept_apart(node)) return "node(s) didn't match pod anti-affinity rules";
  return {};
}

}  // namespace

Amounts requests_of(const Json& pod) {
  Amounts running;    // containers, and sidecars
  Amounts sidecars;   // init containers that stay
  Amounts beginning;  // the largest need of any init container together with the sidecars before it
  for (const Json& container : at(pod, "/spec/containers")) add(running, amounts(at(container, "/resources/requests")));
  for (const Json& container : at(pod, "/spec/initContainers")) {
    Amounts need = amounts(at(container, "/resources/requests"));
    if (text(container, "/restartPolicy") == "Always") {
      add(sidecars, need);
      continue;
    }
    add(need, sidecars);
    for (const auto& [resource, amount] : need) beginning[resource] = std::max(beginning[resource], amount);
  }
  add(running, sidecars);
  for (const auto& [resource, amount] : beginning) running[resource] = std::max(running[resource], amount);
  add(running, amounts(at(pod, "/spec/overhead")));
  running["pods"] = 1000;
  return running;
}

bool tolerates_node(const Json& pod, const Json& node) {
  return untolerated(pod, node).empty();
}

bool wants_node(const Json& pod, const Json& node) {
  const Json& selector = at(pod, "/spec/nodeSelector");
  if (selector.is_object())
    for (const auto& [key, value] : selector.items()) {
      const auto has = label(node, key);
      if (!has || value != *has) return false;
    }
  const Json& terms =
      at(pod, "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
  return !terms.is_array() ||
         std::any_of(terms.begin(), terms.end(), [&](const Json& term) { return term_matches(term, node); });
}

Placement place(const Json& pod, const std::vector<Object>& nodes, const std::vector<Object>& pods,
                const std::map<std::string, std::string>& under_way) {
  const Surroundings around(pod, nodes, pods, under_way);
  const Amounts wanted = requests_of(pod);
  const std::string preferred = annotation(pod, "sim.haulout.dev/prefers-node");
  std::map<std::string, std::size_t> reasons;
  const Json* best = nullptr;
  for (const Object& node : nodes) {
    const std::string reason = misfit(pod, *node, wanted, around);
    if (!reason.empty()) {
      ++reasons[reason];
      continue;
    }
    if (name_of(*node) == preferred) return {preferred, ""};
    if (best == nullptr || around.pods_on(*node) < around.pods_on(*best)) best = node.get();
  }
  if (best != nullptr) return {name_of(*best), ""};
  std::string message = fmt::format("0/{} nodes are available", nodes.size());
  const char* separator = ": ";
  for (const auto& [reason, count] : reasons) {
    message += fmt::format("{}{} {}", separator, count, reason);
    separator = ", ";
  }
  return {"", message + "."};
}

}  // namespace haulout::sim
