// Drain's view of the VolumeAttachments of its node. The drain lists them before it changes anything, and again before
// the first eviction if its plan is old. It watches them if there is one, or if a pod that must leave has a claim. If
// the drain may not read them, it does not wait for them and reports that. But once it could read them, it waits until
// it sees that they were deleted.
#include <fmt/format.h>

#include "drain/drain_impl.hpp"
#include "drain/insist.hpp"
#include "drain/reasons.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

bool Drain::Impl::wants_volumes() const {
  const bool asked = options_.volumes != VolumeWait::off || options_.volume_turns != VolumeWait::off;
  return asked && options_.dry_run == DryRunMode::none && !volumes_error_;
}

// With --serialize-volumes alone, the drain does not wait for the last volumes to be detached.
bool Drain::Impl::waits_for_volumes() const {
  return options_.volumes != VolumeWait::off && wants_volumes();
}

bool Drain::Impl::requires_volumes() const {
  return options_.volumes == VolumeWait::required || options_.volume_turns == VolumeWait::required;
}

// True if this drain continues a run that another process has begun. Then it does not know which pods were deleted
// before. The mark of any other run says nothing about volumes.
bool Drain::Impl::resumes() const {
  const auto mark = mark_of(node_);
  return mark && !options_.run_id.empty() && mark->run == options_.run_id;
}

// To wait until another node has a volume, the drain needs the VolumeAttachments of all nodes.
bool Drain::Impl::concerns(const k8s::VolumeAttachment& attachment) const {
  return attachment.node_name == node_name_ || options_.reattach_limit > Duration::zero();
}

// Called for the plan, and once more before the first eviction if the plan is old by then: the drain expects that all
// attached volumes are detached in the end. If the list succeeded for the plan, it must succeed again. Returns false if
// the drain has ended.
asio::awaitable<bool> Drain::Impl::list_volumes() {
  if (!wants_volumes()) co_return true;
  const TimePoint asked = now();
  const bool can_be_seen = requires_volumes() || listed_volumes_;
  const std::string what = "the volumes of node " + node_name_ + " could not be listed";
  auto listed = co_await insist<k8s::List<k8s::VolumeAttachment>>(what, [this](TimePoint limit) {
    return client_.list<k8s::VolumeAttachment>(
        {.limit = k8s::usual_page}, limit, k8s::longest_page,
        [this](const k8s::VolumeAttachment& attachment) { return concerns(attachment); });
  });
  if (!listed && (can_be_seen || !k8s::is_forbidden(listed.error()))) co_return give_up(listed.error(), what);
  if (!listed) {
    volumes_error_ = listed.error();
    co_return true;
  }
  volumes_.reconcile(listed->items, asked, now(), clock_.wall_now());
  listed_volumes_ = *std::move(listed);
  co_return co_await resolve_at_first();
}

// Called before evictions are chosen: takes note of the pods that were deleted and the volumes that were detached.
void Drain::Impl::take_turns() {
  if (options_.volume_turns == VolumeWait::off) return;
  if (wants_volumes()) {
    volumes_.look(claim_use(pipeline_->pods()), now(), clock_.wall_now());
    turns_.look(pipeline_->pods(), now());
  } else {
    turns_.stop();
  }
  pipeline_->guards_changed();
}

void Drain::Impl::look_at_volumes(TaskGroup& group) {
  if (!wants_volumes()) return;
  if (!follows_volumes_) {
    if (volumes_.empty() && !any_claim_leaves(pipeline_->pods())) return;
    follows_volumes_ = true;
    group.spawn(follow_volumes());
  }
  // With --serialize-volumes, take_turns() has called look() already.
  if (options_.volume_turns == VolumeWait::off) volumes_.look(claim_use(pipeline_->pods()), now(), clock_.wall_now());
  if (!resolves_volumes_ && due_question()) {
    resolves_volumes_ = true;
    group.spawn(resolve_volumes());
  }
  if (!asks_node_for_volumes_ && volumes_.asks_for_node(now())) {
    asks_node_for_volumes_ = true;
    group.spawn(ask_node_for_volumes());
  }
  if (now() >= doubt_volumes_at()) {
    doubt_volumes_not_before_ = now() + doubt_interval;
    group.spawn(doubt_volumes());
  }
}

// Returns when the drain has waited for a volume for so long that the watch may have lost the event of its detaching.
TimePoint Drain::Impl::doubt_volumes_at() const {
  return std::max(saturating_add(volumes_.waiting_since(), doubt_interval), doubt_volumes_not_before_);
}

asio::awaitable<void> Drain::Impl::follow_volumes() {
  k8s::ReflectorOptions options;
  options.page_size = options_.page_size;
  volumes_view_ = std::make_unique<k8s::Reflector<k8s::VolumeAttachment>>(
      client_, rng_, options,
      [this](const std::string& uid, const k8s::VolumeAttachment* attachment) {
        volumes_.attachment_changed(uid, attachment, now(), clock_.wall_now());
      },
      [this] {
        if (volumes_view_->health().connected) volumes_trouble_.reset();
        changed_->notify();
      });
  volumes_view_->keep_only([this](const k8s::VolumeAttachment& attachment) { return concerns(attachment); });
  if (listed_volumes_) volumes_view_->seed(*std::exchange(listed_volumes_, std::nullopt));
  Backoff backoff(volumes_patience);
  for (;;) {
    auto ended = co_await volumes_view_->run();
    if (ended) co_return;
    volumes_trouble_ = std::move(ended).error();
    changed_->notify();
    co_await clock_.sleep_until(now() + backoff.next(rng_, volumes_trouble_->retry_after));
  }
}

// Lists VolumeAttachments and pods again, because the watches may have lost events: an attachment was deleted, or a pod
// that uses it exists again (etcd restored from a backup). Runs beside the loop, which does not wait for it.
asio::awaitable<void> Drain::Impl::doubt_volumes() {
  const auto listed = co_await volumes_listed();
  if (listed) {
    doubt_volumes_backoff_.reset();
    co_await doubt_pods();
  } else {
    doubt_volumes_not_before_ = now() + doubt_volumes_backoff_.next(rng_, listed.error().retry_after);
  }
  changed_->notify();
}

Task<> Drain::Impl::volumes_listed() {
  const TimePoint asked = now();
  auto listed = co_await client_.list<k8s::VolumeAttachment>(
      {.limit = k8s::usual_page}, deadline_, k8s::longest_page,
      [this](const k8s::VolumeAttachment& attachment) { return attachment.node_name == node_name_; });
  if (!listed) {
    if (!cut_off(listed.error())) volumes_trouble_ = listed.error();
    co_return std::move(listed).error();
  }
  volumes_trouble_.reset();
  volumes_.reconcile(listed->items, asked, now(), clock_.wall_now());
  volumes_.look(claim_use(pipeline_->pods()), now(), clock_.wall_now());
  co_return Result<>();
}

// True if the drain waits for no volume, as far as its view shows.
bool Drain::Impl::volumes_clear() const {
  if (!waits_for_volumes() || !follows_volumes_) return true;
  return volumes_view_ && volumes_view_->health().synced && volumes_.all_detached();
}

// True while the drain waits until another node has a volume. This delays the end of the drain, at most by the reattach
// limit, and does not change the outcome.
bool Drain::Impl::reattaching() const {
  return waits_for_volumes() && follows_volumes_ && volumes_.any_reattaching();
}

asio::awaitable<bool> Drain::Impl::volumes_confirmed() {
  if (!waits_for_volumes() || !follows_volumes_) co_return true;
  const auto listed = co_await volumes_listed();
  if (!listed) verify_not_before_ = now() + verify_backoff_.next(rng_, listed.error().retry_after);
  // volumes_listed() has judged the volumes of the list, so the drain waits for new ones, too.
  const bool confirmed = listed && volumes_.all_detached();
  co_return confirmed;
}

// True if a volume is past its limit, and the options say that this ends the drain.
bool Drain::Impl::volume_is_past_limit() const {
  if (!options_.end_at_volume_limit || !waits_for_volumes() || !pipeline_->clear()) return false;
  return now() >= verify_not_before_ && volumes_.past_limit(now()).has_value();
}

// Ends the drain as `blocked` if a volume is past its limit. Returns true if it has ended the drain.
asio::awaitable<bool> Drain::Impl::ended_by_volume() {
  if (!volume_is_past_limit()) co_return false;
  // The watch may have lost the event of its detaching.
  const auto listed = co_await volumes_listed();
  if (!listed) {
    verify_not_before_ = now() + verify_backoff_.next(rng_, listed.error().retry_after);
    co_return false;
  }
  const auto stuck = volumes_.past_limit(now());
  co_return stuck && pipeline_->clear() && !end(Outcome::blocked, *stuck);
}

void Drain::Impl::diagnose_volumes(TimePoint at, std::vector<DiagnosisFact>& facts) const {
  // This has no hold time: it is certain that the drain does not wait for volumes, and a short drain would end before a
  // hold time has passed.
  if (volumes_error_)
    facts.push_back(
        {reason::right_missing,
         "volumes of node " + node_name_,
         fmt::format(
             "{}: {}; grant verbs list and watch on resource volumeattachments "
             "(API group \"storage.k8s.io\") and verb get on resource persistentvolumes (API group "
             "\"\")",
             options_.volume_turns == VolumeWait::off
                 ? "the drain does not wait for them"
                 : "the drain does not wait for them, and evicts their pods at the same time (--serialize-volumes)",
             volumes_error_->message()),
         {},
         {.holds = false}});
  const auto seen = volumes_view_ ? volumes_view_->health().error : std::nullopt;
  const Error* trouble = volumes_trouble_ ? &*volumes_trouble_ : questions_.trouble();
  const Error* error = seen ? &*seen : trouble;
  // This has a hold time, because a single refusal right after a reconnect proves nothing.
  if (!volumes_error_ && error && k8s::is_forbidden(*error))
    facts.push_back({reason::right_missing, "volumes of node " + node_name_,
                     fmt::format("the drain cannot see any more whether they are detached: {}; grant verbs list and "
                                 "watch on resource volumeattachments (API group \"storage.k8s.io\") and verb get on "
                                 "resource persistentvolumes (API group \"\")",
                                 error->message()),
                     controller_hold});
  else if (!volumes_error_ && trouble)
    facts.push_back({reason::volumes_unreadable,
                     "volumes of node " + node_name_,
                     "the drain cannot see whether they are detached: " + trouble->message(),
                     {}});
  if (wants_volumes()) volumes_.diagnose(at, facts);
}

}  // namespace haulout::drain
