#include "placement/room.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "base/text.hpp"
#include "placement/selector.hpp"

namespace haulout::placement {
namespace {

struct Suffix {
  std::string_view text;
  long double factor;
};

// The suffixes of apimachinery's resource.Quantity: binary, then decimal.
constexpr Suffix suffixes[] = {
    {"Ki", 1024.0L},
    {"Mi", 1048576.0L},
    {"Gi", 1073741824.0L},
    {"Ti", 1099511627776.0L},
    {"Pi", 1125899906842624.0L},
    {"Ei", 1152921504606846976.0L},
    {"n", 1e-9L},
    {"u", 1e-6L},
    {"m", 1e-3L},
    {"", 1.0L},
    {"k", 1e3L},
    {"M", 1e6L},
    {"G", 1e9L},
    {"T", 1e12L},
    {"P", 1e15L},
    {"E", 1e18L},
};

bool holds(const Json& expression, const std::string* value) {
  const std::string op = text(expression, "/operator");
  const Json& values = at(expression, "/values");
  if (op == "Exists") return value != nullptr;
  if (op == "DoesNotExist") return value == nullptr;
  const bool listed = value != nullptr && values.is_array() && std::count(values.begin(), values.end(), *value) > 0;
  if (op == "In") return listed;
  if (op == "NotIn") return !listed;
  if (value == nullptr || !values.is_array() || values.empty() || !values[0].is_string()) return false;
  const auto left = parse_number<std::int64_t>(*value);
  const auto right = parse_number<std::int64_t>(values[0].get<std::string>());
  if (!left || !right) return false;
  return op == "Gt" ? *left > *right : op == "Lt" && *left < *right;
}

// Evaluates one of nodeSelectorTerms: all its expressions must hold. A term without expressions matches nothing.
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

bool any_term_matches(const Json& terms, const Json& node) {
  return !terms.is_array() ||
         std::any_of(terms.begin(), terms.end(), [&](const Json& term) { return term_matches(term, node); });
}

}  // namespace

std::optional<std::int64_t> thousandths(std::string_view quantity) {
  long double value = 0;
  // parse_number() is not used, because a suffix may follow the number.
  const auto [stop, failure] = std::from_chars(quantity.data(), quantity.data() + quantity.size(), value);
  if (failure != std::errc()) return std::nullopt;
  const std::string_view rest = quantity.substr(static_cast<std::size_t>(stop - quantity.data()));
  for (const Suffix& suffix : suffixes) {
    if (suffix.text != rest) continue;
    // Decimal fractions are not exact in binary, so up to a billionth above a whole number counts as that number.
    const long double result = std::ceil(value * suffix.factor * 1000.0L - 1e-9L);
    if (!(std::fabs(result) < 9.2e18L)) return std::nullopt;
    return static_cast<std::int64_t>(result);
  }
  return std::nullopt;
}

namespace {

// The bound of requests and sums: amounts beyond it, in either direction, are clamped to it. The limits that a Node
// states are clamped to one less (limits_of()). It is so small that the sum of two amounts cannot overflow.
constexpr std::int64_t most_amount = std::numeric_limits<std::int64_t>::max() / 4;

std::int64_t saturated(std::int64_t amount) {
  return std::clamp(amount, -most_amount, most_amount);
}

std::optional<std::int64_t> read(const Json& quantity) {
  if (quantity.is_null()) return 0;
  if (quantity.is_string()) return thousandths(quantity.get<std::string>());
  return quantity.is_number() ? thousandths(quantity.dump()) : std::nullopt;
}

// Parses the requests of a container. An amount that cannot be parsed or is too large counts as `most_amount`, which is
// more than any node has.
Amounts requests(const Json& quantities) {
  Amounts result;
  if (!quantities.is_object()) return result;
  for (const auto& [resource, quantity] : quantities.items())
    result[resource] = saturated(read(quantity).value_or(most_amount));
  return result;
}

}  // namespace

void add(Amounts& to, const Amounts& more) {
  for (const auto& [resource, amount] : more) to[resource] = saturated(to[resource] + amount);
}

std::int64_t amount(const Amounts& of, const std::string& resource) {
  const auto found = of.find(resource);
  return found == of.end() ? 0 : found->second;
}

Amounts limits_of(const Json& node) {
  const Json& allocatable = at(node, "/status/allocatable");
  const Json& stated = allocatable.is_object() ? allocatable : at(node, "/status/capacity");
  Amounts result;
  if (!stated.is_object()) return result;
  // Clamps each amount to less than `most_amount`, so that no node can satisfy a request that could not be parsed.
  for (const auto& [resource, quantity] : stated.items())
    if (const auto value = read(quantity)) result[resource] = std::min(*value, most_amount - 1);
  return result;
}

Amounts requests_of(const Json& pod) {
  Amounts running;    // sum of the containers and the sidecars
  Amounts sidecars;   // sum of the init containers that keep running
  Amounts beginning;  // the largest request of an init container together with the sidecars before it
  for (const Json& container : at(pod, "/spec/containers"))
    add(running, requests(at(container, "/resources/requests")));
  for (const Json& container : at(pod, "/spec/initContainers")) {
    Amounts need = requests(at(container, "/resources/requests"));
    if (text(container, "/restartPolicy") == "Always") {
      add(sidecars, need);
      continue;
    }
    add(need, sidecars);
    for (const auto& [resource, most] : need) beginning[resource] = std::max(beginning[resource], most);
  }
  add(running, sidecars);
  for (const auto& [resource, need] : beginning) running[resource] = std::max(running[resource], need);
  for (const auto& [resource, need] : requests(at(pod, "/spec/resources/requests"))) running[resource] = need;
  add(running, requests(at(pod, "/spec/overhead")));
  for (const std::string& claimed : claimed_resources(pod)) running.erase(claimed);
  running["pods"] = 1000;
  return running;
}

bool tolerates_node(const Json& pod, const Json& node) {
  for (const Json& taint : at(node, "/spec/taints")) {
    const std::string effect = text(taint, "/effect");
    if (effect != "PreferNoSchedule" && !tolerates(pod, text(taint, "/key"), effect, text(taint, "/value")))
      return false;
  }
  return true;
}

bool wants_node(const Json& pod, const Json& node) {
  const Json& selector = at(pod, "/spec/nodeSelector");
  if (selector.is_object())
    for (const auto& [key, value] : selector.items()) {
      const auto has = label(node, key);
      if (!has || value != *has) return false;
    }
  return any_term_matches(
      at(pod, "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"), node);
}

bool reaches_node(const Json& volume, const Json& node) {
  return any_term_matches(at(volume, "/spec/nodeAffinity/required/nodeSelectorTerms"), node);
}

namespace {

bool has_host_port(const Json& pod) {
  for (const char* containers : {"/spec/containers", "/spec/initContainers"})
    for (const Json& container : at(pod, containers))
      for (const Json& port : at(container, "/ports"))
        if (number(port, "/hostPort") != 0) return true;
  return false;
}

// Returns true if the pod has a volume that may bind it to some nodes. All kinds of volumes count, except those that
// every node provides for any number of pods, and claims if the PersistentVolumes behind them are known.
bool has_bound_volume(const Json& pod, bool knows_volumes) {
  constexpr std::array everywhere = {"configMap", "downwardAPI", "emptyDir",  "gitRepo", "hostPath",
                                     "image",     "nfs",         "projected", "secret"};
  const Json& volumes = at(pod, "/spec/volumes");
  return std::any_of(volumes.begin(), volumes.end(), [&](const Json& volume) {
    if (knows_volumes && (volume.contains("persistentVolumeClaim") || volume.contains("ephemeral"))) return false;
    return std::none_of(everywhere.begin(), everywhere.end(), [&](const char* kind) { return volume.contains(kind); });
  });
}

bool hard_spread(const Json& pod) {
  const Json& constraints = at(pod, "/spec/topologySpreadConstraints");
  return std::any_of(constraints.begin(), constraints.end(),
                     [](const Json& constraint) { return text(constraint, "/whenUnsatisfiable") != "ScheduleAnyway"; });
}

}  // namespace

bool far_reaching(const Json& pod) {
  for (const Json& term : at(pod, "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution")) {
    const Json& namespaces = at(term, "/namespaceSelector");
    if (namespaces.is_object() && !namespaces.empty()) return true;
    if (!at(term, "/matchLabelKeys").empty() || !at(term, "/mismatchLabelKeys").empty()) return true;
  }
  return false;
}

bool compares_taints(const Json& pod) {
  const Json& tolerations = at(pod, "/spec/tolerations");
  return std::any_of(tolerations.begin(), tolerations.end(), [](const Json& toleration) {
    const std::string op = text(toleration, "/operator");
    return !op.empty() && op != "Equal" && op != "Exists";
  });
}

std::vector<std::string> not_weighed(const Json& pod, bool knows_volumes) {
  std::vector<std::string> result;
  const auto add = [&result](bool holds, const char* what) {
    if (holds) result.emplace_back(what);
  };
  add(has_bound_volume(pod, knows_volumes), "volumes");
  add(hard_spread(pod), "topology spread");
  add(!at(pod, "/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution").empty(), "pod affinity");
  add(far_reaching(pod), "anti-affinity with a namespaceSelector or with label keys");
  add(has_host_port(pod), "host ports");
  add(!at(pod, "/spec/resourceClaims").empty() || !claimed_resources(pod).empty(), "resource claims");
  add(has_scheduling_gates(pod), "scheduling gates");
  add(!foreign_scheduler(pod).empty(), "another scheduler");
  add(compares_taints(pod), "tolerations with operator Lt or Gt");
  return result;
}

namespace {

const Json& anti_affinity(const Json& pod) {
  return at(pod, "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution");
}

// Returns true if `term`, a term of `owner`'s anti-affinity, selects `other` or may select it: a namespaceSelector
// counts as one for all namespaces, and label keys are ignored (far_reaching()).
bool is_about(const Json& term, const Json& owner, const Json& other) {
  const Json& namespaces = at(term, "/namespaces");
  const bool everywhere = at(term, "/namespaceSelector").is_object();
  const bool here = namespaces.empty() ? ns_of(other) == ns_of(owner)
                                       : std::count(namespaces.begin(), namespaces.end(), ns_of(other)) > 0;
  return (everywhere || here) && Selector::from_object(at(term, "/labelSelector")).matches(other);
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

bool preempts(const Json& pod) {
  return text(pod, "/spec/preemptionPolicy") != "Never";
}

}  // namespace

Room::Room(const std::vector<Object>& nodes, Unstated unstated) : unstated_(unstated) {
  for (const Object& node : nodes) {
    Site site;
    set_node(site, node);
    by_name_.emplace(name_of(*node), sites_.size());
    fewest_.emplace(0, sites_.size());
    sites_.push_back(std::move(site));
  }
}

void Room::set_node(Site& site, const Object& node) const {
  site.node = node;
  site.limits = limits_of(*node);
  site.endless = site.limits.empty() && unstated_ == Unstated::no_end;
  // In a simulated cluster, a node whose status does not limit the number of pods can take any number.
  if (unstated_ == Unstated::no_end) site.limits.try_emplace("pods", most_amount);
}

void Room::close(const std::string& node) {
  const auto found = by_name_.find(node);
  if (found != by_name_.end()) sites_[found->second].closed = true;
}

void Room::open(const std::string& node) {
  const auto found = by_name_.find(node);
  if (found != by_name_.end()) sites_[found->second].closed = false;
}

void Room::count(Site& site, std::size_t pods) {
  const auto index = static_cast<std::size_t>(&site - sites_.data());
  fewest_.erase({site.pods, index});
  site.pods = pods;
  fewest_.emplace(pods, index);
}

void Room::put(const Object& pod, const std::string& node) {
  const auto found = by_name_.find(node);
  if (found == by_name_.end()) return;
  Site& site = sites_[found->second];
  count(site, site.pods + 1);
  if (pod_finished(*pod)) return;
  Occupant occupant{pod, site.endless ? Amounts() : requests_of(*pod), priority_of(*pod)};
  use(site, occupant.requests);
  site.occupants.push_back(std::move(occupant));
  if (!anti_affinity(*pod).empty()) apart_.emplace_back(pod, found->second);
}

void Room::use(Site& site, const Amounts& requests) {
  add(site.used, requests);
  for (const auto& [resource, requested] : requests)
    site.clamped = site.clamped || std::abs(amount(site.used, resource)) >= most_amount;
}

void Room::count_used(Site& site) {
  site.used.clear();
  site.clamped = false;
  for (const Occupant& occupant : site.occupants) use(site, occupant.requests);
}

void Room::take(const Object& pod, const std::string& node) {
  const auto found = by_name_.find(node);
  if (found == by_name_.end()) return;
  Site& site = sites_[found->second];
  count(site, site.pods - 1);
  const auto leaving = std::find_if(site.occupants.begin(), site.occupants.end(),
                                    [&](const Occupant& occupant) { return occupant.pod == pod; });
  if (leaving == site.occupants.end()) return;
  const Amounts requests = std::move(leaving->requests);
  site.occupants.erase(leaving);
  if (!anti_affinity(*pod).empty()) std::erase_if(apart_, [&](const auto& entry) { return entry.first == pod; });
  // Subtracting from a sum that was clamped would be wrong.
  if (site.clamped) return count_used(site);
  for (const auto& [resource, requested] : requests) site.used[resource] -= requested;
}

void Room::renew(const Object& before, const Object& after, const std::string& node) {
  const auto found = by_name_.find(node);
  if (found == by_name_.end()) return;
  for (Occupant& occupant : sites_[found->second].occupants)
    if (occupant.pod == before) occupant.pod = after;
  if (anti_affinity(*before).empty()) return;
  for (auto& [pod, site] : apart_)
    if (pod == before) pod = after;
}

void Room::renew(const Object& node) {
  const auto found = by_name_.find(name_of(*node));
  if (found == by_name_.end()) return;
  Site& site = sites_[found->second];
  const bool was_endless = site.endless;
  set_node(site, node);
  if (site.endless == was_endless) return;
  for (Occupant& occupant : site.occupants) occupant.requests = site.endless ? Amounts() : requests_of(*occupant.pod);
  count_used(site);
}

// The result must contain every node that could take the pod, except closed ones (close()); fit.cpp closes each
// cordoned node. So this function ignores anti-affinity, taints, spec.unschedulable and the Ready condition, because a
// scheduler other than kube-scheduler may not check these.
// Goes through the pods of a node (Counted::without_lower) only if the free capacity does not suffice: nodes may have
// thousands of pods.
Sites Room::candidates(const Json& pod) const {
  const Wish wish{pod, requests_of(pod), {}, {}};
  const auto suffices = [&](const Site& site) {
    return missing(wish, site, Counted::standing).empty() ||
           (preempts(pod) && missing(wish, site, Counted::without_lower).empty());
  };
  Sites result;
  result.reserve(sites_.size());
  for (const Site& site : sites_) result.push_back(!site.closed && wants_node(pod, *site.node) && suffices(site));
  return result;
}

void Room::reserve(const Json& pod, const Sites& sites) {
  const Amounts wanted = requests_of(pod);
  for (std::size_t i = 0; i < sites_.size(); ++i)
    if (sites[i]) add(sites_[i].reserved, wanted);
}

Room::Wish Room::wish_of(const Json& pod, const Site* spared) const {
  Wish wish{pod, requests_of(pod), {}, {}};
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

Amounts Room::used(const Json& pod, const Site& site, Counted counted) {
  if (counted == Counted::without_lower) {
    Amounts used;
    for (const Occupant& other : site.occupants)
      if (other.priority >= priority_of(pod)) add(used, other.requests);
    return used;
  }
  Amounts used = site.used;
  if (counted == Counted::reserved_too) add(used, site.reserved);
  return used;
}

std::vector<std::string> Room::missing(const Wish& wish, const Site& site, Counted counted) const {
  std::vector<std::string> result;
  if (site.endless) return result;
  const Amounts taken = used(wish.pod, site, counted);
  for (const auto& [resource, want] : wish.wanted) {
    // A resource that the Node does not list has the limit 0.
    if (want == 0 || amount(taken, resource) + want <= amount(site.limits, resource)) continue;
    result.push_back(resource == "pods" ? "Too many pods" : "Insufficient " + resource);
  }
  return result;
}

Room::Refusal Room::refused_by_node(const Json& pod, const Site& site) {
  const Json& node = *site.node;
  const bool cordoned =
      flag(node, "/spec/unschedulable") && !tolerates(pod, "node.kubernetes.io/unschedulable", "NoSchedule");
  if (site.closed || cordoned) return {"NodeUnschedulable", {"node(s) were unschedulable"}};
  if (terminating(node)) return {"NodeUnschedulable", {"node(s) were being deleted"}};
  // A node that is not Ready gets its taint only a moment after its condition, so the condition counts, too.
  if (!node_ready(node) || !tolerates_node(pod, node)) return {"TaintToleration", {"node(s) had untolerated taint(s)"}};
  if (!wants_node(pod, node)) return {"NodeAffinity", {"node(s) didn't match Pod's node affinity/selector"}};
  return {};
}

// Checks in the order of the scheduler's plugins, and returns the first refusal.
Room::Refusal Room::refusal(const Wish& wish, const Site& site, Counted counted) const {
  const Json& node = *site.node;
  if (Refusal refused = refused_by_node(wish.pod, site); !refused.plugin.empty()) return refused;
  std::vector<std::string> lacks = missing(wish, site, counted);
  if (!lacks.empty()) return {"NodeResourcesFit", std::move(lacks)};
  if (wish.volumes)
    for (const Object& volume : *wish.volumes)
      if (!reaches_node(*volume, node))
        return {"VolumeBinding", {"node(s) didn't match PersistentVolume's node affinity"}};
  if (any_label(wish.apart, node)) return {"InterPodAffinity", {"node(s) didn't match pod anti-affinity rules"}};
  if (any_label(wish.others, node))
    return {"InterPodAffinity", {"node(s) didn't satisfy existing pods anti-affinity rules"}};
  return {};
}

// Returns true if the pod would fit on the node after it has preempted all pods of lower priority there. `plugin` is
// the one that refused the node. Preemption can help only against a lack of resources or anti-affinity.
bool Room::by_preemption(const Wish& wish, const Site& site, std::string_view plugin) const {
  if (plugin != "NodeResourcesFit" && plugin != "InterPodAffinity") return false;
  const Json& pod = wish.pod;
  const bool lower = std::any_of(site.occupants.begin(), site.occupants.end(),
                                 [&](const Occupant& other) { return other.priority < priority_of(pod); });
  if (!lower || !preempts(pod)) return false;
  Wish alone = wish_of(pod, &site);
  alone.volumes = wish.volumes;
  return refusal(alone, site, Counted::without_lower).plugin.empty();
}

Place Room::find(const Json& pod, const std::string& preferred, const std::vector<Object>& volumes) const {
  Wish wish = wish_of(pod, nullptr);
  wish.volumes = &volumes;
  const auto fits = [&](std::size_t index) { return refusal(wish, sites_[index], Counted::standing).plugin.empty(); };
  if (const auto wanted = by_name_.find(preferred); wanted != by_name_.end() && fits(wanted->second))
    return {.node = preferred};
  for (const auto& [pods, index] : fewest_)
    if (fits(index)) return {.node = name_of(*sites_[index].node)};

  Place place;
  std::map<std::string, std::size_t> reasons;
  std::vector<std::pair<const Site*, std::string_view>> refusing;
  for (const Site& site : sites_) {
    const Refusal refused = refusal(wish, site, Counted::standing);
    place.plugins.emplace(refused.plugin);
    for (const std::string& reason : refused.reasons) ++reasons[reason];
    refusing.emplace_back(&site, refused.plugin);
  }
  // by_preemption() goes through the pods of the node again, and for anti-affinity through the pods of all nodes. So it
  // runs only if the pod fits on no node.
  const auto preempts = std::find_if(refusing.begin(), refusing.end(), [&](const auto& refused) {
    return by_preemption(wish, *refused.first, refused.second);
  });
  if (preempts != refusing.end()) place.preempts_on = name_of(*preempts->first->node);
  place.vague = (wish.vague && place.plugins.count("InterPodAffinity") != 0) ||
                (compares_taints(pod) && place.plugins.count("TaintToleration") != 0);
  std::vector<std::string> counted;
  counted.reserve(reasons.size());
  for (const auto& [reason, count] : reasons) counted.push_back(fmt::format("{} {}", count, reason));
  std::sort(counted.begin(), counted.end());  // kube-scheduler sorts the reasons
  place.message = fmt::format("0/{} nodes are available", sites_.size());
  for (std::size_t i = 0; i < counted.size(); ++i) place.message += (i == 0 ? ": " : ", ") + counted[i];
  place.message += '.';
  return place;
}

std::string Room::find_for_sure(const Json& pod) const {
  const Wish wish = wish_of(pod, nullptr);
  for (const auto& [pods, index] : fewest_)
    if (refusal(wish, sites_[index], Counted::reserved_too).plugin.empty()) return name_of(*sites_[index].node);
  return {};
}

Sites Room::admitting(const Json& pod) const {
  Sites result;
  result.reserve(sites_.size());
  for (const Site& site : sites_) result.push_back(refused_by_node(pod, site).plugin.empty());
  return result;
}

std::optional<std::size_t> Room::site_of(const std::string& node) const {
  const auto found = by_name_.find(node);
  return found == by_name_.end() ? std::nullopt : std::optional(found->second);
}

Amounts Room::free_for(const Json& pod, const Sites& sites) const {
  Amounts result;
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    if (!sites[i]) continue;
    const Amounts taken = used(pod, sites_[i], preempts(pod) ? Counted::without_lower : Counted::standing);
    for (const auto& [resource, limit] : sites_[i].limits)
      add(result, {{resource, std::max<std::int64_t>(0, limit - amount(taken, resource))}});
  }
  return result;
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

bool keep_apart(const Json& one, const Json& other) {
  const auto keeps_away = [](const Json& owner, const Json& about) {
    const Json& terms = anti_affinity(owner);
    return std::any_of(terms.begin(), terms.end(), [&](const Json& term) { return is_about(term, owner, about); });
  };
  return keeps_away(one, other) || keeps_away(other, one);
}

}  // namespace haulout::placement
