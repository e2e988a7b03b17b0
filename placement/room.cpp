#include "placement/room.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "placement/quantity.hpp"
#include "placement/selector.hpp"

namespace haulout::placement {
namespace {

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

bool untolerated(const Json& pod, const Json& node) {
  for (const Json& taint : at(node, "/spec/taints")) {
    const std::string effect = text(taint, "/effect");
    if (effect != "PreferNoSchedule" && !tolerates(pod, text(taint, "/key"), effect, text(taint, "/value")))
      return true;
  }
  return false;
}

std::int64_t amount(const Amounts& of, const std::string& resource) {
  const auto found = of.find(resource);
  return found == of.end() ? 0 : found->second;
}

bool any_label(const std::set<std::pair<std::string, std::string>>& domains, const Json& node) {
  return std::any_of(domains.begin(), domains.end(), [&](const auto& domain) {
    const auto value = label(node, domain.first);
    return value && *value == domain.second;
  });
}

std::int64_t priority_of(const Json& pod) {
  return number(pod, "/spec/priority");
}

}  // namespace

Room::Room(const std::vector<Object>& nodes, Unstated unstated) {
  for (const Object& node : nodes) {
    Site site;
    site.node = node;
    site.limits = allocatable(*node);
    site.endless = site.limits.empty() && unstated == Unstated::no_end;
    // Every node has some pods, in a cluster that is simulated without saying how many.
    if (unstated == Unstated::no_end) site.limits.try_emplace("pods", std::numeric_limits<std::int64_t>::max());
    by_name_.emplace(name_of(*node), sites_.size());
    sites_.push_back(std::move(site));
  }
}

void Room::close(const std::string& node) {
  const auto found = by_name_.find(node);
  if (found != by_name_.end()) sites_[found->second].closed = true;
}

void Room::put(const Object& pod, const std::string& node) {
  const auto found = by_name_.find(node);
  if (found == by_name_.end()) return;
  Site& site = sites_[found->second];
  ++site.pods;
  if (pod_finished(*pod)) return;
  Occupant occupant{pod, site.endless ? Amounts() : requests_of(*pod), priority_of(*pod)};
  add(site.used, occupant.requests);
  site.occupants.push_back(std::move(occupant));
  if (!anti_affinity(*pod).empty()) apart_.emplace_back(pod, found->second);
}

Room::Wish Room::wish_of(const Json& pod, const Site* spared) const {
  Wish wish{pod, requests_of(pod), {}, {}, false};
  const auto counts = [&](const Json& other, const Site& site) {
    return &site != spared || priority_of(other) >= priority_of(pod);
  };
  const auto add_terms = [&wish](const Json& owner, const Json& about, const Json& node, Domains& domains) {
    for (const Json& term : anti_affinity(owner)) {
      const std::string key = text(term, "/topologyKey");
      const auto value = label(node, key);
      if (!value || !is_about(term, owner, about)) continue;
      domains.emplace(key, *value);
      wish.vague = wish.vague || far_reaching(owner);
    }
  };
  if (!anti_affinity(pod).empty())
    for (const Site& site : sites_)
      for (const Occupant& other : site.occupants)
        if (counts(*other.pod, site)) add_terms(pod, *other.pod, *site.node, wish.apart);
  for (const auto& [other, index] : apart_)
    if (counts(*other, sites_[index])) add_terms(*other, pod, *sites_[index].node, wish.others);
  return wish;
}

// In the order of the scheduler's plugins, the first that says no.
Room::Refusal Room::refusal(const Wish& wish, const Site& site, bool spared) const {
  const Json& node = *site.node;
  const Json& pod = wish.pod;
  const bool cordoned =
      flag(node, "/spec/unschedulable") && !tolerates(pod, "node.kubernetes.io/unschedulable", "NoSchedule");
  if (site.closed || cordoned) return {"NodeUnschedulable", {"node(s) were unschedulable"}};
  if (terminating(node)) return {"NodeUnschedulable", {"node(s) were being deleted"}};
  // The taint of a node that is not Ready comes a moment after its condition.
  if (!node_ready(node) || untolerated(pod, node)) return {"TaintToleration", {"node(s) had untolerated taint(s)"}};
  if (!wants_node(pod, node)) return {"NodeAffinity", {"node(s) didn't match Pod's node affinity/selector"}};
  if (!site.endless) {
    Amounts used = site.used;
    if (spared)
      for (const Occupant& other : site.occupants)
        if (other.priority < priority_of(pod))
          for (const auto& [resource, taken] : other.requests) used[resource] -= taken;
    std::vector<std::string> missing;
    for (const auto& [resource, want] : wish.wanted) {
      // What the node does not state it does not have.
      if (want == 0 || amount(used, resource) + want <= amount(site.limits, resource)) continue;
      missing.push_back(resource == "pods" ? "Too many pods" : "Insufficient " + resource);
    }
    if (!missing.empty()) return {"NodeResourcesFit", std::move(missing)};
  }
  if (any_label(wish.apart, node)) return {"InterPodAffinity", {"node(s) didn't match pod anti-affinity rules"}};
  if (any_label(wish.others, node))
    return {"InterPodAffinity", {"node(s) didn't satisfy existing pods anti-affinity rules"}};
  return {};
}

// What preemption can change is what pods of lower priority take.
bool Room::by_preemption(const Json& pod, const Site& site, std::string_view plugin) const {
  if (plugin != "NodeResourcesFit" && plugin != "InterPodAffinity") return false;
  const bool lower = std::any_of(site.occupants.begin(), site.occupants.end(),
                                 [&](const Occupant& other) { return other.priority < priority_of(pod); });
  return lower && text(pod, "/spec/preemptionPolicy") != "Never" &&
         refusal(wish_of(pod, &site), site, true).plugin.empty();
}

Place Room::find(const Json& pod, const std::string& preferred) const {
  const Wish wish = wish_of(pod, nullptr);
  Place place;
  std::map<std::string, std::size_t> reasons;
  const Site* best = nullptr;
  for (const Site& site : sites_) {
    const Refusal refused = refusal(wish, site, false);
    if (refused.plugin.empty()) {
      if (name_of(*site.node) == preferred) return {preferred, {}, {}, false, false};
      if (best == nullptr || site.pods < best->pods) best = &site;
      continue;
    }
    place.plugins.emplace(refused.plugin);
    for (const std::string& reason : refused.reasons) ++reasons[reason];
    place.needs_preemption = place.needs_preemption || by_preemption(pod, site, refused.plugin);
  }
  if (best != nullptr) return {name_of(*best->node), {}, {}, false, false};
  place.vague = (wish.vague && place.plugins.count("InterPodAffinity") != 0) ||
                (compares_taints(pod) && place.plugins.count("TaintToleration") != 0);
  std::vector<std::string> counted;
  counted.reserve(reasons.size());
  for (const auto& [reason, count] : reasons) counted.push_back(fmt::format("{} {}", count, reason));
  std::sort(counted.begin(), counted.end());  // as the scheduler has them
  place.message = fmt::format("0/{} nodes are available", sites_.size());
  for (std::size_t i = 0; i < counted.size(); ++i) place.message += (i == 0 ? ": " : ", ") + counted[i];
  place.message += '.';
  return place;
}

double Room::share(const Json& pod) const {
  double largest = 0;
  for (const auto& [resource, want] : requests_of(pod)) {
    if (resource == "pods" || want == 0) continue;
    std::int64_t most = 0;
    for (const Site& site : sites_) most = std::max(most, amount(site.limits, resource));
    const double share = most == 0 ? 1 : static_cast<double>(want) / static_cast<double>(most);
    largest = std::max(largest, share);
  }
  return largest;
}

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
    for (const auto& [resource, most] : need) beginning[resource] = std::max(beginning[resource], most);
  }
  add(running, sidecars);
  for (const auto& [resource, need] : beginning) running[resource] = std::max(running[resource], need);
  for (const auto& [resource, need] : amounts(at(pod, "/spec/resources/requests"))) running[resource] = need;
  add(running, amounts(at(pod, "/spec/overhead")));
  running["pods"] = 1000;
  return running;
}

bool tolerates_node(const Json& pod, const Json& node) {
  return !untolerated(pod, node);
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

}  // namespace haulout::placement
