// The loop, and what it writes.
#include "agent/lifecycle/agent.hpp"

#include <fmt/format.h>

#include "agent/lifecycle/agent_impl.hpp"
#include "drain/cordon.hpp"
#include "k8s/entries.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

constexpr BackoffOptions patience{std::chrono::milliseconds(500), 2.0, std::chrono::seconds(30),
                                  BackoffOptions::Jitter::equal};
// Another writer was faster, which is nothing unusual on a Node.
constexpr BackoffOptions conflict_patience{std::chrono::milliseconds(100), 2.0, std::chrono::seconds(5),
                                           BackoffOptions::Jitter::equal};

// Our own writes are known before the watch tells of them.
bool older(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// The record as a Node shows it; empty when it has none.
std::string shown_record(const k8s::Node& node) {
  return k8s::value_at(node.annotations, record_annotation).value_or("");
}

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
      drain_status_(parts_.drain_observer, [this] { changed_->notify(); }) {}

asio::awaitable<void> Agent::Impl::run() {
  changed_ = std::make_unique<Notifier>(co_await asio::this_coro::executor);
  gates_news_ = std::make_unique<Notifier>(co_await asio::this_coro::executor);
  shutdown_news_ = std::make_unique<Notifier>(co_await asio::this_coro::executor);
  co_await load();
  co_await with_task_group([this](TaskGroup& group) {
    group.spawn(follow_node());
    group.spawn(follow_backend());
    if (parts_.shutdown) group.spawn(follow_shutdown());
    return live();
  });
}

// A shutdown interrupts whatever is under way, as a crash would: what counts stands on the Node.
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

asio::awaitable<void> Agent::Impl::load() {
  reload_ = announced_ = false;
  // What was proved was proved of the Node as it was, and this may take as long as the API server is away.
  show_ready(false);
  Backoff backoff(patience);
  for (;;) {
    auto node = co_await client_.get_node(options_.node, within(request_timeout));
    auto id = parts_.host.boot_id();
    if (node && !id) node = id.error();
    if (node) {
      boot_id_ = *std::move(id);
      node_ = std::move(*node);
      parts_.node_is(node_.uid);
      break;
    }
    tell_unread(node.error());
    co_await clock_.sleep_until(now() + backoff.next(rng_, node.error().retry_after));
  }
  if (!requested_at_start_) requested_at_start_ = reboot_requested(node_);
  written_ = shown_record(node_);
  record_ = written_.empty() ? Record{} : decode_record(written_);
  if (written_.empty()) {
    record_.since = wall();
    record_.boot_id = boot_id_;
    // Somebody took the record away; the cordon of the run that it told of is still ours to take back.
    if (const auto mark = drain::mark_of(node_); mark && mark->by == cordoned_by) record_.run = mark->run;
  }
  parts_.slots.remember(record_.slot);
  record_.authority = options_.authority;
  record_.pool = options_.pool(node_);
  status_ = shown_status(node_, record_);
  parts_.tell(status_);
}

void Agent::Impl::tell_unread(const Error& error) {
  Status status{record_.state, "ApiUnavailable", "node " + options_.node + " cannot be read: " + error.message(),
                record_.since};
  if (k8s::is_gone(error)) {
    status.reason = "NodeMissing";
    status.message = "the cluster has no Node " + options_.node +
                     ": it was deleted, or its kubelet has not registered it; the agent goes on once it is there";
  }
  parts_.tell(status);
}

void Agent::Impl::see_node(const k8s::Node& node) {
  if (node.uid != node_.uid) {
    reload_ = true;
  } else {
    learn(node);
    if (has_foreign_record()) reload_ = true;
  }
  gates_news_->notify();
  changed_->notify();
}

// The answer to a request may be overtaken by the watch.
void Agent::Impl::learn(k8s::Node node) {
  if (node.uid != node_.uid || !older(node.resource_version, node_.resource_version)) node_ = std::move(node);
}

// Somebody took the record away, or another agent wrote one: what stands there counts.
bool Agent::Impl::has_foreign_record() const {
  const std::string there = shown_record(node_);
  return there != written_ && there != encode_record(record_);
}

asio::awaitable<void> Agent::Impl::follow_node() {
  k8s::ReflectorOptions options;
  options.field_selector = "metadata.name=" + options_.node;
  for (;;) {
    k8s::Reflector<k8s::Node> view(
        client_, rng_, k8s::Resource::nodes, options,
        [this](const std::string& uid, const k8s::Node* node) {
          if (node) see_node(*node);
          if (!node && uid == node_.uid) {
            reload_ = true;
            changed_->notify();
          }
        },
        [this] { changed_->notify(); });
    static_cast<void>(co_await view.run());
    // Refused from the start: rights may be given later, and the loop reads the Node by itself.
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
    co_await clock_.sleep_until(now() + std::chrono::milliseconds(200));  // a burst of changes is one
  }
}

bool Agent::Impl::wanted() const {
  if (reboot_requested(node_)) return true;
  if (pending_.need != Need::yes) return false;
  return std::find(record_.bad_targets.begin(), record_.bad_targets.end(), pending_.target) ==
         record_.bad_targets.end();
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
  // Also in `ready`: this process has not proved it yet, and the machine may have booted since it was said.
  show_ready(false);
  // Where the boot is to be verified first, its cordon stays until then.
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

// A request that comes after the boot and before its first agent cannot be told from an older one.
asio::awaitable<void> Agent::Impl::note_boot() {
  if (!rebooted() || next_state(record_.state, Event::boot_changed)) co_return;
  const bool told = !record_.boot_id.empty();
  record_.boot_id = boot_id_;
  co_await write(told && *requested_at_start_);
}

void Agent::Impl::show_ready(bool ready) {
  if (auto shown = parts_.host.show_ready(ready); !shown) warn("ReadyFileFailed", shown.error().message());
}

void Agent::Impl::warn(std::string reason, std::string message) {
  if (parts_.warn) parts_.warn({record_.state, std::move(reason), std::move(message), record_.since});
}

asio::awaitable<void> Agent::Impl::show_condition() {
  const bool maintenance = leaving_ || duties_of(record_.state).maintenance;
  const auto patch = condition_patch(node_, maintenance, status_, client_.server_now());
  if (!patch) co_return;
  auto node = co_await client_.patch_node_status(options_.node, *patch, within(request_timeout));
  if (node && node->uid == node_.uid) learn(std::move(*node));
}

asio::awaitable<void> Agent::Impl::first_answer() {
  while (!reload_ && !answered_) co_await wait(TimePoint::max());
}

asio::awaitable<void> Agent::Impl::undo_cordon() {
  Backoff backoff(patience);
  while (!reload_) {
    auto change = co_await drain::take_back(client_, rng_, options_.node, record_.run, within(request_timeout));
    if (change) {
      if (change->after.uid != node_.uid) {
        reload_ = true;
        co_return;
      }
      learn(change->after);
      record_.run.clear();
      co_return;
    }
    if (k8s::is_gone(change.error())) {
      reload_ = true;
      co_return;
    }
    co_await show("CannotUncordon", "the own cordon cannot be taken back yet: " + change.error().message());
    co_await clock_.sleep_until(now() + backoff.next(rng_, change.error().retry_after));
  }
}

asio::awaitable<void> Agent::Impl::give_turn_back() {
  Backoff backoff(patience);
  while (!reload_) {
    auto released = co_await parts_.slots.release(within(request_timeout));
    if (released) {
      record_.slot.clear();
      co_return;
    }
    co_await show("CannotRelease", "the turn cannot be given back yet: " + released.error().message());
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
    // Its duty is its work: the cordon has been taken back.
    case State::uncordoning:
      return [](Event event) -> asio::awaitable<Event> {
        co_return event;
      }(rebooted() ? Event::boot_changed : Event::uncordoned);
    case State::soaking: return soak();
    case State::degraded: return stay_degraded();
  }
  std::terminate();
}

asio::awaitable<void> Agent::Impl::commit(Event event) {
  Moment moment;
  moment.now = wall();
  moment.boot_id = boot_id_;
  moment.pending = pending_;
  moment.requested = reboot_requested(node_);
  moment.booted = booted_;
  moment.slot = slot_;
  moment.run = new_run();
  moment.cause = std::exchange(cause_, {});
  moment.cause_message = std::exchange(cause_message_, {});
  record_ = advance(std::move(record_), event, moment, options_.times);
  status_ = {record_.state, record_.cause, record_.cause_message, record_.since};
  // Withdrawn at once, not when the API server has heard of it.
  if (!duties_of(record_.state).shows_ready) show_ready(false);
  // Served by the boot, however it came about; and one request is not one attempt after the other.
  const bool served = event == Event::boot_changed || event == Event::reboot_impossible;
  announced_ = record_.state == State::rebooting;
  shutdown_news_->notify();
  if (co_await write(served)) parts_.tell(status_);
}

asio::awaitable<void> Agent::Impl::show(std::string reason, std::string message) {
  const Status status{record_.state, std::move(reason), std::move(message), record_.since};
  record_.pool = options_.pool(node_);
  if (status == status_ && written_ == encode_record(record_)) co_return;
  const bool news = status != status_;
  status_ = status;
  if (!co_await write() || !news) co_return;
  parts_.tell(status_);
  co_await show_condition();
}

asio::awaitable<bool> Agent::Impl::write(bool request_served) {
  Backoff backoff(patience);
  Backoff after_conflicts(conflict_patience);
  while (!reload_) {
    if (has_foreign_record()) {
      reload_ = true;
      break;
    }
    const auto patch = status_patch(node_, record_, status_, pending_.need, request_served);
    if (!patch) {
      written_ = shown_record(node_);
      co_return true;
    }
    auto node = co_await client_.patch_node(options_.node, *patch, k8s::DryRun::none, within(request_timeout));
    if (!node && k8s::is_conflict(node.error())) {
      node = co_await client_.get_node(options_.node, within(request_timeout));
      if (node) {
        reload_ = node->uid != node_.uid;
        learn(std::move(*node));
        co_await clock_.sleep_until(now() + after_conflicts.next(rng_));
        continue;
      }
    }
    if (node) {
      reload_ = node->uid != node_.uid;
      learn(std::move(*node));
      written_ = encode_record(record_);
      co_return !reload_;
    }
    reload_ = k8s::is_gone(node.error());
    if (reload_) break;
    co_await clock_.sleep_until(now() + backoff.next(rng_, node.error().retry_after));
  }
  co_return false;
}

}  // namespace haulout::agent
