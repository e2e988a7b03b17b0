// What a drain did, why, and what is left. Plain data: agent/ turns it into text, JSON and exit codes.
// Reasons are CamelCase and stable, messages are for people.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "drain/diagnosis_fact.hpp"
#include "placement/pod_fit.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::drain {

enum class Outcome {
  drained,    // nothing is left but skipped pods
  blocked,    // the deadline came first
  refused,    // policy says no; nothing was touched
  cancelled,  // the caller stopped it
  node_gone,  // the Node was deleted, or replaced by another of the same name
  failed,     // it could not be carried out: connection, permission, an answer that makes no sense
};

enum class PodOutcome {
  planned,      // not yet tried (also: dry run)
  skipped,      // left where it is, on purpose
  refused,      // policy forbids the drain because of it
  waiting,      // parked, with a reason
  terminating,  // evicted or deleted, still there
  evicted,      // vanished after our eviction
  gone,         // vanished without it
};

enum class Verdict { evict, skip, refuse, park };

struct PodReport {
  std::string ns;
  std::string name;
  std::string uid;
  std::string controller;  // "ReplicaSet/web-6d4b9", empty without
  Verdict verdict = Verdict::evict;
  PodOutcome outcome = PodOutcome::planned;
  std::string reason;  // why this verdict or this wait: "DaemonSetManaged", "BlockedByBudget", …
  std::string message;
  std::uint32_t attempts = 0;          // eviction requests sent
  std::optional<WallTime> evicted_at;  // the eviction was accepted
  std::optional<WallTime> vanished_at;
  std::string key() const { return ns + "/" + name; }
};

enum class VolumeOutcome {
  unclear,        // which pods use it is being found out
  in_use,         // by pods that have yet to leave
  kept,           // by a pod that stays on the node: not waited for
  detaching,      // its last pod has gone, its VolumeAttachment not: waited for
  detached,       // its VolumeAttachment has gone
  leaked,         // no pod of the node was seen to use it: not waited for
  inline_volume,  // no object tells who uses it: not waited for
};

// Of a volume that is detached here: whether another node has it. Advice (drain/reattach.hpp): no outcome of a drain
// depends on it.
enum class Reattach {
  none,       // not looked at: not asked for, or nothing brings the pod back that used it
  waiting,    // waited for
  attached,   // another node has it
  unclaimed,  // no other node asks for it: not waited for
  late,       // the limit came first
};

// One VolumeAttachment of the node.
struct VolumeReport {
  std::string volume;      // PersistentVolume; empty: an inline volume
  std::string claim;       // "shop/data-db-0"; empty: not known, or none
  std::string driver;      // CSI
  std::string attachment;  // VolumeAttachment
  VolumeOutcome outcome = VolumeOutcome::unclear;
  // While detaching: what it waits for, or what the driver says against it. When detached: why it is waited for once
  // more, or is not.
  std::string message;
  std::optional<WallTime> unused_at;  // when its last pod was seen to have gone
  std::optional<WallTime> detached_at;
  Reattach reattach = Reattach::none;
  std::string attached_to;  // the Node that has it, when another one does

  // "volume pv-data (claim shop/data)".
  std::string text() const;
};

struct CordonReport {
  bool before = false;
  bool after = false;
  // Whose cordon it is now: "haulout" (this run's, or an earlier run's mark), "other" (a human's or another tool's), ""
  // none.
  std::string owner;
  bool known = true;  // false: the drain was stopped while the answer to a change of it was still out
};

struct Diagnosis {
  std::string code;     // "PDB_ZERO", …
  std::string subject;  // "PodDisruptionBudget shop/web", "pod shop/web-0", "node n1"
  std::string message;  // what, why and the way out
  WallTime since{};
  Scope scope{};
  bool operator==(const Diagnosis&) const = default;
};

struct RequestCounts {
  std::uint64_t total = 0;
  std::map<std::string, std::uint64_t> by_verb;  // get, list, watch, patch, create, delete
};

struct Report {
  std::string node;
  Outcome outcome = Outcome::failed;
  std::string message;  // one sentence for people
  WallTime started_at{};
  WallTime finished_at{};
  CordonReport cordon;
  std::vector<PodReport> pods;          // sorted by namespace and name
  std::vector<VolumeReport> volumes;    // attached when the drain began or later; empty unless volumes are waited for
  std::vector<placement::PodFit> fits;  // before anything was touched; empty unless it was asked for
  std::vector<Diagnosis> diagnoses;     // active at the end
  RequestCounts requests;
  // Set when the outcome is `failed`. connection_failed: credentials, network or permission, not the cluster's state.
  std::optional<Error> error;
  bool connection_failed = false;
};

std::string_view to_string(Outcome outcome);  // "drained", "node-gone", …
std::string_view to_string(PodOutcome outcome);
std::string_view to_string(Verdict verdict);
std::string_view to_string(VolumeOutcome outcome);  // "in-use", …
std::string_view to_string(Reattach reattach);

}  // namespace haulout::drain
