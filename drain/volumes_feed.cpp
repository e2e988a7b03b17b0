#include "drain/volumes_feed.hpp"

#include <fmt/format.h>

#include "drain/reasons.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

bool are_required(const Options& options) {
  return options.volumes == VolumeWait::required || options.volume_turns == VolumeWait::required;
}

}  // namespace

VolumesFeed::VolumesFeed(Session& session, Pipeline& pipeline, PodsFeed& pods, VolumeBook& book, VolumeTurns& turns)
    : session_(session),
      pipeline_(pipeline),
      pods_(pods),
      book_(book),
      turns_(turns),
      claims_(session, book, are_required(session.options())) {}

// Returns why the drain does not wait for volumes, or nullopt if it may read them.
const std::optional<Error>& VolumesFeed::refused() const {
  return list_refused_ ? list_refused_ : claims_.refused();
}

bool VolumesFeed::wanted() const {
  const bool asked =
      session_.options().volumes != VolumeWait::off || session_.options().volume_turns != VolumeWait::off;
  return asked && session_.options().dry_run == DryRunMode::none && !refused();
}

bool VolumesFeed::awaited() const {
  return session_.options().volumes != VolumeWait::off && wanted();
}

// Returns true if the drain needs this VolumeAttachment. To wait until another node has attached a volume, it needs the
// VolumeAttachments of all nodes.
bool VolumesFeed::concerns(const k8s::VolumeAttachment& attachment) const {
  return attachment.node_name == session_.node_name() || session_.options().reattach_limit > Duration::zero();
}

asio::awaitable<bool> VolumesFeed::list() {
  if (!wanted()) co_return true;
  const TimePoint asked = session_.now();
  const bool can_be_seen = are_required(session_.options()) || listed_;
  const std::string what = "the volumes of node " + session_.node_name() + " could not be listed";
  auto listed = co_await session_.insist<k8s::List<k8s::VolumeAttachment>>(what, [this](TimePoint limit) {
    return session_.client().list<k8s::VolumeAttachment>(
        {.limit = k8s::usual_page}, limit, k8s::longest_page,
        [this](const k8s::VolumeAttachment& attachment) { return concerns(attachment); });
  });
  if (!listed && (can_be_seen || !k8s::is_forbidden(listed.error())))
    co_return session_.ending().give_up(listed.error(), what);
  if (!listed) {
    list_refused_ = listed.error();
    co_return true;
  }
  book_.reconcile(listed->items, asked, session_.now(), session_.wall_now());
  listed_ = *std::move(listed);
  co_return co_await claims_.resolve_at_first();
}

void VolumesFeed::take_turns() {
  if (session_.options().volume_turns == VolumeWait::off) return;
  if (wanted()) {
    book_.look(claim_use(pipeline_.pods()), session_.now(), session_.wall_now());
    turns_.look(pipeline_.pods(), session_.now());
  } else {
    turns_.stop();
  }
  pipeline_.guards_changed();
}

void VolumesFeed::look(TaskGroup& group) {
  if (!wanted()) return;
  if (!follower_.runs()) {
    if (book_.empty() && !any_claim_leaves(pipeline_.pods())) return;
    follower_.start(group, follow());
  }
  // With --serialize-volumes, take_turns() has called look() already.
  if (session_.options().volume_turns == VolumeWait::off)
    book_.look(claim_use(pipeline_.pods()), session_.now(), session_.wall_now());
  claims_.look(group);
  if (!node_asker_.runs() && book_.asks_for_node(session_.now())) node_asker_.start(group, ask_node());
  if (session_.now() >= doubt_at()) {
    doubt_not_before_ = session_.now() + doubt_interval;
    group.spawn(doubt());
  }
}

// Returns when the volumes are to be listed again, because the drain has waited for one of them for so long that the
// watch may have lost an event.
TimePoint VolumesFeed::doubt_at() const {
  return std::max(saturating_add(book_.waiting_since(), doubt_interval), doubt_not_before_);
}

asio::awaitable<void> VolumesFeed::follow() {
  k8s::ReflectorOptions options;
  options.page_size = session_.options().page_size;
  view_ = std::make_unique<k8s::Reflector<k8s::VolumeAttachment>>(
      session_.client(), session_.rng(), options,
      [this](const std::string& uid, const k8s::VolumeAttachment* attachment) {
        book_.attachment_changed(uid, attachment, session_.now(), session_.wall_now());
      },
      [this] {
        if (view_->health().connected) trouble_.reset();
        session_.changed().notify();
      });
  view_->keep_only([this](const k8s::VolumeAttachment& attachment) { return concerns(attachment); });
  if (listed_) view_->seed(*std::exchange(listed_, std::nullopt));
  Backoff backoff(volumes_patience);
  for (;;) {
    auto ended = co_await view_->run();
    if (ended) co_return;
    trouble_ = std::move(ended).error();
    session_.changed().notify();
    co_await session_.clock().sleep_until(session_.now() + backoff.next(session_.rng(), trouble_->retry_after));
  }
}

// Lists VolumeAttachments and pods again, because the watches may have lost events: an attachment was deleted, or a pod
// that uses it exists again (etcd restored from a backup). Runs concurrently with the main loop.
asio::awaitable<void> VolumesFeed::doubt() {
  const auto listed = co_await list_again();
  if (listed) {
    doubt_backoff_.reset();
    co_await pods_.doubt();
  } else {
    doubt_not_before_ = session_.now() + doubt_backoff_.next(session_.rng(), listed.error().retry_after);
  }
  session_.changed().notify();
}

Task<> VolumesFeed::list_again() {
  const TimePoint asked = session_.now();
  auto listed = co_await k8s::list_attachments_to(session_.client(), session_.node_name(), session_.deadline());
  if (!listed) {
    if (!session_.cut_off(listed.error())) trouble_ = listed.error();
    co_return std::move(listed).error();
  }
  trouble_.reset();
  book_.reconcile(listed->items, asked, session_.now(), session_.wall_now());
  book_.look(claim_use(pipeline_.pods()), session_.now(), session_.wall_now());
  co_return Result<>();
}

bool VolumesFeed::clear() const {
  if (!waits()) return true;
  return view_ && view_->health().synced && book_.all_detached();
}

std::optional<std::string> VolumesFeed::past_limit() const {
  if (!session_.options().end_at_volume_limit || !awaited()) return std::nullopt;
  return book_.past_limit(session_.now());
}

TimePoint VolumesFeed::next_wake(TimePoint at) const {
  const TimePoint doubt = doubt_at();
  return std::min({book_.next_wake(at), claims_.next_wake(at), doubt > at ? doubt : TimePoint::max()});
}

std::string VolumesFeed::why_unknown() const {
  const auto seen = view_ ? view_->health().error : std::nullopt;
  const Error* error = trouble_ ? &*trouble_ : claims_.trouble();
  if (seen) error = &*seen;
  return error != nullptr ? ": " + error->message() : std::string();
}

void VolumesFeed::diagnose(std::vector<DiagnosisFact>& facts) const {
  // The diagnosis that volumes may not be read has no hold time: it is certain that the drain does not wait for
  // volumes, and a short drain would end before a hold time has passed.
  if (refused())
    facts.push_back({reason::right_missing,
                     "volumes of node " + session_.node_name(),
                     fmt::format("{}: {}; grant verbs list and watch on resource volumeattachments "
                                 "(API group \"storage.k8s.io\") and verb get on resource persistentvolumes (API group "
                                 "\"\")",
                                 session_.options().volume_turns == VolumeWait::off
                                     ? "the drain does not wait for them"
                                     : "the drain does not wait for them, and ignores --serialize-volumes",
                                 refused()->message()),
                     {},
                     {.holds = false}});
  const auto seen = view_ ? view_->health().error : std::nullopt;
  const Error* trouble = trouble_ ? &*trouble_ : claims_.trouble();
  const Error* error = seen ? &*seen : trouble;
  // A later refusal has a hold time, because a single one right after a reconnect proves nothing.
  if (!refused() && error && k8s::is_forbidden(*error))
    facts.push_back({reason::right_missing, "volumes of node " + session_.node_name(),
                     fmt::format("the drain cannot see any more whether they are detached: {}; grant verbs list and "
                                 "watch on resource volumeattachments (API group \"storage.k8s.io\") and verb get on "
                                 "resource persistentvolumes (API group \"\")",
                                 error->message()),
                     controller_hold});
  else if (!refused() && trouble)
    facts.push_back({reason::volumes_unreadable,
                     "volumes of node " + session_.node_name(),
                     "the drain cannot see whether they are detached, and asks again: " + trouble->message(),
                     {}});
  if (wanted()) book_.diagnose(session_.now(), facts);
}

// Reads the volumes in the Node's status, and retries until it succeeds or the answer is not needed any more. Runs
// concurrently with the main loop.
asio::awaitable<void> VolumesFeed::ask_node() {
  Backoff backoff(volumes_patience);
  while (book_.asks_for_node(session_.now())) {
    const TimePoint asked = session_.now();
    const auto node =
        co_await session_.client().get<k8s::NodeVolumes>(session_.node_name(), session_.within(request_timeout));
    if (!node) {
      if (!session_.cut_off(node.error())) trouble_ = node.error();
      session_.changed().notify();
      co_await session_.clock().sleep_until(session_.now() + backoff.next(session_.rng(), node.error().retry_after));
      continue;
    }
    trouble_.reset();
    std::set<std::string> attachments;
    for (const std::string& volume : node->held) attachments.insert(k8s::attachment_name(volume, session_.node_name()));
    book_.node_holds(attachments, asked);
  }
  session_.changed().notify();
}

}  // namespace haulout::drain
