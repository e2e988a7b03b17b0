// The loop of the agent, and the facts on which it bases its decisions.
#include "agent/lifecycle/agent.hpp"

#include <fmt/format.h>

#include "agent/lifecycle/agent_impl.hpp"
#include "drain/cordon.hpp"
#include "drain/reasons.hpp"
#include "k8s/objects.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// The agent writes the record again soon after a person has removed it. It does so with backoff if another agent keeps
// replacing it, because each of them would write its own record.
constexpr BackoffOptions rival_patience{std::chrono::seconds(1), 2.0, std::chrono::minutes(1),
                                        BackoffOptions::Jitter::equal};
constexpr Duration no_rival_for = std::chrono::minutes(5);
// By then even a kubelet that starts after the agent has reported its boot.
constexpr Duration kubelet_patience = std::chrono::minutes(2);
// After so many foreign records in a row, another agent must be running. Neither late writes of a previous process nor
// a person cause so many.
constexpr unsigned surely_a_rival = 3;

}  // namespace

Agent::Agent(AgentParts parts, AgentOptions options)
    : impl_(std::make_unique<Impl>(std::move(parts), std::move(options))) {}
Agent::~Agent() = default;
asio::awaitable<void> Agent::run() {
  return impl_->run();
}

Agent::Impl::Impl(AgentParts parts, AgentOptions options)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      client_(parts_.client),
      clock_(client_.clock()),
      rng_(parts_.rng),
      rival_backoff_(rival_patience),
      drain_status_(parts_.drain_observer, [this] { changed_->notify(); }) {}

asio::awaitable<void> Agent::Impl::run() {
  changed_ = std::make_unique<Notifier>(co_await asio::this_coro::executor);
  gates_news_ = std::make_unique<Notifier>(co_await asio::this_coro::executor);
  node_moved_ = std::make_unique<Notifier>(co_await asio::this_coro::executor);
  condition_news_ = std::make_unique<Notifier>(co_await asio::this_coro::executor);
  shutdown_news_ = std::make_unique<Notifier>(co_await asio::this_coro::executor);
  co_await load();
  co_await with_task_group([this](TaskGroup& group) {
    group.spawn(follow_node());
    group.spawn(follow_backend());
    group.spawn(retry_condition());
    group.spawn(be_heard());
    group.spawn(keep_shown());
    if (parts_.shutdown) group.spawn(follow_shutdown());
    return live();
  });
}

// A shutdown interrupts all activity, as a crash would. The record on the Node has everything that is needed to go on.
asio::awaitable<void> Agent::Impl::live() {
  for (;;) {
    co_await with_task_group([this](TaskGroup& group) {
      group.spawn(keep_going());
      return until_shutdown();
    });
    co_await leave();
  }
}

asio::awaitable<void> Agent::Impl::keep_going() {
  for (;;) {
    if (foreign_) co_await give_way();
    if (reload_) co_await load();
    delay_shutdowns();
    co_await establish();
    if (!reload_) co_await note_boot();
    if (reload_) continue;
    const Event event = co_await activity();
    if (reload_) continue;
    co_await commit(event);
  }
}

asio::awaitable<void> Agent::Impl::give_way() {
  show_ready(false);
  if (now() - gave_way_ > no_rival_for) {
    rival_backoff_.reset();
    rivals_ = 0;
  }
  if (++rivals_ == surely_a_rival)
    warn(reason::second_agent, "another agent writes the record of node " + options_.node +
                                   ", too, and they overwrite each other: stop one of them");
  co_await clock_.sleep_until(now() + rival_backoff_.next(rng_));
  gave_way_ = now();
  foreign_ = false;
}

asio::awaitable<void> Agent::Impl::load() {
  reload_ = false;
  // The loop below may last as long as the API server is unavailable.
  show_ready(false);
  Backoff backoff(patience);
  for (;;) {
    auto node = co_await client_.get_node(options_.node, within(request_timeout));
    auto id = parts_.host.boot_id();
    if (node && !id) node = id.error();
    if (node) {
      boot_id_ = *std::move(id);
      learn(std::move(*node), node_news_);
      parts_.node_is(node_.uid);
      break;
    }
    tell_unread(node.error());
    co_await clock_.sleep_until(now() + backoff.next(rng_, node.error().retry_after));
  }
  if (!requested_at_start_) requested_at_start_ = reboot_requested(node_);
  written_ = sent_ = shown_record(node_);
  record_ = written_.empty() ? Record{} : decode_record(written_);
  unreadable_ = record_.cause == reason::record_unreadable ? written_ : "";
  if (written_.empty()) {
    record_.since = wall();
    record_.boot_id = boot_id_;
    // There is no record; a person may have removed it. The mark on the Node names the run, so that the agent can still
    // take its cordon back.
    if (const auto mark = drain::mark_of(node_); mark && mark->by == cordoned_by) record_.run = mark->run;
  }
  parts_.slots.remember(record_.slot);
  record_.authority = options_.authority;
  record_.pool = options_.pool(node_);
  status_ = shown_status(node_, record_);
  unwritten_ = false;
  parts_.tell(status_);
}

void Agent::Impl::tell_unread(const Error& error) {
  Status status{record_.state, reason::api_unavailable, "node " + options_.node + " cannot be read: " + error.message(),
                record_.since, record_.judged};
  if (k8s::is_gone(error)) {
    status.reason = reason::node_missing;
    status.message = "the cluster has no Node " + options_.node +
                     ": it was deleted, or its kubelet has not registered it; the agent continues when it exists";
  }
  parts_.tell(status);
}

void Agent::Impl::see_node(const k8s::Node& node, std::optional<TimePoint> list_asked) {
  if (node.uid != node_.uid) {
    begin_anew();
  } else {
    // A list is at least as new as the time of its request, even if its resourceVersion is lower.
    if (list_asked && *list_asked > node_learned_)
      learn(node, node_news_);
    else
      learn(node);
    if (has_foreign_record()) {
      foreign_ = true;
      begin_anew();
    }
    // This decision needs no further read.
    if (duties_of(record_.state).shows_ready && !node_.unschedulable) decide(uncordoned_by_somebody());
  }
  gates_news_->notify();
  changed_->notify();
}

// Ignores a Node that is older than the known one. The watch may be ahead of the answer to a request, and the answer to
// a patch arrives before its watch event.
void Agent::Impl::learn(k8s::Node node) {
  if (node.uid != node_.uid || !k8s::is_older(node.resource_version, node_.resource_version))
    learn(std::move(node), node_news_);
}

// If no other Node arrived while the request was under way, its answer is the newest state. So it is taken even if its
// resourceVersion is lower, as after the restore of an etcd backup.
void Agent::Impl::learn(k8s::Node node, std::uint64_t news_before) {
  if (node_news_ != news_before) return learn(std::move(node));
  const bool took_pods = node.uid != node_.uid || !node_.unschedulable;
  node_ = std::move(node);
  if (!node_.unschedulable) {
    returned_.clear();
    record_.pinned.clear();
  } else if (took_pods) {
    takes_no_pods_since_ = client_.server_now();
  }
  if (has_foreign_boot_id(node_, boot_id_))
    foreign_boot_since_ = foreign_boot_since_.value_or(now());
  else
    foreign_boot_since_.reset();
  ++node_news_;
  node_learned_ = now();
  node_moved_->notify();
}

// Returns true if the record was removed, or if another agent wrote one. The record on the Node takes precedence.
bool Agent::Impl::has_foreign_record() const {
  const std::string there = shown_record(node_);
  return there != written_ && there != sent_ && there != encoded();
}

asio::awaitable<void> Agent::Impl::follow_node() {
  k8s::ReflectorOptions options;
  options.field_selector = "metadata.name=" + options_.node;
  for (;;) {
    k8s::Reflector<k8s::Node> view(
        client_, rng_, options,
        [this, &view](const std::string& uid, const k8s::Node* node) {
          if (node) see_node(*node, view.list_asked());
          if (!node && uid == node_.uid) begin_anew();
        },
        [this] { changed_->notify(); });
    static_cast<void>(co_await view.run());
    // The first list was refused. The permission may be granted later, and the loop reads the Node by itself.
    co_await clock_.sleep_until(now() + rng_.between(std::chrono::seconds(20), std::chrono::seconds(40)));
  }
}

asio::awaitable<void> Agent::Impl::follow_backend() {
  Backoff backoff({std::chrono::seconds(1), 2.0, std::chrono::minutes(5), BackoffOptions::Jitter::equal});
  for (;;) {
    pending_ = co_await parts_.backend.pending(within(std::chrono::minutes(1)));
    answered_ = true;
    changed_->notify();
    if (pending_.need == Need::unknown) {
      co_await clock_.sleep_until(now() + backoff.next(rng_));
      continue;
    }
    backoff.reset();
    co_await parts_.backend.changed();
    co_await clock_.sleep_until(now() + std::chrono::milliseconds(200));  // counts a burst of changes as one
  }
}

bool Agent::Impl::wanted() const {
  if (reboot_requested(node_)) return true;
  if (pending_.need != Need::yes) return false;
  return std::find(record_.bad_targets.begin(), record_.bad_targets.end(), pending_.target) ==
         record_.bad_targets.end();
}

std::optional<Status> Agent::Impl::foreign_boot(TimePoint& until) const {
  if (!foreign_boot_since_) return std::nullopt;
  if (now() >= *foreign_boot_since_ + kubelet_patience)
    return Status{.reason = reason::boot_id_foreign, .message = foreign_boot_id(node_, boot_id_)};
  until = std::min(until, *foreign_boot_since_ + kubelet_patience);
  return Status{.reason = reason::node_not_ready, .message = "the kubelet has not reported this boot yet"};
}

std::string Agent::Impl::new_run() const {
  return fmt::format("{}.{:x}", options_.node, wall().time_since_epoch().count());
}

TimePoint Agent::Impl::at(WallTime when, Duration at_most) const {
  const auto left = std::chrono::duration_cast<Duration>(when - wall());
  return now() + std::clamp(left, Duration::zero(), at_most);
}

asio::awaitable<void> Agent::Impl::wait(TimePoint until) {
  if (!reload_) co_await changed_->wait_until(clock_, until);
}

asio::awaitable<void> Agent::Impl::establish() {
  const Duties duties = duties_of(record_.state);
  // Removes the ready file, even in `ready`: this process has not proved anything yet, and the machine may have booted
  // since.
  show_ready(false);
  // If the boot must be verified first, the cordon stays until then.
  const bool booted = rebooted() && next_state(record_.state, Event::boot_changed);
  const bool uncordon = !booted && (duties.cordon == Duty::no || (duties.cordon == Duty::keep && record_.uncordon));
  const bool ours = uncordon && !record_.run.empty();
  if (ours) co_await stays_up();
  if (ours && rebooted()) co_await kubelet_is_back();
  if (ours && !reload_) co_await undo_cordon();
  if (uncordon && !reload_) co_await return_to_load_balancers();
  if (duties.turn == Duty::no && !reload_) co_await give_turn_back();
  if (!reload_) co_await show_condition();
}

// A reboot request that arrives after the boot but before the agent starts looks like one from before the boot. It
// counts as served.
asio::awaitable<void> Agent::Impl::note_boot() {
  if (!rebooted() || next_state(record_.state, Event::boot_changed)) co_return;
  const bool told = !record_.boot_id.empty();
  record_.boot_id = boot_id_;
  co_await write(told && *requested_at_start_);
}

void Agent::Impl::show_ready(bool ready) {
  if (auto shown = parts_.host.show_ready(ready); !shown) warn(reason::ready_file_failed, shown.error().message());
}

// The last proof was about the Node as it was, so the ready file is removed at once.
void Agent::Impl::begin_anew() {
  reload_ = true;
  show_ready(false);
  changed_->notify();
}

void Agent::Impl::warn(std::string reason, std::string message) {
  if (parts_.warn) parts_.warn({record_.state, std::move(reason), std::move(message), record_.since});
}

asio::awaitable<void> Agent::Impl::first_answer() {
  while (!reload_ && !answered_) co_await wait(TimePoint::max());
}

asio::awaitable<void> Agent::Impl::undo_cordon() {
  Backoff backoff(patience);
  while (!reload_) {
    const std::uint64_t news = node_news_;
    auto change = co_await drain::take_back(client_, rng_, options_.node, record_.run, within(request_timeout));
    if (change) {
      if (change->after.uid != node_.uid) {
        reload_ = true;
        co_return;
      }
      learn(change->after, news);
      record_.run.clear();
      co_return;
    }
    if (k8s::is_gone(change.error())) {
      reload_ = true;
      co_return;
    }
    co_await show(reason::cannot_uncordon, "the agent cannot uncordon the node yet: " + change.error().message());
    co_await clock_.sleep_until(now() + backoff.next(rng_, change.error().retry_after));
  }
}

asio::awaitable<void> Agent::Impl::give_turn_back() {
  Backoff backoff(patience);
  while (!reload_) {
    if (const auto keeper = keeper_of(record_.slot); !keeper.empty() && keeper != parts_.slots.name()) {
      co_await show(reason::cannot_release,
                    fmt::format("slot {} was taken with --slots={}, which is {} now: set it back until the slot is "
                                "released, or release the slot by hand and remove the annotation {} of the Node",
                                record_.slot, keeper, parts_.slots.name(), record_annotation));
      co_await wait(TimePoint::max());
      continue;
    }
    auto released = co_await parts_.slots.release(within(request_timeout));
    if (released) {
      record_.slot.clear();
      co_return;
    }
    co_await show(reason::cannot_release, "the slot cannot be released yet: " + released.error().message());
    co_await clock_.sleep_until(now() + backoff.next(rng_, released.error().retry_after));
  }
}

asio::awaitable<Event> Agent::Impl::activity() {
  decided_.reset();
  switch (record_.state) {
    case State::unknown: return wait_for_answer();
    case State::idle: return wait_for_need();
    case State::pending: return wait_for_gates();
    case State::waiting: return wait_for_turn();
    case State::draining: return drain();
    case State::ready: return stay_ready();
    case State::rebooting: return reboot();
    case State::verifying: return verify();
    // establish() has taken the cordon back, and this state has no other work.
    case State::uncordoning:
      return [](Event event) -> asio::awaitable<Event> {
        co_return event;
      }(rebooted() ? Event::boot_changed : Event::uncordoned);
    case State::soaking: return soak();
    case State::degraded: return stay_degraded();
  }
  std::terminate();
}

}  // namespace haulout::agent
