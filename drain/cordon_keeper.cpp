#include "drain/cordon_keeper.hpp"

#include <fmt/format.h>

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

Task<CordonChange> noting_loss(Task<CordonChange> attempt, bool& lost) {
  auto change = co_await std::move(attempt);
  if (!change && k8s::is_transient(change.error())) lost = true;
  co_return change;
}

}  // namespace

void CordonKeeper::found(const k8s::Node& node) {
  report_.before = node.unschedulable;
  seen(node);
}

void CordonKeeper::seen(const k8s::Node& node) {
  report_.after = node.unschedulable;
  report_.owner = !node.unschedulable ? "" : cordon_owner(node) == CordonOwner::haulout ? "haulout" : "other";
}

asio::awaitable<std::optional<k8s::Node>> CordonKeeper::set(k8s::Node known) {
  const Options& options = session_.options();
  if (options.dry_run == DryRunMode::client) {
    session_.emit(EventType::cordoned, "dry run: not sent");
    co_return known;
  }
  const bool in_earnest = options.dry_run == DryRunMode::none;
  const CordonMark mark{options.run_id, options.cordoned_by, session_.client().server_now()};
  const std::string what = "node " + session_.node_name() + " could not be cordoned";
  change_ = !known.unschedulable && in_earnest ? Change::requested : Change::known;
  auto changed = co_await change(what, [&](TimePoint deadline) {
    return drain::cordon(session_.client(), session_.rng(), session_.node_name(), known.uid, mark,
                         in_earnest ? k8s::DryRun::none : k8s::DryRun::server, deadline);
  });
  if (!changed) {
    if (k8s::is_gone(changed.error())) {
      change_ = Change::known;
      session_.ending().end(Outcome::node_gone, "the Node was deleted before it was cordoned");
      co_return std::nullopt;
    }
    session_.ending().give_up(changed.error(), what);
    if (change_ == Change::requested) co_await undo_unanswered();
    co_return std::nullopt;
  }
  if (changed->before.uid != known.uid) {
    session_.ending().end(Outcome::node_gone,
                          "the Node was replaced by another of the same name before it was cordoned");
    co_return std::nullopt;
  }
  // If the response to the patch was lost, the next try finds the node already cordoned by this run.
  const auto mark_found = mark_of(changed->before);
  const bool by_lost_patch = changed->before.unschedulable && !known.unschedulable && mark_found &&
                             mark_found->run == options.run_id && cordon_owner(changed->before) == CordonOwner::haulout;
  ours_ = (changed->changed || by_lost_patch) && in_earnest;
  in_force_since_ = session_.now();
  report_.before = changed->before.unschedulable && !by_lost_patch;
  if (in_earnest) seen(changed->after);
  session_.emit(EventType::cordoned, changed->changed ? "" : "already cordoned");
  co_return std::move(changed->after);
}

Task<CordonChange> CordonKeeper::change(std::string what, std::function<Task<CordonChange>(TimePoint)> attempt) {
  bool lost = false;
  auto changed = co_await session_.insist<CordonChange>(
      std::move(what),
      [&lost, attempt = std::move(attempt)](TimePoint deadline) { return noting_loss(attempt(deadline), lost); },
      request_timeout);
  if (changed || !lost) change_ = Change::known;
  co_return changed;
}

// Reads the Node to find out whether the patch whose response was lost has taken effect. If so, removes the cordon if
// the option restore_cordon_on_failure is set.
asio::awaitable<void> CordonKeeper::undo_unanswered() {
  session_.allow(request_timeout);
  auto node = co_await session_.insist<k8s::Node>(
      "node " + session_.node_name() + " could not be read, so it is unknown whether it is cordoned",
      [this](TimePoint limit) { return session_.client().get_node(session_.node_name(), limit); }, request_timeout);
  if (!node) {
    session_.ending().add("; it is unknown whether it is cordoned now: " + node.error().message());
    co_return;
  }
  change_ = Change::known;
  const auto mark = mark_of(*node);
  ours_ = mark && mark->run == session_.options().run_id && cordon_owner(*node) == CordonOwner::haulout;
  seen(*node);
  co_await restore();
}

asio::awaitable<void> CordonKeeper::restore() {
  const bool unsuccessful = session_.ending().is(Outcome::blocked) || session_.ending().is(Outcome::failed);
  if (!unsuccessful || !session_.options().restore_cordon_on_failure || !ours_) co_return;
  // The drain has ended, so the deadline is replaced by a limit for this request.
  session_.allow(request_timeout);
  change_ = Change::requested;
  auto restored =
      co_await change("the cordon of node " + session_.node_name() + " could not be removed", [this](TimePoint limit) {
        return take_back(session_.client(), session_.rng(), session_.node_name(), session_.options().run_id, limit);
      });
  if (!restored && k8s::is_gone(restored.error())) {
    change_ = Change::known;
    report_.after = false;
    report_.owner.clear();
    session_.ending().add("; the Node was deleted");
    co_return;
  }
  if (!restored) {
    session_.ending().add(fmt::format("; {}, because uncordoning it failed: {}",
                                      change_ == Change::requested ? "it is unknown whether the node is still cordoned"
                                                                   : "the node is still cordoned",
                                      restored.error().message()));
    co_return;
  }
  const bool taken_back = report_.after && !restored->after.unschedulable;
  seen(restored->after);
  if (taken_back) session_.emit(EventType::uncordoned);
}

CordonReport CordonKeeper::report() const {
  CordonReport report = report_;
  report.known = change_ == Change::known;
  return report;
}

}  // namespace haulout::drain
