// Drain's view of the VolumeAttachments of its node: taken when a pod that must leave has a claim, given up, and said
// so, where it is forbidden.
#include "drain/drain_impl.hpp"
#include "drain/insist.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

bool Drain::Impl::wants_volumes() const {
  return options_.volumes != VolumeWait::off && options_.dry_run == DryRunMode::none && !volumes_error_;
}

// A run that goes on where another process stopped knows nothing of the pods that left before.
bool Drain::Impl::resumes() const {
  const auto mark = mark_of(node_);
  return mark && !options_.run_id.empty() && mark->run == options_.run_id;
}

// Before the first eviction: what is attached then is expected to be detached in the end.
asio::awaitable<bool> Drain::Impl::list_volumes() {
  if (resumes()) volumes_.expect_all();
  if (!wants_volumes() || (!resumes() && !any_claim_leaves(pipeline_->pods()))) co_return true;
  auto listed = co_await insist<k8s::List<k8s::VolumeAttachment>>(
      [this](TimePoint limit) { return client_.list_volume_attachments(limit); }, list_timeout);
  if (!listed) co_return volumes_unseen(listed.error());
  std::erase_if(listed->items, [this](const auto& attachment) { return attachment.node_name != node_name_; });
  volumes_.reconcile(listed->items, clock_.wall_now());
  listed_volumes_ = *std::move(listed);
  co_return true;
}

// False when the drain has ended of it.
bool Drain::Impl::volumes_unseen(const Error& error) {
  if (options_.volumes == VolumeWait::required)
    return give_up(error, "the volumes of node " + node_name_ + " cannot be waited for");
  volumes_error_ = error;
  return true;
}

void Drain::Impl::look_at_volumes(TaskGroup& group) {
  if (!wants_volumes()) return;
  if (!follows_volumes_) {
    if (!listed_volumes_ && !any_claim_leaves(pipeline_->pods())) return;
    follows_volumes_ = true;
    group.spawn(follow_volumes());
  }
  volumes_.look(claim_use(pipeline_->pods()), now(), clock_.wall_now());
  if (!resolves_volumes_ && volumes_.unresolved()) {
    resolves_volumes_ = true;
    group.spawn(resolve_volumes());
  }
  if (volumes_.past_limit(now()) && now() >= doubt_volumes_not_before_) {
    doubt_volumes_not_before_ = now() + doubt_interval;
    group.spawn(doubt_volumes());
  }
}

asio::awaitable<void> Drain::Impl::follow_volumes() {
  k8s::ReflectorOptions options;
  options.page_size = options_.page_size;
  volumes_view_ = std::make_unique<k8s::Reflector<k8s::VolumeAttachment>>(
      client_, rng_, k8s::Resource::volume_attachments, options,
      [this](const std::string& uid, const k8s::VolumeAttachment* attachment) {
        volumes_.attachment_changed(uid, attachment, clock_.wall_now());
      },
      [this] { changed_->notify(); });
  volumes_view_->keep_only(
      [this](const k8s::VolumeAttachment& attachment) { return attachment.node_name == node_name_; });
  if (listed_volumes_) volumes_view_->seed(*std::exchange(listed_volumes_, std::nullopt));
  auto ended = co_await volumes_view_->run();
  if (!ended) volumes_unseen(ended.error());
  changed_->notify();
}

// Which claim each volume is bound to: its users are found by that.
asio::awaitable<void> Drain::Impl::resolve_volumes() {
  while (const auto name = volumes_.unresolved()) {
    auto volume = co_await insist<k8s::PersistentVolume>(
        [this, &name](TimePoint limit) { return client_.get_persistent_volume(*name, limit); }, request_timeout);
    if (volume) {
      volumes_.resolved(*name, volume->claim_name.empty() ? "" : volume->claim_ns + "/" + volume->claim_name);
    } else if (k8s::is_gone(volume.error())) {
      volumes_.resolved(*name, "");
    } else {
      if (!k8s::is_transient(volume.error())) volumes_unseen(volume.error());
      break;
    }
  }
  resolves_volumes_ = false;
  changed_->notify();
}

// Beside the loop: the watch may have lost that one has gone.
asio::awaitable<void> Drain::Impl::doubt_volumes() {
  (void)co_await volumes_listed();
  changed_->notify();
}

asio::awaitable<bool> Drain::Impl::volumes_listed() {
  auto listed = co_await client_.list_volume_attachments(within(list_timeout));
  if (!listed) {
    verify_not_before_ = now() + verify_backoff_.next(rng_, listed.error().retry_after);
    co_return false;
  }
  volumes_.reconcile(listed->items, clock_.wall_now());
  volumes_.look(claim_use(pipeline_->pods()), now(), clock_.wall_now());
  co_return true;
}

// In our view.
bool Drain::Impl::volumes_clear() const {
  if (!wants_volumes() || !follows_volumes_) return true;
  return volumes_view_ && volumes_view_->health().synced && volumes_.all_detached();
}

asio::awaitable<bool> Drain::Impl::volumes_confirmed() {
  if (!wants_volumes() || !follows_volumes_) co_return true;
  co_return co_await volumes_listed() && volumes_.all_detached();
}

// A volume has had its time, and that is to end the drain: it did not succeed.
bool Drain::Impl::ended_by_volume(TimePoint at) {
  if (!options_.end_at_volume_limit || !wants_volumes() || !pipeline_->clear()) return false;
  const auto stuck = volumes_.past_limit(at);
  return stuck && !end(Outcome::blocked, "the limit for volumes passed: " + *stuck);
}

void Drain::Impl::diagnose_volumes(TimePoint at, std::vector<DiagnosisFact>& facts) const {
  if (volumes_error_)
    facts.push_back(
        {"RBAC_DENIED",
         "volumes of node " + node_name_,
         fmt::format("they are not waited for: {}; grant verbs list and watch on resource volumeattachments "
                     "(API group \"storage.k8s.io\") and verb get on resource persistentvolumes (API group "
                     "\"\")",
                     volumes_error_->message()),
         {}});
  const auto error = volumes_view_ ? volumes_view_->health().error : std::nullopt;
  if (!volumes_error_ && error && k8s::is_forbidden(*error))
    facts.push_back({"RBAC_DENIED",
                     "volumes of node " + node_name_,
                     fmt::format("whether they are detached cannot be seen any more: {}; grant verbs list and watch on "
                                 "resource volumeattachments (API group \"storage.k8s.io\")",
                                 error->message()),
                     {}});
  if (wants_volumes()) volumes_.diagnose(at, facts);
}

}  // namespace haulout::drain
