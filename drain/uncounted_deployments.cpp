#include "drain/uncounted_deployments.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "drain/reasons.hpp"

namespace haulout::drain {

namespace {

// Returns true if no pod of the marked pod's Deployment has an owner.
bool is_uncounted(ControllerBook& controllers, const k8s::Pod& marked) {
  const ControllerGroup* group = controllers.group_of(marked);
  if (!group || group->controller.gone || !controllers.sees(marked.ns)) return false;
  return controllers.tally_of(*group).owned == 0;
}

}  // namespace

void UncountedDeployments::begin_round() {
  std::erase_if(marked_, [](const auto& entry) { return !entry.second.pod; });
  for (auto& [uid, marked] : marked_) marked.pod.reset();
}

void UncountedDeployments::note(const k8s::Pod& pod, TimePoint now) {
  Marked& marked = marked_[pod.uid];
  marked.pod = pod;
  if (is_uncounted(controllers_, pod)) marked.until = now + recount_limit;
}

std::optional<EvictionGuard::Hold> UncountedDeployments::held(const k8s::Pod& pod, TimePoint now) const {
  for (const auto& [uid, marked] : marked_) {
    if (!marked.pod || uid == pod.uid) continue;
    const bool uncounted = is_uncounted(controllers_, *marked.pod);
    if (!uncounted && marked.until <= now) continue;
    const std::string budget = budget_of_both_(pod, *marked.pod);
    if (budget.empty()) continue;
    return EvictionGuard::Hold{
        reason::awaiting_replacement,
        fmt::format(
            "waiting for the replacement of pod {} (--surge): as long as no pod of its Deployment has an owner, "
            "PodDisruptionBudget {} does not count the Deployment, and allows too much",
            marked.pod->key(), budget),
        uncounted ? TimePoint::max() : marked.until};
  }
  return std::nullopt;
}

TimePoint UncountedDeployments::next_due(TimePoint now) const {
  TimePoint next = TimePoint::max();
  for (const auto& [uid, marked] : marked_)
    if (marked.pod && marked.until > now && !is_uncounted(controllers_, *marked.pod))
      next = std::min(next, marked.until);
  return next;
}

}  // namespace haulout::drain
