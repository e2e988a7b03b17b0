#include "placement/fit_rules.hpp"

#include <algorithm>
#include <array>

#include "placement/room.hpp"

namespace haulout::placement {
namespace {

struct Leaving {
  Object pod;
  double share = 0;
  bool alone = false;  // there is room before any other pod of the node has been placed
};

std::string key_of(const Json& pod) {
  return ns_of(pod) + "/" + name_of(pod);
}

// A DaemonSet's pod leaves only when its DaemonSet has gone.
bool comes_back_elsewhere(const Json& pod) {
  const Json& owner = controller_of(pod);
  return owner.is_object() && text(owner, "/kind") != "DaemonSet";
}

std::string listed_unweighed(const Json& pod) {
  std::string list;
  for (const std::string& what : not_weighed(pod)) list += (list.empty() ? "" : ", ") + what;
  return list;
}

// What is taken, and what may be: one pod after the other.
class Placing {
 public:
  explicit Placing(Room& room) : room_(room) {}

  struct Found {
    Place place;       // whatever becomes of the pods whose place is not known
    std::string sure;  // a node with room wherever those go; empty: none
  };
  Found find(const Json& pod) const {
    Found found{room_.find(pod), {}};
    const bool apart = std::any_of(nowhere_known_.begin(), nowhere_known_.end(),
                                   [&](const Object& other) { return keep_apart(pod, *other); });
    if (!found.place.node.empty() && !apart) found.sure = room_.find_for_sure(pod);
    return found;
  }
  void put(const Object& pod, const std::string& node) { room_.put(pod, node); }
  void put_somewhere(const Object& pod) {
    room_.reserve(*pod);
    nowhere_known_.push_back(pod);
  }

 private:
  Room& room_;
  std::vector<Object> nowhere_known_;
};

PodFit unknown(PodFit fit, std::string why) {
  fit.fit = Fit::unknown;
  fit.message = std::move(why);
  return fit;
}

// Whatever is not weighed can only say no once more.
PodFit judge_found(PodFit fit, const Json& pod, const Placing::Found& found) {
  if (const std::string unweighed = listed_unweighed(pod); !unweighed.empty())
    return unknown(std::move(fit),
                   fmt::format("not weighed: {}; for all else there is room on {}", unweighed, found.place.node));
  if (found.sure.empty())
    return unknown(
        std::move(fit),
        fmt::format("there is room on {}, unless a pod whose own place is not known takes it", found.place.node));
  fit.fit = Fit::fits;
  fit.node = found.sure;
  return fit;
}

PodFit judge_refused(PodFit fit, bool alone, const Place& place) {
  if (place.vague)
    return unknown(std::move(fit),
                   "it depends on anti-affinity across namespaces or by label keys, or on tolerations "
                   "that compare: " +
                       place.message);
  if (!place.preempts_on.empty())
    return unknown(std::move(fit), "only if pods of lower priority are preempted: " + place.message);
  fit.fit = Fit::does_not_fit;
  fit.plugins.assign(place.plugins.begin(), place.plugins.end());
  fit.message = place.message;
  if (alone) fit.message += " (after the larger pods of this node)";
  return fit;
}

// Judges the pod and gives it its room: what it may need is nobody else's.
PodFit place_one(Placing& placing, const Object& pod, bool alone) {
  PodFit fit;
  fit.pod = key_of(*pod);
  fit.uid = uid_of(*pod);
  const Placing::Found found = placing.find(*pod);
  if (const std::string scheduler = foreign_scheduler(*pod); !scheduler.empty())
    fit = unknown(std::move(fit), fmt::format("scheduler {} decides, whose rules are not known", scheduler));
  else if (!found.place.node.empty())
    fit = judge_found(std::move(fit), *pod, found);
  else
    fit = judge_refused(std::move(fit), alone, found.place);
  if (fit.fit == Fit::fits) placing.put(pod, fit.node);
  if (fit.fit == Fit::unknown) placing.put_somewhere(pod);
  return fit;
}

void put_waiting(Placing& placing, std::vector<Object> waiting) {
  std::sort(waiting.begin(), waiting.end(), [](const Object& a, const Object& b) {
    const auto first = number(*a, "/spec/priority"), second = number(*b, "/spec/priority");
    return first != second ? first > second : key_of(*a) < key_of(*b);
  });
  for (const Object& pod : waiting) place_one(placing, pod, false);
}

std::vector<PodFit> place_all(Placing& placing, const std::vector<Leaving>& all) {
  std::vector<PodFit> fits;
  fits.reserve(all.size());
  for (const Leaving& leaving : all) fits.push_back(place_one(placing, leaving.pod, leaving.alone));
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
      if (comes_back_elsewhere(*pod)) all.push_back({pod, room.share(*pod), false});
    } else if (node.empty()) {
      if (!terminating(*pod) && !has_scheduling_gates(*pod)) waiting.push_back(pod);
    } else if (question.closed.count(node) == 0 || !terminating(*pod)) {
      room.put(pod, node);
    }
  }
  Placing placing(room);
  put_waiting(placing, std::move(waiting));
  for (Leaving& one : all) one.alone = !room.find(*one.pod).node.empty();
  std::sort(all.begin(), all.end(), [](const Leaving& a, const Leaving& b) {
    return a.share != b.share ? a.share > b.share : key_of(*a.pod) < key_of(*b.pod);
  });
  return place_all(placing, all);
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
