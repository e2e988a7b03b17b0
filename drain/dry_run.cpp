#include "drain/dry_run.hpp"

#include <fmt/format.h>

#include "drain/eviction.hpp"
#include "drain/text.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

constexpr unsigned most_tries = 5;

bool worth_another_try(const Error& error) {
  const EvictionVerdict verdict = classify_eviction(error);
  return verdict == EvictionVerdict::retry || verdict == EvictionVerdict::throttle;
}

// Sends the eviction of one pod as a dry run, and returns the server's answer. Repeats the request only after transient
// errors and throttling, because such an answer does not depend on the pod.
asio::awaitable<Result<>> simulate_eviction(Session& session, k8s::Pod pod) {
  Backoff backoff(backoff_after(EvictionVerdict::retry));
  for (unsigned attempt = 1;; ++attempt) {
    const Result<> answer = co_await request_removal(session, pod.uid, pod.ns, pod.name);
    if (answer || attempt == most_tries || !worth_another_try(answer.error())) co_return answer;
    co_await session.clock().sleep_until(session.now() + backoff.next(session.rng(), answer.error().retry_after));
  }
}

}  // namespace

asio::awaitable<bool> dry_run(Session& session, Pipeline& pipeline) {
  std::size_t would_go = 0;
  std::size_t blocked = 0;
  std::map<std::string, std::size_t> guarded;  // number of evictable pods that use up a disruption, by budget UID
  const auto& budgets = pipeline.book().budgets();
  pipeline.start(session.now());
  for (const TrackedPod* tracked : pipeline.leaving())
    if (tracked->state == PodState::parked) ++blocked;  // by policy; the report has the reason
  for (const auto& [uid, name] : pipeline.plan()) {
    Result<> answer;
    if (session.options().dry_run == DryRunMode::server) {
      answer = co_await simulate_eviction(session, pipeline.pods().at(uid).pod);
      if (!answer && classify_eviction(answer.error()) == EvictionVerdict::gone) continue;
      pipeline.dry_run_answered(uid, answer);
    }
    ++(answer ? would_go : blocked);
    const TrackedPod& tracked = pipeline.pods().at(uid);
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
    if (session.options().delete_instead_of_evict || found == budgets.end()) continue;
    const auto allowed = static_cast<std::size_t>(std::max(0, found->second.disruptions_allowed));
    if (count > allowed)
      message += fmt::format("; PodDisruptionBudget {} allows {} of its {} to be evicted at once", found->second.key(),
                             allowed, pods(count));
  }
  session.ending().end(blocked == 0 ? Outcome::drained : Outcome::blocked, std::move(message));
  session.emit(EventType::finished, session.ending().message());
  co_return session.ending().is(Outcome::drained);
}

}  // namespace haulout::drain
