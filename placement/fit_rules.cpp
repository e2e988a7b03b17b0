#include "placement/fit_rules.hpp"

#include <algorithm>
#include <array>

#include "placement/room.hpp"

namespace haulout::placement {
namespace {

struct Leaving {
  Object pod;
  double share = 0;
  Place alone;  // before any other pod of the node has been placed
};

std::string key_of(const Json& pod) {
  return ns_of(pod) + "/" + name_of(pod);
}

// A DaemonSet's pod leaves only when its DaemonSet has gone.
bool comes_back_elsewhere(const Json& pod) {
  const Json& owner = controller_of(pod);
  return owner.is_object() && text(owner, "/kind") != "DaemonSet";
}

// Its rules are not known.
std::string foreign_scheduler(const Json& pod) {
  const std::string name = text(pod, "/spec/schedulerName");
  return name.empty() || name == "default-scheduler" ? "" : name;
}

void put_waiting(Room& room, std::vector<Object> waiting) {
  std::sort(waiting.begin(), waiting.end(), [](const Object& a, const Object& b) {
    const auto rank = [](const Json& pod) { return std::pair(-number(pod, "/spec/priority"), key_of(pod)); };
    return rank(*a) < rank(*b);
  });
  for (const Object& pod : waiting) {
    const Place place = room.find(*pod);
    if (!place.node.empty()) room.put(pod, place.node);
  }
}

PodFit unknown(PodFit fit, std::string why) {
  fit.fit = Fit::unknown;
  fit.message = std::move(why);
  return fit;
}

// Whatever is not weighed can only say no once more.
PodFit judge_found(PodFit fit, const Json& pod, const std::string& node) {
  std::string unweighed;
  for (const std::string& what : not_weighed(pod)) unweighed += (unweighed.empty() ? "" : ", ") + what;
  if (!unweighed.empty())
    return unknown(std::move(fit), fmt::format("not weighed: {}; for all else there is room on {}", unweighed, node));
  fit.fit = Fit::fits;
  fit.node = node;
  return fit;
}

// `taken`: pods of the node that have been placed before, some of them perhaps not where they will be.
PodFit judge_refused(PodFit fit, const Leaving& leaving, const Place& place, bool taken_for_sure) {
  if (place.vague)
    return unknown(std::move(fit),
                   "it depends on anti-affinity across namespaces or by label keys, or on tolerations "
                   "that compare: " +
                       place.message);
  if (place.needs_preemption)
    return unknown(std::move(fit), "only if pods of lower priority are preempted: " + place.message);
  const bool alone = !leaving.alone.node.empty();
  if (alone && !taken_for_sure)
    return unknown(std::move(fit),
                   "its room may be taken by a pod of this node whose own place is not known: " + place.message);
  fit.fit = Fit::does_not_fit;
  fit.plugins.assign(place.plugins.begin(), place.plugins.end());
  fit.message = place.message;
  if (alone) fit.message += " (after the larger pods of this node)";
  return fit;
}

std::vector<PodFit> place_all(Room& room, std::vector<Leaving> all) {
  std::vector<PodFit> fits;
  fits.reserve(all.size());
  bool for_sure = true;
  for (const Leaving& leaving : all) {
    const Json& pod = *leaving.pod;
    const Place place = room.find(pod);
    PodFit fit;
    fit.pod = key_of(pod);
    fit.uid = uid_of(pod);
    if (const std::string scheduler = foreign_scheduler(pod); !scheduler.empty())
      fit = unknown(std::move(fit), fmt::format("scheduler {} decides, whose rules are not known", scheduler));
    else if (!place.node.empty())
      fit = judge_found(std::move(fit), pod, place.node);
    else
      fit = judge_refused(std::move(fit), leaving, place, for_sure);
    // Room that it may need is nobody else's.
    if (!place.node.empty()) room.put(leaving.pod, place.node);
    for_sure = for_sure && fit.fit != Fit::unknown;
    fits.push_back(std::move(fit));
  }
  std::sort(fits.begin(), fits.end(), [](const PodFit& a, const PodFit& b) { return a.pod < b.pod; });
  return fits;
}

template <std::size_t n>
void copy(Json& to, const Json& from, const std::array<const char*, n>& keys) {
  if (!from.is_object()) return;
  for (const char* key : keys)
    if (const auto found = from.find(key); found != from.end()) to[key] = *found;
}

Json essence_of_containers(const Json& containers) {
  Json result = Json::array();
  for (const Json& container : containers) {
    Json kept = Json::object();
    copy(kept, container, std::array{"ports", "resources", "restartPolicy"});
    result.push_back(std::move(kept));
  }
  return result;
}

}  // namespace

std::vector<PodFit> judge(const ClusterView& view, const FitQuestion& question) {
  Room room(view.nodes, Room::Unstated::nothing);
  for (const std::string& name : question.closed) room.close(name);
  for (const Object& node : view.nodes)
    if (flag(*node, "/spec/unschedulable")) room.close(name_of(*node));
  std::vector<Object> waiting;
  std::vector<Leaving> all;
  for (const Object& pod : view.pods) {
    const std::string node = text(*pod, "/spec/nodeName");
    if (pod_finished(*pod)) continue;
    if (question.leaving.count(uid_of(*pod)) != 0) {
      if (comes_back_elsewhere(*pod)) all.push_back({pod, room.share(*pod), {}});
    } else if (node.empty()) {
      if (!terminating(*pod) && at(*pod, "/spec/schedulingGates").empty()) waiting.push_back(pod);
    } else if (question.closed.count(node) == 0 || !terminating(*pod)) {
      room.put(pod, node);
    }
  }
  put_waiting(room, std::move(waiting));
  for (Leaving& one : all) one.alone = room.find(*one.pod);
  std::sort(all.begin(), all.end(), [](const Leaving& a, const Leaving& b) {
    return a.share != b.share ? a.share > b.share : key_of(*a.pod) < key_of(*b.pod);
  });
  return place_all(room, std::move(all));
}

Object essence_of_pod(const Json& pod) {
  Json kept = Json::object();
  copy(kept["metadata"], at(pod, "/metadata"),
       std::array{"name", "namespace", "uid", "labels", "deletionTimestamp", "ownerReferences"});
  Json& spec = kept["spec"] = Json::object();
  copy(spec, at(pod, "/spec"),
       std::array{"nodeName", "schedulerName", "priority", "preemptionPolicy", "overhead", "affinity", "nodeSelector",
                  "tolerations", "topologySpreadConstraints", "volumes", "schedulingGates", "resourceClaims",
                  "resources"});
  for (const char* kind : {"containers", "initContainers"})
    if (at(pod, "/spec").contains(kind)) spec[kind] = essence_of_containers(at(pod, "/spec")[kind]);
  copy(kept["status"], at(pod, "/status"), std::array{"phase"});
  return std::make_shared<const Json>(std::move(kept));
}

Object essence_of_node(const Json& node) {
  Json kept = Json::object();
  copy(kept["metadata"], at(node, "/metadata"), std::array{"name", "labels", "deletionTimestamp"});
  copy(kept["spec"], at(node, "/spec"), std::array{"unschedulable", "taints"});
  copy(kept["status"], at(node, "/status"), std::array{"allocatable", "capacity", "conditions"});
  return std::make_shared<const Json>(std::move(kept));
}

}  // namespace haulout::placement
