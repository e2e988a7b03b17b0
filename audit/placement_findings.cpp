#include <fmt/format.h>
#include <algorithm>
#include <set>

#include "audit/findings.hpp"
#include "audit/words.hpp"
#include "drain/controller_book.hpp"
#include "drain/pod_claims.hpp"
#include "k8s/codec.hpp"
#include "placement/room.hpp"
#include "sim/json_text.hpp"
#include "sim/volumes.hpp"

namespace haulout::audit {
namespace {

using Pods = std::vector<std::size_t>;
using sim::Json;

constexpr const char* hostname_label = "kubernetes.io/hostname";

// Returns true if the pod gets a replacement when it is evicted.
bool is_replaced(const WorldPod& pod) {
  return pod.leaves() && pod.pod.controller && !drain::is_daemon_pod(pod.pod) && !pod.pod.node_name.empty();
}

// Finds the nodes that a pod's node selector and required node affinity accept, through an index of the nodes.
class NodeChoice {
 public:
  explicit NodeChoice(const World& world) : world_(world) {
    for (std::size_t i = 0; i < world.nodes.size(); ++i) {
      names_[sim::name_of(*world.nodes[i])] = {i};
      const Json& labels = sim::at(*world.nodes[i], "/metadata/labels");
      if (!labels.is_object()) continue;
      for (const auto& [key, value] : labels.items())
        if (value.is_string()) labels_[key + '=' + value.get<std::string>()].push_back(i);
    }
  }

  // Returns the name of the only node that accepts the pod; empty if several or none do.
  std::string only_node(const Json& pod) {
    const auto narrowed = candidates(pod);
    const Json& affinity = sim::at(pod, "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
    const Json& selector = sim::at(pod, "/spec/nodeSelector");
    // Where there is only one node, nothing else could keep a pod from the others.
    if (world_.nodes.size() < 2 || (affinity.empty() && selector.empty())) return {};
    if (narrowed) return only_of(pod, *narrowed);
    // The answer is the same for all pods with the same conditions.
    const auto [known, is_new] = answers_.try_emplace(sim::json_text(selector) + sim::json_text(affinity));
    if (is_new) {
      Pods all(world_.nodes.size());
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
      known->second = only_of(pod, all);
    }
    return known->second;
  }

 private:
  using Index = std::map<std::string, Pods>;

  static const Pods& in(const Index& index, const std::string& key) {
    static const Pods none;
    const auto found = index.find(key);
    return found == index.end() ? none : found->second;
  }

  std::string only_of(const Json& pod, const Pods& nodes) const {
    std::string only;
    for (const std::size_t index : nodes) {
      if (!placement::wants_node(pod, *world_.nodes[index])) continue;
      if (!only.empty()) return {};
      only = sim::name_of(*world_.nodes[index]);
    }
    return only;
  }

  // Returns a few nodes among which are all that accept the pod; nullopt if the index does not help.
  std::optional<Pods> candidates(const Json& pod) const {
    const Json& selector = sim::at(pod, "/spec/nodeSelector");
    if (selector.is_object() && selector.contains(hostname_label) && selector[hostname_label].is_string())
      return in(labels_, hostname_label + ('=' + selector[hostname_label].get<std::string>()));
    std::set<std::size_t> all;
    const Json& terms =
        sim::at(pod, "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
    if (!terms.is_array() || terms.empty()) return std::nullopt;
    for (const Json& term : terms) {
      const auto of_term = named_in(term);
      if (!of_term) return std::nullopt;
      all.insert(of_term->begin(), of_term->end());
    }
    return Pods(all.begin(), all.end());
  }

  // Returns the nodes that the term names, by host name or by name; nullopt if it names none.
  std::optional<Pods> named_in(const Json& term) const {
    const auto names_nodes = [](const Json& expression, const char* key) {
      return sim::text(expression, "/key") == key && sim::text(expression, "/operator") == "In" &&
             sim::at(expression, "/values").is_array();
    };
    for (const Json& expression : sim::at(term, "/matchExpressions"))
      if (names_nodes(expression, hostname_label))
        return among(labels_, std::string(hostname_label) + '=', sim::at(expression, "/values"));
    for (const Json& field : sim::at(term, "/matchFields"))
      if (names_nodes(field, "metadata.name")) return among(names_, {}, sim::at(field, "/values"));
    return std::nullopt;
  }

  static Pods among(const Index& index, const std::string& prefix, const Json& values) {
    Pods all;
    for (const Json& value : values) {
      if (!value.is_string()) continue;
      const Pods& nodes = in(index, prefix + value.get<std::string>());
      all.insert(all.end(), nodes.begin(), nodes.end());
    }
    return all;
  }

  const World& world_;
  Index labels_;  // nodes by "key=value"
  Index names_;
  std::map<std::string, std::string> answers_;
};

// Returns true if the controller itself names the node of its pods, so that no scheduler chooses one.
bool is_bound_by_template(const Group& group) {
  return group.object && !sim::text(*group.object, "/spec/template/spec/nodeName").empty();
}

void find_pinned(const World& world, const Group& group, NodeChoice& choice, Findings& findings) {
  Pods bound, returning, pinned, tolerant;
  for (const std::size_t index : group.pods) {
    const WorldPod& pod = world.pods[index];
    if (!is_replaced(pod)) continue;
    const bool tolerates = pod.pod.tolerates_unschedulable;
    const bool only = choice.only_node(*pod.object) == pod.pod.node_name;
    if (is_bound_by_template(group))
      bound.push_back(index);
    else if (only)
      (tolerates ? returning : pinned).push_back(index);
    else if (tolerates)
      tolerant.push_back(index);
  }
  const Severity endless = world.drain.policy.pinned == drain::Treatment::park ? Severity::blocks : Severity::risk;
  findings.add(
      {.id = "PinnedPod",
       .severity = endless,
       .text = "its template names the node, so its controller creates each evicted pod on the same node again",
       .way_out = "remove nodeName from the template, or drain with the option --pinned=leave of agents"},
      bound);
  findings.add({.id = "PinnedPod",
                .severity = endless,
                .text = "its pods may run on this node only and tolerate the cordon, so each evicted pod comes back to "
                        "the same node",
                .way_out = "remove the toleration of node.kubernetes.io/unschedulable, or allow another node"},
               returning);
  findings.add(
      {.id = "PinnedPod",
       .severity = Severity::risk,
       .text = "its pods may run on this node only, so after an eviction they stay Pending while it is cordoned",
       .way_out = "allow another node in nodeSelector or node affinity, or accept the outage"},
      pinned);
  findings.add({.id = "PinnedPod",
                .severity = Severity::risk,
                .text = "its pods tolerate the cordon, so an evicted pod may come back to the node that is drained",
                .way_out = "remove the toleration of node.kubernetes.io/unschedulable"},
               tolerant);
}

// Returns the volume that exists on the pod's node only; empty if there is none.
std::string local_volume_of(const World& world, const WorldPod& pod, const std::string& hostname) {
  for (const std::string& name : pod.pod.claims) {
    const sim::Object claim = world.store().get({"persistentvolumeclaims", pod.pod.ns, name});
    const std::string volume_name = claim ? sim::text(*claim, "/spec/volumeName") : std::string();
    const sim::Object object =
        volume_name.empty() ? nullptr : world.store().get({"persistentvolumes", "", volume_name});
    if (!object) continue;
    const auto volume = k8s::decode<k8s::PersistentVolume>(object->dump());
    if (volume && drain::is_only_on(*volume, hostname)) return volume->name;
  }
  return {};
}

// Returns the pods that it has found.
Pods find_local_volumes(const World& world, const Group& group, const std::map<std::string, std::string>& hostnames,
                        Findings& findings) {
  Pods pods;
  std::string volume;
  for (const std::size_t index : group.pods) {
    const WorldPod& pod = world.pods[index];
    const auto hostname = hostnames.find(pod.pod.node_name);
    if (!pod.leaves() || pod.pod.claims.empty() || hostname == hostnames.end()) continue;
    const std::string found = local_volume_of(world, pod, hostname->second);
    if (found.empty()) continue;
    if (volume.empty()) volume = found;
    pods.push_back(index);
  }
  findings.add(
      {.id = "VolumeOnOneNode",
       .severity = Severity::risk,
       .text = fmt::format("{} with a volume that exists only on the pod's node, such as {}: after an eviction "
                           "the pod cannot start while the node is cordoned",
                           count_of_pods(pods.size()), volume),
       .way_out = "let the application move its data first, or accept the outage"},
      pods);
  return pods;
}

// Finds pods that fit on no other node even if they are the only ones that leave. All pods of a controller with the
// same template get the same answer, except on the one node where one more of them would fit.
class RoomSearch {
 public:
  explicit RoomSearch(const World& world) : world_(world), room_(world.nodes, placement::Room::Unstated::no_end) {
    for (const WorldPod& pod : world.pods)
      if (!pod.pod.node_name.empty() && !pod.pod.finished()) room_.put(pod.object, pod.pod.node_name);
  }

  // Returns why the pod fits on no other node; empty if it fits on one.
  std::string refusal(const WorldPod& pod) {
    const auto volumes = pod.pod.claims.empty() ? Volumes() : sim::volumes_of(world_.store(), *pod.object);
    const std::string kind = kind_of(pod, volumes);
    const placement::Place& first = anywhere(kind, pod, volumes);
    if (first.vague) return {};
    if (first.node != pod.pod.node_name) return first.node.empty() ? first.message : std::string();
    const placement::Place& second = elsewhere(kind, pod, volumes);
    return second.node.empty() && !second.vague ? second.message : std::string();
  }

 private:
  using Volumes = std::vector<sim::Object>;

  // Pods of one kind fit on the same nodes.
  static std::string kind_of(const WorldPod& pod, const Volumes& volumes) {
    const auto revision = pod.pod.labels.find("controller-revision-hash");
    std::string kind = pod.pod.ns + '/' + pod.pod.controller->uid;
    if (revision != pod.pod.labels.end()) kind += '/' + revision->second;
    for (const sim::Object& volume : volumes) kind += '/' + sim::at(*volume, "/spec/nodeAffinity").dump();
    return kind;
  }

  const placement::Place& anywhere(const std::string& kind, const WorldPod& pod, const Volumes& volumes) {
    const auto [known, is_new] = places_.try_emplace({kind, {}});
    if (is_new) known->second = room_.find(*pod.object, {}, volumes);
    return known->second;
  }

  const placement::Place& elsewhere(const std::string& kind, const WorldPod& pod, const Volumes& volumes) {
    const std::string& node = pod.pod.node_name;
    const auto [known, is_new] = places_.try_emplace({kind, node});
    if (!is_new) return known->second;
    room_.close(node);  // keeps out also pods that tolerate a cordon
    known->second = room_.find(*pod.object, {}, volumes);
    room_.open(node);
    return known->second;
  }

  const World& world_;
  placement::Room room_;
  std::map<std::pair<std::string, std::string>, placement::Place> places_;  // by kind of pod and closed node
};

Severity severity_without_room(drain::FitPolicy policy) {
  return policy == drain::FitPolicy::block || policy == drain::FitPolicy::require ? Severity::blocks : Severity::risk;
}

// Leaves out `local`, the pods with a volume that exists only on their node.
void find_no_room(const World& world, const std::set<std::size_t>& local, Findings& findings) {
  RoomSearch search(world);
  for (const Group& group : world.groups) {
    Pods pods;
    std::string why;
    for (const std::size_t index : group.pods) {
      const WorldPod& pod = world.pods[index];
      if (!is_replaced(pod) || local.contains(index)) continue;
      const std::string refusal = search.refusal(pod);
      if (refusal.empty()) continue;
      if (why.empty()) why = refusal;
      pods.push_back(index);
    }
    findings.add({.id = "NoRoom",
                  .severity = severity_without_room(world.drain.fit),
                  .text = fmt::format("{} would stay Pending, because no other node has room: {}",
                                      count_of_pods(pods.size()), why),
                  .way_out = "add a node, lower the requests, or relax what keeps the pods from other nodes"},
                 pods);
  }
}

}  // namespace

void find_bound_pods(const World& world, Findings& findings) {
  std::map<std::string, std::string> hostnames;
  for (const sim::Object& node : world.nodes)
    hostnames[sim::name_of(*node)] = sim::label(*node, hostname_label).value_or(sim::name_of(*node));
  NodeChoice choice(world);
  std::set<std::size_t> local;
  for (const Group& group : world.groups) {
    find_pinned(world, group, choice, findings);
    const Pods found = find_local_volumes(world, group, hostnames, findings);
    local.insert(found.begin(), found.end());
  }
  find_no_room(world, local, findings);
}

}  // namespace haulout::audit
