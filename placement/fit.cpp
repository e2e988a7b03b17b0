#include "placement/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "placement/room.hpp"

namespace haulout::placement {
namespace {

bool within(const Sites& some, const Sites& others) {
  for (std::size_t i = 0; i < some.size(); ++i)
    if (some[i] && !others[i]) return false;
  return true;
}

// Proves by sums that pods cannot all fit, in whatever order they are placed.
//
// Pods that only some nodes accept must share the resources of those nodes. If together they request more than these
// nodes have, one of the pods does not fit. The sums ignore anti-affinity and the limits of single nodes. So even if
// the sums suffice, a pod may not fit.
class Sums {
 public:
  // Borrows `room`, whose nodes must not change.
  explicit Sums(const Room& room) : room_(room) {}

  // Records that the pod is now on `node` in the room. It could also be on any other node that accepts it.
  void placed(const Json& pod, const std::string& node);
  // Returns true if the pod cannot fit together with all recorded pods, even if it preempts pods of lower priority.
  bool too_many_with(const Json& pod);

 private:
  struct Placed {
    std::size_t site;
    Amounts requests;
  };
  // The pods that have the same set of accepting nodes.
  struct Alike {
    Sites admitting;
    std::vector<Placed> pods;
  };
  Alike& alike(const Json& pod);

  const Room& room_;
  std::map<std::string, Alike> groups_;  // by the pods' selector, node affinity and tolerations
};

// Returns the group of pods that the same nodes accept as this one. Pods of one controller share a group, so that there
// are few groups even if there are thousands of pods.
Sums::Alike& Sums::alike(const Json& pod) {
  std::string key;
  for (const char* what : {"/spec/nodeSelector", "/spec/affinity/nodeAffinity", "/spec/tolerations"})
    key += at(pod, what).dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
  const auto [found, is_new] = groups_.try_emplace(std::move(key));
  if (is_new) found->second.admitting = room_.admitting(pod);
  return found->second;
}

void Sums::placed(const Json& pod, const std::string& node) {
  if (const auto site = room_.site_of(node)) alike(pod).pods.push_back({*site, requests_of(pod)});
}

bool Sums::too_many_with(const Json& pod) {
  const Sites& here = alike(pod).admitting;
  Amounts free = room_.free_for(pod, here);
  for (const auto& [key, group] : groups_) {
    if (within(group.admitting, here)) continue;
    for (const Placed& one : group.pods)
      if (here[one.site]) add(free, one.requests);
  }
  const Amounts wanted = requests_of(pod);
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](const auto& want) { return want.second != 0 && amount(free, want.first) < want.second; });
}

// Where a pod fits before any pending pod or pod that must leave has been placed.
struct Alone {
  Place place;
  Sites candidates;
};

struct Leaving {
  Object pod;
  double share = 0;
  Alone alone{};
};

std::string key_of(const Json& pod) {
  return ns_of(pod) + "/" + name_of(pod);
}

// Returns true if a controller replaces the pod on another node. A DaemonSet replaces its pod on the same node, if it
// still exists.
bool comes_back_elsewhere(const Json& pod) {
  const Json& owner = controller_of(pod);
  return owner.is_object() && text(owner, "/kind") != "DaemonSet";
}

std::string listed_unweighed(const Json& pod) {
  std::string list;
  for (const std::string& what : not_weighed(pod)) list += (list.empty() ? "" : ", ") + what;
  return list;
}

// The pods that fit, or may fit, after the deletion of the pods that are terminating on other nodes. The key is the
// UID, the value is the nodes that could take the pod then.
using Afterwards = std::map<std::string, Sites>;

// Places one pod after the other, and records the capacity that is certainly or possibly used.
class Placing {
 public:
  Placing(Room& room, const Afterwards& afterwards) : room_(room), sums_(room), afterwards_(afterwards) {}

  struct Found {
    Place place;       // ignores the placed pods whose node is uncertain
    std::string sure;  // a node with capacity on whatever nodes those pods are; empty if there is none
  };
  Found find(const Json& pod) const {
    Found found{room_.find(pod), {}};
    const bool apart = std::any_of(nowhere_known_.begin(), nowhere_known_.end(),
                                   [&](const Object& other) { return keep_apart(pod, *other); });
    if (!found.place.node.empty() && !apart) found.sure = room_.find_for_sure(pod);
    return found;
  }
  bool too_many_with(const Json& pod) { return sums_.too_many_with(pod); }
  bool may_fit_afterwards(const Json& pod) const { return afterwards_.count(uid_of(pod)) != 0; }
  void put(const Object& pod, const std::string& node) {
    room_.put(pod, node);
    sums_.placed(*pod, node);
  }
  void put_somewhere(const Object& pod, const Alone* alone) {
    if (const auto later = afterwards_.find(uid_of(*pod)); later != afterwards_.end())
      room_.reserve(*pod, later->second);
    else
      room_.reserve(*pod, alone != nullptr ? alone->candidates : room_.candidates(*pod));
    nowhere_known_.push_back(pod);
  }

 private:
  Room& room_;
  Sums sums_;
  const Afterwards& afterwards_;
  std::vector<Object> nowhere_known_;
};

PodFit unknown(PodFit fit, std::string why) {
  fit.fit = Fit::unknown;
  fit.message = std::move(why);
  return fit;
}

// Returns the answer for a pod for which a node was found. A rule of the scheduler that this check ignores
// (not_weighed()) can only exclude nodes, so with such a rule the answer is "unknown" instead of "fits".
PodFit judge_found(PodFit fit, const Json& pod, const Placing::Found& found) {
  if (const std::string unweighed = listed_unweighed(pod); !unweighed.empty())
    return unknown(std::move(fit),
                   fmt::format("this check does not consider {}; apart from that there is capacity on {}", unweighed,
                               found.place.node));
  if (found.sure.empty())
    return unknown(std::move(fit), fmt::format("there is capacity on {}, but another pod may take it, because this "
                                               "check cannot tell to which node that pod goes",
                                               found.place.node));
  fit.fit = Fit::fits;
  fit.node = found.sure;
  return fit;
}

// Returns why the pod may fit although no node was found. Empty if it certainly does not.
std::string all_the_same(const Place& place) {
  if (place.vague)
    return "this check cannot evaluate anti-affinity with namespaceSelector, matchLabelKeys or mismatchLabelKeys, or "
           "tolerations with operator Lt or Gt; if these exclude nodes, there is no capacity: " +
           place.message;
  return place.preempts_on.empty() ? "" : "it fits only if pods of lower priority are preempted: " + place.message;
}

// Returns the answer for a pod for which no node was found. If that depends on the nodes on which this check has placed
// other pods, the answer is "unknown", because the scheduler may place them on other nodes.
PodFit judge_refused(PodFit fit, const Json& pod, const Alone* alone, const Place& place, Placing& placing) {
  const bool fits_alone = alone != nullptr && !alone->place.node.empty();
  std::string why_unknown = all_the_same(place);
  if (why_unknown.empty() && alone != nullptr) why_unknown = all_the_same(alone->place);
  if (why_unknown.empty() && fits_alone && !placing.too_many_with(pod))
    why_unknown =
        "there is capacity for it alone, but perhaps not for all pods that are evicted or pending: " + place.message;
  if (why_unknown.empty() && placing.may_fit_afterwards(pod))
    why_unknown = "it fits only after pods that are terminating on other nodes are deleted: " + place.message;
  if (!why_unknown.empty()) return unknown(std::move(fit), std::move(why_unknown));
  fit.fit = Fit::does_not_fit;
  fit.plugins.assign(place.plugins.begin(), place.plugins.end());
  fit.message = place.message;
  if (fits_alone) fit.message += " (there is capacity for it alone, but not for all pods that are evicted or pending)";
  return fit;
}

// Decides the answer for the pod, and reserves capacity for it, so that no later pod is placed there. If `alone` is
// nullptr, the pod is not checked for fitting alone.
PodFit place_one(Placing& placing, const Object& pod, const Alone* alone) {
  PodFit fit;
  fit.pod = key_of(*pod);
  fit.uid = uid_of(*pod);
  const Placing::Found found = placing.find(*pod);
  if (const std::string scheduler = foreign_scheduler(*pod); !scheduler.empty())
    fit = unknown(
        std::move(fit),
        fmt::format("scheduler {} places it, and Haulout does not know the rules of that scheduler", scheduler));
  else if (!found.place.node.empty())
    fit = judge_found(std::move(fit), *pod, found);
  else
    fit = judge_refused(std::move(fit), *pod, alone, found.place, placing);
  if (fit.fit == Fit::fits) placing.put(pod, fit.node);
  if (fit.fit == Fit::unknown) placing.put_somewhere(pod, alone);
  return fit;
}

// The nodes with their pods, and the pods to be placed, in their order.
struct Scene {
  Room room;
  std::vector<Object> waiting;
  std::vector<Leaving> leaving;
};

// Returns true if the pod is terminating and its capacity becomes free when it is deleted. A DaemonSet's new pod uses
// the capacity of the old one.
bool makes_room(const Json& pod) {
  return terminating(pod) && text(controller_of(pod), "/kind") != "DaemonSet";
}

enum class Terminating { stand, have_gone };

Scene scene_of(const ClusterView& view, const FitQuestion& question, Terminating terminating_pods) {
  Scene scene{Room(view.nodes, Room::Unstated::nothing), {}, {}};
  Room& room = scene.room;
  for (const std::string& name : question.closed) room.close(name);
  for (const Object& node : view.nodes)
    if (flag(*node, "/spec/unschedulable")) room.close(name_of(*node));
  for (const Object& pod : view.pods) {
    const std::string node = text(*pod, "/spec/nodeName");
    if (pod_finished(*pod)) continue;
    if (question.leaving.count(uid_of(*pod)) != 0) {
      if (comes_back_elsewhere(*pod)) scene.leaving.push_back({pod, room.share(*pod)});
    } else if (node.empty()) {
      if (!terminating(*pod) && !has_scheduling_gates(*pod)) scene.waiting.push_back(pod);
    } else if (!terminating(*pod) || question.closed.count(node) == 0) {
      if (terminating_pods == Terminating::stand || !makes_room(*pod)) room.put(pod, node);
    }
  }
  for (Leaving& one : scene.leaving) one.alone = {room.find(*one.pod), room.candidates(*one.pod)};
  std::sort(scene.waiting.begin(), scene.waiting.end(), [](const Object& a, const Object& b) {
    const auto first = number(*a, "/spec/priority"), second = number(*b, "/spec/priority");
    return first != second ? first > second : key_of(*a) < key_of(*b);
  });
  std::sort(scene.leaving.begin(), scene.leaving.end(), [](const Leaving& a, const Leaving& b) {
    return a.share != b.share ? a.share > b.share : key_of(*a.pod) < key_of(*b.pod);
  });
  return scene;
}

Afterwards room_afterwards(const ClusterView& view, const FitQuestion& question) {
  Scene scene = scene_of(view, question, Terminating::have_gone);
  Afterwards afterwards;
  for (const Object& pod : scene.waiting) afterwards.emplace(uid_of(*pod), scene.room.candidates(*pod));
  for (const Leaving& one : scene.leaving) afterwards.emplace(uid_of(*one.pod), one.alone.candidates);
  const Afterwards none;
  Placing placing(scene.room, none);
  const auto place = [&](const Object& pod, const Alone* alone) {
    if (place_one(placing, pod, alone).fit == Fit::does_not_fit) afterwards.erase(uid_of(*pod));
  };
  for (const Object& pod : scene.waiting) place(pod, nullptr);
  for (const Leaving& one : scene.leaving) place(one.pod, &one.alone);
  return afterwards;
}

}  // namespace

std::vector<PodFit> judge(const ClusterView& view, const FitQuestion& question) {
  const bool some_go =
      std::any_of(view.pods.begin(), view.pods.end(), [](const Object& pod) { return makes_room(*pod); });
  const Afterwards afterwards = some_go ? room_afterwards(view, question) : Afterwards();
  Scene scene = scene_of(view, question, Terminating::stand);
  Placing placing(scene.room, afterwards);
  for (const Object& pod : scene.waiting) place_one(placing, pod, nullptr);
  std::vector<PodFit> fits;
  fits.reserve(scene.leaving.size());
  for (const Leaving& leaving : scene.leaving) fits.push_back(place_one(placing, leaving.pod, &leaving.alone));
  std::sort(fits.begin(), fits.end(), [](const PodFit& a, const PodFit& b) { return a.pod < b.pod; });
  return fits;
}

Task<std::vector<PodFit>> check_fit(k8s::Client& client, FitQuestion question, std::uint32_t page_size,
                                    TimePoint deadline) {
  const auto view = co_await read_cluster(client, page_size, deadline);
  if (!view) co_return view.error();
  co_return judge(*view, question);
}

}  // namespace haulout::placement
