// `--dry-run`: what would happen, without waiting for anything. The server-side form sends each eviction with
// dryRun=All, so that admission and budgets have their say; a dry run reserves nothing, so how many of a budget's pods
// can go at once is arithmetic on its status.
#include "drain/drain_impl.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

asio::awaitable<bool> Drain::Impl::dry_run() {
  std::size_t would_go = 0;
  std::size_t blocked = 0;
  pipeline_->start(now());
  if (options_.dry_run == DryRunMode::server) {
    // A simulated eviction is over as soon as it is answered, so each pod is asked once, in order.
    for (const auto& [uid, name] : pipeline_->plan()) {
      const auto& pod = pipeline_->pods().at(uid).pod;
      Result<> answer;
      if (options_.delete_instead_of_evict) {
        answer = co_await client_.delete_pod(pod.ns, pod.name, delete_options(uid), within(evict_timeout));
      } else {
        answer = co_await client_.evict(pod.ns, pod.name, delete_options(uid), within(evict_timeout));
      }
      pipeline_->dry_run_answered(uid, answer);
      ++(answer ? would_go : blocked);
    }
  } else {
    would_go = pipeline_->plan().size();
  }
  end(blocked == 0 ? Outcome::drained : Outcome::blocked,
      blocked == 0 ? fmt::format("dry run: {} pod{} would be evicted", would_go, would_go == 1 ? "" : "s")
                   : fmt::format("dry run: {} pod{} could be evicted now, {} could not", would_go,
                                 would_go == 1 ? "" : "s", blocked));
  emit(EventType::finished, nullptr, nullptr, report_.message);
  co_return report_.outcome == Outcome::drained;
}

}  // namespace haulout::drain
