// Decides which pods are surged (`--surge`), that is replaced before they are evicted: by the mode, the annotations,
// and whether the pod can have a replacement beside it. SurgeBook decides when. Pure.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "drain/controller_book.hpp"
#include "drain/guards.hpp"
#include "k8s/objects.hpp"
#include "retry/clock.hpp"

namespace haulout::drain {

// Returns why the pods of this controller cannot be surged; empty if they can.
std::string surge_obstacle(const Controller& controller);
// Returns why this pod of the controller cannot be surged, as far as is known without its claims; empty if it can.
std::string surge_obstacle(const k8s::Pod& pod, const Controller& controller);
// Returns why a pod that mounts this claim cannot be surged; empty if it can.
std::string surge_obstacle(const k8s::PersistentVolumeClaim& claim);
// Returns true if the budget allows no disruption although all its pods are healthy, and no eviction is in progress.
bool is_closed_though_healthy(const k8s::PodDisruptionBudget& budget);
// Returns true if the budget counts the replicas of other controllers than one with `replicas`, and counts a pod
// without a controller as healthy but not as expected (SurgeBudgets::shared).
bool counts_other_controllers(const k8s::PodDisruptionBudget& budget, std::int32_t replicas);
// Returns how many pods of the Deployment may be surged at the same time: its maxSurge, a percentage rounded up as the
// Deployment controller does, but at least one.
std::size_t surge_places(const Controller& deployment);

// What has to be read before it is known whether a pod can be surged: the annotations of its namespace, and the access
// modes of its claims. SurgeFeed reads it and reports the answers.
class SurgeFacts {
 public:
  struct Question {
    std::string ns;
    std::string claim;  // empty: the namespace itself
    auto operator<=>(const Question&) const = default;
  };
  // Return the value of haulout.dev/surge of the namespace (empty: it has none), and why the claim keeps its pods from
  // being surged (empty: it does not). Return nullptr and note the question if the answer is not known yet.
  const std::string* annotation_of(const std::string& ns);
  const std::string* obstacle_of(const Question& claim);

  std::optional<Question> next_question(TimePoint now) const;
  void namespace_known(const std::string& ns, std::string annotation);
  void claim_known(const Question& claim, std::string obstacle);
  // Records that the request failed. The question is asked again after a pause. If that cannot help, or if a right was
  // missing twice, the pods are not surged.
  void not_answered(const Question& question, const Error& error, TimePoint now);
  // Returns the next time after `now` at which next_question() can have one; max() if there is none.
  TimePoint next_due(TimePoint now) const;
  // The resources that may not be read, each with the error.
  const std::map<std::string, std::string>& missing_rights() const { return rights_; }

 private:
  struct Open {
    TimePoint not_before{};
    unsigned refusals = 0;
  };
  std::map<std::string, std::string> namespaces_;
  std::map<Question, std::string> claims_;
  std::map<Question, Open> questions_;
  std::map<std::string, std::string> rights_;
};

// What the SurgeJudge has to know about the budgets of a pod.
struct SurgeBudgets {
  std::function<bool()> visible;
  std::function<bool()> forbidden;  // they may not be read; otherwise they will be visible
  // Returns true if a budget of the pod allows no disruption although all its pods are healthy.
  std::function<bool(const k8s::Pod&)> closed;
  // Returns the name of a budget of the pod that counts the replicas of other controllers, too, and that counts a pod
  // without a controller as healthy but not as expected (`maxUnavailable`, or a percentage). It would allow one more
  // disruption if no pod of this Deployment had an owner. Empty if there is none. `replicas` are the Deployment's.
  std::function<std::string(const k8s::Pod&, std::int32_t replicas)> shared;
};

// Returns "true" or "false", the value of haulout.dev/surge; nullopt if there is none, or another one.
std::optional<std::string> surge_wish(const std::map<std::string, std::string>& annotations);

class SurgeJudge {
 public:
  enum class Plan { evict, surge, unknown, impossible };
  struct Judgement {
    Plan plan = Plan::evict;
    std::string why{};  // for `unknown` and `impossible`
  };

  // Borrows `guards`.
  SurgeJudge(const Guards& guards, SurgeBudgets budgets) : guards_(guards), budgets_(std::move(budgets)) {}

  SurgeFacts& facts() { return facts_; }
  const SurgeFacts& facts() const { return facts_; }
  const SurgeBudgets& budgets() const { return budgets_; }
  // Judges a pod without a mark. Notes the questions that have to be answered first (SurgeFacts).
  Judgement judge(const k8s::Pod& pod, const ControllerGroup& group);

 private:
  Judgement judge_claims(const k8s::Pod& pod);

  const Guards& guards_;
  SurgeBudgets budgets_;
  SurgeFacts facts_;
};

}  // namespace haulout::drain
