// Decides which pods are surged, that is replaced before they are evicted, and when (`--surge`). SurgeFeed carries the
// decisions out. Pure.
//
// To surge a pod of a Deployment, the drain takes the label pod-template-hash off it. The ReplicaSet then does not
// select the pod any more, lets it go, and creates a replacement on another node, because this one is cordoned. The pod
// keeps its other labels, so Services and budgets still select it. When the replacement is Ready, the pod is evicted.
// So the number of Ready pods of the Deployment never falls below what it was (P1 and `--surge` in docs/decisions.md).
//
// A pod goes through these states:
//   - It waits until fewer pods of its Deployment are surged than the Deployment's maxSurge (at least one at a time).
//   - It is surged (k8s::Pod::surged()), and waits until enough other pods are Ready. Then the guard lets it go.
//   - If that takes longer than Guards::surge_limit, the drain gives the label back: the ReplicaSet adopts the pod
//     again and deletes the replacement. After a pause the drain surges the pod again.
// The number of pods that must be Ready stands in the pod's mark, so that it outlives a crash of the drain.
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
#include "drain/pipeline.hpp"
#include "k8s/objects.hpp"
#include "retry/backoff.hpp"
#include "retry/rng.hpp"

namespace haulout::drain {

// Returns why the pods of this controller cannot be surged; empty if they can.
std::string surge_obstacle(const Controller& controller);
// Returns how many pods of the Deployment may be surged at the same time: its maxSurge, a percentage rounded up as the
// Deployment controller does, but at least one.
std::size_t surge_places(const Controller& deployment);

class SurgeBook final : public EvictionGuard {
 public:
  // Returns true if a budget of the pod allows no disruption although all its pods are healthy.
  using BudgetClosed = std::function<bool(const k8s::Pod&)>;

  // Borrows `controllers`, which a ControllerGuard before this guard fills.
  SurgeBook(const Guards& guards, ControllerBook& controllers, Rng& rng, BudgetClosed budget_closed)
      : guards_(guards), controllers_(controllers), rng_(rng), budget_closed_(std::move(budget_closed)) {}

  bool is_on() const { return guards_.surge != Surge::off; }

  std::optional<Hold> held(const k8s::Pod& pod, TimePoint now) override;
  void leaving(const k8s::Pod&, Leaves) override {}

  // What has to be read before it is known whether a pod can be surged: the annotations of its namespace, and the
  // access modes of its claims. SurgeFeed reads it and reports the answer.
  struct Question {
    std::string ns;
    std::string claim;  // empty: the namespace itself
    auto operator<=>(const Question&) const = default;
  };
  std::optional<Question> next_question(TimePoint now) const;
  // `annotation`: the value of haulout.dev/surge; empty if the namespace has none or may not be read.
  void namespace_known(const std::string& ns, std::string annotation);
  // `obstacle`: why the claim keeps its pods from being surged; empty if it does not.
  void claim_known(const Question& claim, std::string obstacle);
  void not_answered(const Question& question, TimePoint now);

  // A patch to send now. Each stays in flight until answered() is called for its pod.
  struct Step {
    enum class Kind { surge, give_back } kind = Kind::surge;
    k8s::Pod pod;
    std::int64_t ready = 0;  // for the mark: Ready pods of the Deployment, this one included
  };
  // Returns the steps that are due. `leaving` is Pipeline::leaving().
  std::vector<Step> take_steps(const std::vector<TrackedPod*>& leaving, TimePoint now);
  // Records the answer to a step. A conflict is tried again soon, because the watch shows the newer pod.
  void answered(const Step& step, const Result<>& answer, TimePoint now);
  // Returns true if the answer to a step is lost or has not come yet, so that it may have taken effect.
  bool any_unanswered() const;
  // Returns the next time after `now` at which take_steps() or next_question() can have more; max() if there is none.
  TimePoint next_due(TimePoint now) const;

  // Appends the diagnoses:
  //   SurgeImpossible  A pod is evicted without a replacement, because its kind cannot be surged.
  //   SurgeFailed      No replacement was Ready in time. The pod was given back and waits.
  //   RightMissing     The drain may not patch the pod.
  void diagnose(const std::vector<TrackedPod*>& leaving, std::vector<DiagnosisFact>& facts);

 private:
  enum class Plan { evict, surge, unknown, impossible };
  struct Judgement {
    Plan plan = Plan::evict;
    std::string why{};  // for `unknown` and `impossible`
  };
  // The state of a pod that was surged, or is to be.
  struct Attempt {
    bool request_out = false;
    bool answer_lost = false;
    std::optional<TimePoint> surged_since{};
    bool failed = false;  // it was given back, or may not be surged; it waits until `not_before`
    TimePoint not_before{};
    std::string why{};  // the last failure
    bool forbidden = false;
    Backoff pause;  // after a replacement that did not become Ready
    Backoff retry;  // after a request that failed
  };

  // Adds what is not known yet to the questions.
  Judgement judge(const k8s::Pod& pod, const ControllerGroup& group);
  Judgement judge_claims(const k8s::Pod& pod);
  // Returns how many pods of the group other than this one are Ready and stay for now.
  std::int64_t others_ready(const ControllerGroup& group, const k8s::Pod& pod) const;
  // Returns how many other pods must be Ready before this surged one may be evicted.
  static std::int64_t needed(const ControllerGroup& group, const k8s::Pod& pod);
  bool is_replaced(const ControllerGroup& group, const k8s::Pod& pod) const;
  std::string why_not_replaced(const ControllerGroup& group) const;
  Attempt& attempt_of(const k8s::Pod& pod);
  std::optional<Step> step_of_surged(const ControllerGroup& group, const k8s::Pod& pod, TimePoint now);

  const Guards& guards_;
  ControllerBook& controllers_;
  Rng& rng_;
  BudgetClosed budget_closed_;
  std::map<std::string, Attempt> attempts_;        // by UID of the pod
  std::map<std::string, std::string> namespaces_;  // annotation of each namespace that is known
  std::map<Question, std::string> claims_;         // obstacle of each claim that is known
  std::map<Question, TimePoint> questions_;        // open questions, and the earliest time of the next request
};

}  // namespace haulout::drain
