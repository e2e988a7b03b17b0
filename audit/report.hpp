// The result of an audit (audit.hpp): what keeps the nodes of a cluster from being drained, whose pods it concerns, and
// what becomes of each node. Plain data.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "retry/clock.hpp"

namespace haulout::audit {

// `blocks`: the drain of a node cannot end. `risk`: a service is down for a while, or a drain is slow or unsafe.
enum class Severity { note, risk, blocks };
std::string_view to_string(Severity severity);

// Who can change what a finding is about: the topmost controller of the pods, or another object. A finding about the
// cluster itself has the kind "Cluster" and no names.
struct OwnerName {
  std::string ns{};
  std::string kind{};
  std::string name{};
  auto operator<=>(const OwnerName&) const = default;
  std::string text() const;  // "shop/Deployment/web", "Cluster"
};

struct Finding {
  std::string id{};  // "BudgetNeverOpens", one of finding_kinds()
  Severity severity = Severity::note;
  std::string object{};              // "shop/PodDisruptionBudget/web"
  std::string text{};                // what is wrong
  std::string way_out{};             // what the owner can do
  std::vector<std::string> nodes{};  // sorted; the nodes of `pods`, for a finding about pods
  std::vector<std::string> pods{};   // sorted, "namespace/name"
  std::string key{};                 // stays the same in later audits: id|namespace|kind|name|object
  std::string file{};                // of manifests: the file with the object, or else with its owner; may be empty
};

struct Owner {
  OwnerName name;
  std::string team{};               // value of the team label; empty: none
  std::size_t pods = 0;             // all its pods in the cluster
  std::vector<Finding> findings{};  // the worst first
  Severity worst() const;
};

enum class Verdict { drains, blocked, drains_without_room, not_rehearsed };
std::string_view to_string(Verdict verdict);  // "drains", "blocked", "drainsWithoutRoom", "notRehearsed"

// A pod that is still on the node when its rehearsed drain has ended, or because of which the drain is refused.
struct Culprit {
  std::string pod;
  std::string owner;
  std::string reason;
  std::string text;
};

// What happened to a pod in the rehearsed drain of its node. Times since the begin of the drain; unset: it did not
// happen.
struct Step {
  std::string pod;
  std::string owner;
  std::optional<Duration> wait_from{}, evicted{}, gone{};
};

struct NodeResult {
  std::string name;
  std::string pool{};
  bool ready = true;
  bool cordoned = false;
  std::size_t pods = 0;
  Verdict verdict = Verdict::not_rehearsed;
  std::optional<Duration> took{};           // time of the drain, if it ended
  std::vector<Culprit> blocked_by{};        // empty unless the verdict is `blocked`
  std::vector<std::string> without_room{};  // pods that have no node after the drain
  std::vector<Step> timeline{};
};

// The findings of an earlier audit: key → severity.
using Baseline = std::map<std::string, Severity>;

struct Report {
  WallTime time{};            // time of the snapshot
  std::string source;         // where the objects come from: a file, a directory, the URL of the API server
  bool of_manifests = false;  // the objects are manifests: there are no nodes, and the pods are expected ones
  std::vector<std::string> assumed{};
  std::size_t pods = 0;
  std::size_t owners_in_all = 0;    // also those without a finding
  std::vector<NodeResult> nodes{};  // sorted by name
  std::vector<Owner> owners{};      // those with findings: the worst first, then by number of nodes, then by name
  std::size_t known = 0;            // findings that were left out because the baseline has them

  std::size_t count(Severity severity) const;
  std::size_t count(Verdict verdict) const;
};

}  // namespace haulout::audit
