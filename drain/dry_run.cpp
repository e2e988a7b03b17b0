// `--dry-run`: reports what would happen, and waits for nothing. The server-side form sends each eviction with
// dryRun=All, so that admission and budgets are evaluated. A dry run reserves nothing. So the number of pods that a
// budget lets go at once is computed from its status.
#include <fmt/format.h>

#include "drain/drain_impl.hpp"
#include "drain/text.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

constexpr unsigned most_tries = 5;

bool worth_another_try(const Error& error) {
  const EvictionVerdict verdict = classify_eviction(error);
  return verdict == EvictionVerdict::retry || verdict == EvictionVerdict::throttle;
}

}  // namespace

// The server's answer completes a simulated eviction, so each pod is asked for once. The request is repeated only if
// the answer says nothing about the pod (transient errors and throttling).
asio::awaitable<Result<>> Drain::Impl::simulate_eviction(std::string uid) {
  const k8s::Pod pod = pipeline_->pods().at(uid).pod;
  Backoff backoff(backoff_after(EvictionVerdict::retry));
  for (unsigned attempt = 1;; ++attempt) {
    const Result<> answer = co_await request_removal(uid, pod.ns, pod.name);
    if (answer || attempt == most_tries || !worth_another_try(answer.error())) co_return answer;
    co_await clock_.sleep_until(now() + backoff.next(rng_, answer.error().retry_after));
  }
}

asio::awaitable<bool> Drain::Impl::dry_run() {
  std::size_t would_go = 0;
  std::size_t blocked = 0;
  std::map<std::string, std::size_t> guarded;  // number of pods that could go and use a disruption, by budget UID
  const auto& budgets = pipeline_->book().budgets();
  pipeline_->start(now());
  for (const TrackedPod* tracked : pipeline_->leaving())
    if (tracked->state == PodState::parked) ++blocked;  // by policy; the report has the reason
  for (const auto& [uid, name] : pipeline_->plan()) {
    Result<> answer;
    if (options_.dry_run == DryRunMode::server) {
      answer = co_await simulate_eviction(uid);
      if (!answer && classify_eviction(answer.error()) == EvictionVerdict::gone) continue;
      pipeline_->dry_run_answered(uid, answer);
    }
    ++(answer ? would_go : blocked);
    const TrackedPod& tracked = pipeline_->pods().at(uid);
    if (answer)
      for (const std::string& budget : *tracked.budgets)
        if (const auto found = budgets.find(budget);
            found != budgets.end() && !BudgetBook::exempt(tracked.pod, found->second))
          ++guarded[budget];
  }
  std::string message = blocked == 0
                            ? fmt::format("dry run: {} would be evicted", pods(would_go))
                            : fmt::format("dry run: {} could be evicted now, {} could not", pods(would_go), blocked);
  for (const auto& [uid, count] : guarded) {
    const auto found = budgets.find(uid);
    if (options_.delete_instead_of_evict || found == budgets.end()) continue;
    const auto allowed = static_cast<std::size_t>(std::max(0, found->second.disruptions_allowed));
    if (count > allowed)
      message += fmt::format("; PodDisruptionBudget {} allows {} of its {} to be evicted at once", found->second.key(),
                             allowed, pods(count));
  }
  end(blocked == 0 ? Outcome::drained : Outcome::blocked, std::move(message));
  emit(EventType::finished, nullptr, nullptr, report_.message);
  co_return report_.outcome == Outcome::drained;
}

}  // namespace haulout::drain
