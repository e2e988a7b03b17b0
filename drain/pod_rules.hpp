// Rules that give some pods an action of their own in a drain (--pod-rule), and the label of Cluster API that asks for
// the same. Pure. A rule names pods by namespace, by owner, by labels, or by several of these.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8s/label_selector.hpp"
#include "k8s/objects.hpp"
#include "retry/task.hpp"

namespace haulout::drain {

// `evict`: evict the pod, also if it has an emptyDir volume, no controller, or a DaemonSet that no longer exists. A
// member of a gang is then evicted like any other pod, not after the others.
// `skip`: leave the pod on the node and do not wait for it.
// `wait_completed`: wait until the pod has finished, at most for the limit of the rule; then evict it.
// `last`: evict the pod when all other pods that must leave are deleted.
enum class PodAction { evict, skip, wait_completed, last };

// Which values of the label of Cluster API a drain follows: none, only "wait-completed", or "skip", too.
enum class ClusterApiLabels { off, wait, all };

// The label of a pod with which Cluster API leaves the pod out of a drain ("skip") or waits for it ("wait-completed").
// Cluster API ignores letter case in the value.
inline constexpr std::string_view cluster_api_label = "cluster.x-k8s.io/drain";

// A pod matches if every part that is set matches.
struct PodRule {
  std::string ns;    // namespace of the pod
  std::string kind;  // kind of the pod's controller, such as Job, in any letter case
  struct Owner {
    std::string kind;  // in any letter case
    std::string ns;
    std::string name;
    bool operator==(const Owner&) const = default;
  };
  std::optional<Owner> controller;
  k8s::LabelSelector selector;
  PodAction action = PodAction::evict;
  std::optional<Duration> limit;  // only for wait_completed; unset means no limit
  std::string text;               // the rule as it was written
  bool operator==(const PodRule&) const = default;

  bool matches(const k8s::Pod& pod) const;
};

// Returns the longest limit of the rules that wait; zero if there is none.
Duration longest_limit(const std::vector<PodRule>& rules);

// Parses WHO=ACTION. WHO is "namespace:NAME", "kind:KIND", "controller:KIND/NAMESPACE/NAME" or a label selector, or
// several of these, separated by commas, with the label selector at the end. ACTION is "evict", "skip", "last",
// "wait-completed" or "wait-completed=DURATION". Fails with Errc::invalid for any other text, also for a name or kind
// that no object can have, and for labels with the keys namespace, kind and controller, which are meant otherwise.
Result<PodRule> parse_pod_rule(std::string_view text);

// What a rule or the label of Cluster API says about a pod.
struct PodHandling {
  PodAction action = PodAction::evict;
  std::optional<Duration> limit;
  std::string source;  // "rule kind:Job=wait-completed", "label cluster.x-k8s.io/drain=skip"
};

// Returns what applies to the pod: its label if `labels` has the drain follow it, otherwise the first rule that
// matches; nullopt if neither does. A label with an unknown value does not count.
std::optional<PodHandling> handling_of(const k8s::Pod& pod, const std::vector<PodRule>& rules, ClusterApiLabels labels);

}  // namespace haulout::drain
