#include "drain/end_proof.hpp"

#include <fmt/format.h>

#include "drain/reasons.hpp"
#include "drain/text.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

// Returns true if the node seems to be drained: the views show no pod and no volume to wait for, the cordon has been in
// force for the settle time, and the view of pods is live. The API server then has to confirm it.
bool EndProof::seems_over() {
  if (!pipeline_.clear() || !feeds_.volumes.clear() || feeds_.volumes.reattaching()) {
    settling_told_.reset();
    return false;
  }
  const TimePoint at = session_.now();
  const TimePoint settled = saturating_add(cordon_.in_force_since(), session_.options().settle);
  if (at < settled && settling_told_ != cordon_.in_force_since()) {
    settling_told_ = cordon_.in_force_since();
    session_.emit(EventType::settling);
  }
  return at >= settled && at >= not_before_ && feeds_.pods.connected() && feeds_.node.unschedulable();
}

void EndProof::look(TaskGroup& group) {
  const bool over = seems_over();
  if (proof_.runs()) return;
  if (pending_ && (!pipeline_.clear() || !feeds_.node.unschedulable())) answered();
  if (!over && !volume_is_past_limit()) return;
  if (over && !pending_) pending_.emplace(session_, session_.now());
  proof_.start(group, prove());
}

asio::awaitable<void> EndProof::prove() {
  if (!co_await ended_by_volume() && seems_over()) co_await prove_emptiness();
  session_.changed().notify();
}

bool EndProof::volume_is_past_limit() const {
  return pipeline_.clear() && session_.now() >= not_before_ && feeds_.volumes.past_limit();
}

// Ends the drain as `blocked` if a volume is past its limit. Returns true if it has ended the drain.
asio::awaitable<bool> EndProof::ended_by_volume() {
  if (!volume_is_past_limit()) co_return false;
  // The watch may have lost the event that the volume was detached, so list the volumes before the drain ends.
  const auto listed = co_await feeds_.volumes.list_again();
  if (!listed) {
    postpone(listed.error().retry_after);
    co_return false;
  }
  const auto stuck = feeds_.volumes.book().past_limit(session_.now());
  if (!stuck || !pipeline_.clear()) co_return false;
  session_.ending().end(Outcome::blocked, *stuck);
  co_return true;
}

asio::awaitable<void> EndProof::prove_emptiness() {
  if (!pending_) pending_.emplace(session_, session_.now());
  const TimePoint asked = session_.now(), cordoned = cordon_.in_force_since();
  auto list = co_await session_.client().list_pods_on(session_.node_name(), session_.deadline());
  if (!list) co_return failed(list.error(), "the pods of the node could not be listed", "list on resource pods");
  pipeline_.reconcile(list->items, asked, session_.now(), session_.wall_now());
  if (!pipeline_.clear()) co_return answered();
  if (!co_await volumes_confirmed()) co_return answered();
  if (!co_await node_confirmed()) co_return;
  // The views may have changed during the requests. For example, the node may have been uncordoned and cordoned again,
  // and pods may have been scheduled to it between the list and the new cordon.
  if (session_.ending().has_come() || cordon_.in_force_since() != cordoned || !pipeline_.clear() ||
      session_.now() >= session_.deadline())
    co_return;
  const Progress progress = pipeline_.progress();
  const std::size_t volumes = feeds_.volumes.book().count(VolumeOutcome::detached);
  session_.ending().end(
      Outcome::drained,
      fmt::format("drained: {} deleted, {} skipped{}", pods(progress.vanished), progress.skipped,
                  volumes == 0 ? "" : fmt::format(", {} volume{} detached", volumes, volumes == 1 ? "" : "s")));
}

asio::awaitable<bool> EndProof::volumes_confirmed() {
  if (!feeds_.volumes.waits()) co_return true;
  const auto listed = co_await feeds_.volumes.list_again();
  if (!listed) postpone(listed.error().retry_after);
  // list_again() has added the listed volumes to the book. So all_detached() is also false if a volume is attached
  // that the watch has not shown.
  const bool confirmed = listed && feeds_.volumes.book().all_detached();
  co_return confirmed;
}

// Reads the Node, because its view may have stopped without an error. Returns true if the Node still exists and is
// cordoned.
asio::awaitable<bool> EndProof::node_confirmed() {
  const auto read = co_await feeds_.node.read();
  if (!read) {
    failed(read.error(), "the Node could not be read", "get on resource nodes");
    co_return false;
  }
  answered();
  if (!*read) postpone({});
  co_return *read && !feeds_.node.gone() && feeds_.node.unschedulable();
}

// Records that a request of the check failed. `right` is the permission to grant if the server forbids the request.
void EndProof::failed(const Error& error, std::string_view what, std::string_view right) {
  postpone(error.retry_after);
  if (session_.cut_off(error)) return;
  pending_->why = fmt::format("{}: {}", what, error.message());
  if (k8s::is_forbidden(error)) pending_->why += fmt::format("; grant verb {} (API group \"\")", right);
  pending_->trouble.tell(pending_->why);
}

// Ends the pending check, whatever its result is.
void EndProof::answered() {
  pending_->trouble.over();
  pending_.reset();
}

void EndProof::postpone(const std::optional<std::chrono::milliseconds>& retry_after) {
  not_before_ = session_.now() + backoff_.next(session_.rng(), retry_after);
}

std::vector<DiagnosisFact> EndProof::facts() const {
  if (!pending_ || session_.now() < pending_->told_at()) return {};
  return {{reason::emptiness_unproved,
           "node " + session_.node_name(),
           fmt::format(
               "the watch shows no pod that must leave any more, but the API server has not confirmed that: {}; the "
               "drain asks again",
               pending_->why.empty() ? "the server has not answered yet" : pending_->why),
           {}}};
}

std::string EndProof::why_not_over() const {
  if (pending_ && !pending_->why.empty()) return ": " + pending_->why;
  if (pending_) return ": the API server has not answered";
  if (!feeds_.node.unschedulable()) return ": the node was uncordoned";
  const auto error = feeds_.pods.error();
  if (!feeds_.pods.connected() && error) return ": the pods of the node cannot be watched: " + error->message();
  if (session_.now() < saturating_add(cordon_.in_force_since(), session_.options().settle))
    return ": the settle time (--settle) had not passed since the node was cordoned; allow the drain more time";
  return feeds_.volumes.why_unknown();
}

TimePoint EndProof::next_wake(TimePoint at) const {
  TimePoint next = TimePoint::max();
  const auto consider = [&](TimePoint when) {
    if (when > at) next = std::min(next, when);
  };
  if (pipeline_.clear())
    consider(std::max(saturating_add(cordon_.in_force_since(), session_.options().settle), not_before_));
  if (pending_) consider(pending_->told_at());
  return next;
}

}  // namespace haulout::drain
