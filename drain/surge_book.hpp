// Decides when a pod is surged, that is replaced before it is evicted (`--surge`), and when it is given back.
// SurgeJudge decides which pods. SurgeFeed carries the decisions out. Pure.
//
// To surge a pod of a Deployment, the drain takes the label pod-template-hash off it. The ReplicaSet then does not
// select the pod any more, lets it go, and creates a replacement on another node, because this one is cordoned. The pod
// keeps its other labels, so Services and budgets still select it. When the replacement is Ready, the pod is evicted.
// So the number of Ready pods of the Deployment never falls below what it was (see docs/decisions.md).
//
// A pod goes through these states:
//   - It waits for its turn, as without surge, and then until fewer pods of its Deployment are surged than the
//     Deployment's maxSurge (at least one at a time).
//   - It is surged (k8s::Pod::surged()), and waits until enough other pods are Ready. Then the guard lets it go.
//   - If that takes longer than Guards::surge_limit, the drain restores the label, waits until the ReplicaSet has
//     adopted the pod, and removes the mark. The ReplicaSet deletes a pod that is too many. After a pause the drain
//     surges the pod again. The same happens if the replacement is Ready, but the eviction is refused for an hour.
// The number of pods that must be Ready stands in the pod's mark, so that it outlives a crash of the drain.
//
// A drain without surge evicts a pod that an earlier one has surged, if its replacement is Ready. Otherwise it gives
// the pod back, and evicts it after that. While the machine goes down (Policy::waits_for_work is false) the book holds
// no pod and returns no step.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "drain/controller_book.hpp"
#include "drain/diagnoses.hpp"
#include "drain/guards.hpp"
#include "drain/options.hpp"
#include "drain/pipeline.hpp"
#include "drain/surge_judge.hpp"
#include "drain/uncounted_deployments.hpp"
#include "k8s/objects.hpp"
#include "k8s/surge_mark.hpp"
#include "retry/backoff.hpp"
#include "retry/rng.hpp"

namespace haulout::drain {

// What is known of the pods that a drain has surged; for give_back_surged().
struct Surged {
  bool unanswered = false;  // the answer to an earlier patch is lost, so it may still take effect
  // By UID of the pod. A pod that has lost its mark meanwhile is given back by the one that is here.
  std::map<std::string, k8s::SurgeMark> marks{};
};

class SurgeBook final : public EvictionGuard {
 public:
  // How long a drain without surge waits until a ReplicaSet has adopted a pod that was given back, and how long any
  // drain waits until a ReplicaSet has deleted the pod that is then too many. Longer than a controller manager takes to
  // replace one that has crashed (its Lease expires after 15 s).
  static constexpr Duration adoption_limit = std::chrono::minutes(1);
  // If the replacement of a pod is Ready, but the eviction of the pod is refused for this time, the drain gives the pod
  // back. While the pod has no owner, rollouts and scaling do not reach it.
  static constexpr Duration refusal_limit = std::chrono::hours(1);
  // How many pods of the node may be surged at the same time. Each needs room for its replacement.
  static constexpr std::size_t most_surged = 20;

  // Borrows `options` and `controllers`. A ControllerGuard before this guard, or ControllersFeed alone if surge is off,
  // fills `controllers`.
  SurgeBook(const Options& options, ControllerBook& controllers, Rng& rng, SurgeBudgets budgets, BudgetOfBoth both)
      : options_(options),
        controllers_(controllers),
        rng_(rng),
        judge_(options.guards, std::move(budgets)),
        uncounted_(controllers, std::move(both)) {}

  bool is_on() const;

  std::optional<Hold> held(const k8s::Pod& pod, TimePoint now) override;
  void leaving(const k8s::Pod& pod, Leaves leaves) override;

  SurgeFacts& facts() { return judge_.facts(); }

  // A patch to send now. Each stays in flight until answered() is called for its pod.
  struct Step {
    enum class Kind { surge, relabel, unmark } kind = Kind::surge;
    k8s::Pod pod;
    k8s::SurgeMark mark{};  // of a step `surge`: the mark to write, still without `run`, `by`, `at` and `node`
  };
  // Returns at most `most` steps that are due, those that give pods back first. If `may_begin` is false, none of them
  // surges a pod. `leaving` is Pipeline::leaving().
  std::vector<Step> take_steps(const std::vector<TrackedPod*>& leaving, std::size_t most, bool may_begin,
                               TimePoint now);
  // Records the answer to a step, which has the pod as the server stored it. A conflict is tried again soon, because
  // the watch shows the newer pod. If an admission webhook has removed the mark, take_steps() restores the label.
  void answered(const Step& step, const Result<k8s::Pod>& answer, TimePoint now);
  // Records that a step `relabel` was not sent, because the ReplicaSet does not exist any more. The pod stays as it is
  // until it may be evicted.
  void orphaned(const Step& step);
  // Returns true if a pod was surged, or may have been: a request was sent.
  bool may_have_surged() const;
  Surged surged() const;
  std::size_t requests_out() const;
  // Returns true if the pod is surged, or will be.
  bool covers(const k8s::Pod& pod);
  // Returns the next time after `now` at which take_steps() or facts() can have more; max() if there is none.
  TimePoint next_due(TimePoint now) const;

  // Appends the diagnoses:
  //   SurgeImpossible  Pods are evicted without a replacement, because they cannot be surged.
  //   SurgeFailed      No replacement was Ready in time, or the pod could not be changed. It waits.
  //   RightMissing     The drain may not patch the pod, or may not read its namespace, its claims or its budgets.
  void diagnose(const std::vector<TrackedPod*>& leaving, std::vector<DiagnosisFact>& facts);

 private:
  // The state of a pod that was surged, or is to be.
  struct Attempt {
    bool request_out = false;
    bool answer_lost = false;
    // The last step that the server has carried out or refused because of a newer version, and the version of the pod
    // for which it was sent. The step is not sent again for this version until `done_until`: the watch will show a
    // newer one, unless etcd is restored from a backup.
    std::optional<Step::Kind> done{};
    std::string done_for{};
    TimePoint done_until{};
    bool sent = false;                     // a request to surge it was sent
    std::optional<k8s::SurgeMark> mark{};  // the mark that this drain has written, or has found
    // The largest ControlledPod::number of its group when this drain surged it. Pods with a larger one came later.
    std::optional<std::uint64_t> last_before{};
    std::optional<TimePoint> first_seen{};  // with a mark
    // Since when it has been surged without a Ready replacement, as far as this drain knows.
    std::optional<TimePoint> surged_since{};
    std::optional<TimePoint> replaced_since{};  // since when its replacement has been Ready
    std::optional<TimePoint> back_since{};      // seen with its label again, and with its mark
    bool adopted = false;                       // seen with its mark, its label and an owner
    std::optional<TimePoint> lost_since{};      // seen without its mark, and without its label or an owner
    std::optional<TimePoint> alone_since{};     // see held_as_only_owned()
    bool failed = false;                        // it is tried again after `not_before` and `retry_at`, because of `why`
    unsigned failures = 0;                      // requests that failed one after the other
    bool right_missing = false;
    bool refused = false;    // the server will not accept the last step, however often it is sent
    bool orphan = false;     // its ReplicaSet does not exist any more
    TimePoint not_before{};  // end of the pause after a replacement that did not become Ready
    TimePoint retry_at{};    // end of the pause after a request that failed
    std::string why{};
    // The most Ready pods of its Deployment that were seen while it was surged, among those that existed before that.
    std::int64_t most_ready = 0;
    Backoff pause{BackoffOptions{}};  // after a replacement that did not become Ready
    Backoff retry{BackoffOptions{}};  // after a request that failed

    // Returns true if somebody has removed the mark, so that the pod looks as if it had never had a controller.
    bool has_lost(const k8s::Pod& pod) const;
    // The pod is one like any other: it was given back, or it was never surged.
    void forget_mark();
    void note_loss(Rng& rng, TimePoint now);
    // Returns the step that restores the label.
    Step relabel(const k8s::Pod& pod);
  };

  // Returns how many other pods must be Ready before this marked one may be evicted.
  std::int64_t needed(const ControllerGroup& group, const k8s::Pod& pod) const;
  bool is_replaced(const ControllerGroup& group, const k8s::Pod& pod) const;
  std::optional<Hold> held_with_mark(const k8s::Pod& pod, const Attempt& attempt, TimePoint now);
  std::optional<Hold> held_while_surplus(const k8s::Pod& pod, TimePoint now);
  std::optional<Hold> held_as_only_owned(const k8s::Pod& pod, const ControllerGroup& group, TimePoint now);
  Attempt& attempt_of(const k8s::Pod& pod);
  // Returns true while the request of such a step is in flight, or until the watch shows what it has changed, or
  // should have.
  bool is_under_way(const k8s::Pod& pod, Step::Kind kind, TimePoint now) const;
  // Which pods of a group existed before the first of its pods that are surged now was surged. For one that this drain
  // has surged, `number` says it; for others, `created`.
  struct Before {
    std::optional<std::uint64_t> number{};
    std::optional<WallTime> created{};
    std::size_t surged = 0;        // pods of the group that are surged, or will be when a request is answered
    std::size_t owned = 0;         // those of them that still have their owner
    std::size_t replacements = 0;  // how many replacements of them there are at most
    std::int64_t need = 0;         // how many Ready pods they leave behind at least
    // Ready pods of the group whose signal is in flight. The ControllerBook counts them as leaving.
    std::int64_t asked = 0;

    bool has(const ControlledPod& member) const;
    // Returns how many of them, without `pod`, are Ready and stay for now.
    std::int64_t others_ready(const ControllerBook& controllers, const ControllerGroup& group,
                              const k8s::Pod& pod) const;
    // Returns how many pods of the group are Ready, with `pod`, less the replacements that must be among them.
    std::int64_t due(const ControllerBook& controllers, const ControllerGroup& group, const k8s::Pod& pod) const;
  };
  using BeforeOf = std::map<const ControllerGroup*, Before>;
  BeforeOf before_of(const std::vector<TrackedPod*>& leaving, TimePoint now) const;
  // Return the step that is due for a pod with a mark, or for one that has lost it.
  std::optional<Step> step_back(const k8s::Pod& pod, const BeforeOf& before, TimePoint now);
  std::optional<Step> step_of_lost(const k8s::Pod& pod, Attempt& attempt, TimePoint now);
  bool may_surge(const TrackedPod& tracked, ControllerGroup& group, const Before& before, TimePoint now);

  const Options& options_;
  ControllerBook& controllers_;
  Rng& rng_;
  SurgeJudge judge_;
  UncountedDeployments uncounted_;
  std::map<std::string, Attempt> attempts_;  // by UID of the pod
  // A ReplicaSet of the controller may delete a pod that is too many.
  struct Surplus {
    TimePoint until;        // it has done so by then
    bool seen = false;      // the controller has more pods than it wants
    TimePoint recounted{};  // by then the disruption controller has written what it has counted after that
  };
  std::map<std::string, Surplus> surplus_;  // by controller_key()
};

}  // namespace haulout::drain
