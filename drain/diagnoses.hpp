// "This will never succeed, because …; fix it with …": conditions under which waiting alone does not help, as data.
//
// diagnose() is pure and says what is true now. DiagnosisBoard turns that into raised and withdrawn diagnoses: each is
// raised once its test has held for its hold time (0 to 25 s, where the test itself says no longer) and withdrawn when
// the test fails. They never stop the retries.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "drain/diagnosis_fact.hpp"
#include "drain/pipeline.hpp"
#include "drain/report.hpp"

namespace haulout::drain {

// What diagnose() looks at besides the pipeline.
struct NodeFacts {
  std::string name;
  bool gone = false;
  bool expect_cordon = false;  // the cordon was acknowledged
  bool unschedulable = true;
  std::string unschedulable_manager{};
  std::optional<Error> pods_error{};  // why the view of pods is not live
  bool ready = true;
  std::string own_uid{};    // of the pod that we run in; empty: none of this cluster
  Duration server_ahead{};  // of our clock
  WallTime server_now{};
};

// What was asked about pods that have been held for a while (drain/inquiries.hpp).
struct Known {
  std::map<std::string, std::vector<k8s::Pod>> members{};  // every pod that a budget selects, by the budget's UID
  std::map<std::string, std::string> namespaces{};         // what holds a namespace that is dying, by its name
  std::map<std::string, std::optional<k8s::Service>> services{};  // of webhooks, "ns/name"; nullopt: it does not exist
  std::map<std::string, std::string> local_volumes{};             // of a pod, by its UID: what binds it to this node
};

// Parked, or tried again after that: a pod keeps its diagnosis until the try has succeeded.
bool is_held(const TrackedPod& tracked);

// What such a finding is about: these pods, which it holds up.
Scope about(std::span<const TrackedPod* const> pods);

// A namespace that takes longer to die than this waits for something.
inline constexpr Duration namespace_hold = std::chrono::minutes(5);

// Single findings, for whoever has found them out in another way: PDB_OVERLAP, DO_NOT_DISRUPT, LOCAL_PV; and
// NS_TERMINATING_STUCK, of a namespace that holds these pods (one at least), `cause`: what it waits for, or empty.
DiagnosisFact overlap_fact(const k8s::Pod& pod, std::string message);
DiagnosisFact protected_fact(const k8s::Pod& pod, const std::string& message);
DiagnosisFact local_volume_fact(const k8s::Pod& pod, std::string message);
DiagnosisFact namespace_fact(const std::string& ns, const std::vector<const k8s::Pod*>& pods, const std::string& cause);

// What keeps a pod that is being deleted; `overdue`: Pipeline::place_margin past the end of its grace period. Nothing:
// its time is not up, or the node, which is not Ready, keeps it.
std::optional<DiagnosisFact> diagnose_leaving(const k8s::Pod& pod, bool overdue, bool node_ready);

// Each subject has at most one of the findings that say why it is held.
std::vector<DiagnosisFact> diagnose(const Pipeline& pipeline, const NodeFacts& node, const Known& known = {});

class DiagnosisBoard {
 public:
  struct Changes {
    std::vector<Diagnosis> raised;
    std::vector<Diagnosis> withdrawn;
  };
  Changes update(const std::vector<DiagnosisFact>& facts, TimePoint now, WallTime wall);
  // When a fact that holds now will have held long enough; max() if none is pending.
  TimePoint next_due(TimePoint now) const;
  std::vector<Diagnosis> active() const;

 private:
  struct Entry {
    Diagnosis diagnosis;
    TimePoint due;
    bool raised = false;
  };
  std::map<std::pair<std::string, std::string>, Entry> entries_;  // by code and subject
};

}  // namespace haulout::drain
