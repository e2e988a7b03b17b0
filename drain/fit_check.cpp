// Checks before the drain changes anything whether the pods that must leave fit on other nodes. Runs only if
// --check-fit asks for it, because it reads all nodes and pods of the cluster.
#include "drain/drain_impl.hpp"
#include "drain/insist.hpp"
#include "placement/fit.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

std::set<std::string> Drain::Impl::leaving_pods() const {
  std::set<std::string> leaving;
  for (const auto& [uid, tracked] : pipeline_->pods())
    if (tracked.state != PodState::left && !tracked.pod.terminating()) leaving.insert(uid);
  return leaving;
}

// Adds the answer `unknown` for each pod that its controller replaces elsewhere but that the check did not judge. The
// API server's list of all pods may lack such a pod.
void Drain::Impl::add_unanswered(const std::set<std::string>& leaving) {
  std::set<std::string> answered;
  for (const placement::PodFit& fit : report_.fits) answered.insert(fit.uid);
  for (const std::string& uid : leaving) {
    const k8s::Pod& pod = pipeline_->pods().at(uid).pod;
    const bool comes_back = pod.controller && !is_daemon_pod(pod) && !is_mirror(pod) && !pod.finished();
    if (comes_back && !answered.contains(uid))
      report_.fits.push_back({pod.key(),
                              uid,
                              placement::Fit::unknown,
                              {},
                              {},
                              "it is not among the pods of the cluster that the API server lists"});
  }
}

// Returns false if the drain has ended: --check-fit=block or require refuses it, or the check itself failed under one
// of them. With warn, reports what the check found, or why it failed, and returns true.
asio::awaitable<bool> Drain::Impl::check_fit() {
  // A drain that this run began earlier is not refused for lack of capacity: some of its pods were evicted already.
  const auto mark = mark_of(node_);
  const bool begun = mark && !options_.run_id.empty() && mark->run == options_.run_id;
  if (options_.fit == FitPolicy::off || begun) co_return true;
  std::set<std::string> closed = options_.drained_together;
  closed.insert(node_name_);
  const std::set<std::string> leaving = leaving_pods();
  const std::string what = "whether the pods of node " + node_name_ + " fit elsewhere is unknown";
  // With `warn` the check must not delay the drain without limit.
  const TimePoint limit = options_.fit == FitPolicy::warn ? now() + patience_with_others : TimePoint::max();
  auto fits = co_await insist<std::vector<placement::PodFit>>(
      what,
      [&](TimePoint until) {
        return placement::check_fit(client_, {leaving, closed}, options_.page_size, std::min(until, limit));
      },
      placement::fit_limit, limit);
  if (!fits) {
    if (options_.fit != FitPolicy::warn) co_return give_up(fits.error(), what + ", so nothing was changed");
    for (const PodReport& pod : pipeline_->reports())
      if (leaving.contains(pod.uid))
        report_.fits.push_back({pod.key(), pod.uid, placement::Fit::unknown, {}, {}, fits.error().message()});
    emit(EventType::fit_checked, nullptr, nullptr, what + ": " + fits.error().message());
    co_return true;
  }
  report_.fits = *std::move(fits);
  if (options_.fit == FitPolicy::require) add_unanswered(leaving);
  const std::string doubts = placement::summary(node_name_, report_.fits);
  const bool refused =
      (options_.fit != FitPolicy::warn && placement::count(report_.fits, placement::Fit::does_not_fit) != 0) ||
      (options_.fit == FitPolicy::require && placement::count(report_.fits, placement::Fit::unknown) != 0);
  if (refused) co_return end(Outcome::refused, doubts + "; so nothing was changed");
  if (!doubts.empty()) emit(EventType::fit_checked, nullptr, nullptr, doubts);
  co_return true;
}

}  // namespace haulout::drain
