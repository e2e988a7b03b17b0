// The proof that a node is ready for its reboot. Most-recent reads establish it. Watches end it when it does not hold
// any more. The agent repeats it right before the reboot.
#include <fmt/format.h>

#include "agent/lifecycle/agent_impl.hpp"
#include "drain/pipeline.hpp"
#include "drain/pod_filter.hpp"
#include "drain/reasons.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// Nothing reports that a block of the reboot has ended, so the agent asks this often.
constexpr Duration block_look = std::chrono::minutes(1);

// The least pause after a failed proof. Showing the failure changes the agent's own Node, and that change would start
// the next proof at once.
constexpr Duration least_pause = std::chrono::seconds(2);

}  // namespace

bool Agent::Impl::must_leave(const k8s::Pod& pod) {
  if (left_alone_.contains(pod.uid)) return false;
  const bool pinned_stay = options_.drain.policy.pinned == drain::Treatment::skip;
  if (pinned_stay && record_.pinned.contains(drain::controller_key(pod))) return false;
  const drain::Decision decision = drain::decide(pod, options_.drain.policy, {}, wall());
  if (decision.verdict != drain::Verdict::skip) return !comes_back(pod) || !pinned_stay;
  // The pod stays skipped even if it is deleted later, when its earlier state cannot be read any more. A pod that is
  // skipped because of its labels is not stored, because labels stay readable.
  if (!pod.terminating() && decision.reason != drain::left_by_labels) left_alone_.insert(pod.uid);
  return false;
}

// Within one drain the drain itself detects such pods. This function detects pods that appear when the node is already
// empty.
bool Agent::Impl::comes_back(const k8s::Pod& pod) {
  // A pod that was created while the node was schedulable has not come back.
  if (!pod.controller || !pod.created || *pod.created < takes_no_pods_since_) return false;
  const std::string controller = drain::controller_key(pod);
  std::set<std::string>& returned = returned_[controller];
  returned.insert(pod.uid);
  if (returned.size() < drain::Pipeline::returns_until_pinned) return false;
  if (!record_.pinned.insert(controller).second) return true;
  warn(reason::pod_pinned,
       fmt::format("{} has come back to this cordoned node {} times; {}", controller, returned.size(),
                   options_.drain.policy.pinned == drain::Treatment::skip
                       ? "it stays (--pinned leave)"
                       : "it is not evicted again, and the drain waits for it (--pinned wait)"));
  return true;
}

Task<std::optional<Event>> Agent::Impl::prove() {
  std::optional<Error> unknown;
  for (const auto question : {&Impl::doubt_turn, &Impl::doubt_cordon, &Impl::doubt_gates, &Impl::doubt_emptiness}) {
    auto answer = co_await (this->*question)();
    // One event that prevents the reboot is enough, even if other questions have no answer.
    if (answer && *answer) co_return answer;
    // Of several errors, keep the one with the longest Retry-After.
    if (!answer && (!unknown || unknown->retry_after < answer.error().retry_after)) unknown = std::move(answer).error();
  }
  if (unknown) co_return *std::move(unknown);
  co_return std::nullopt;
}

Task<std::optional<Event>> Agent::Impl::doubt_turn() {
  CO_TRY(const Turn turn, co_await parts_.slots.confirm(within(request_timeout)));
  co_return turn.ours ? std::nullopt : std::optional(Event::turn_lost);
}

Task<std::optional<Event>> Agent::Impl::doubt_cordon() {
  const std::uint64_t news = node_news_;
  auto node = co_await client_.get_node(options_.node, within(request_timeout));
  if (!node) {
    if (k8s::is_gone(node.error())) reload_ = true;
    co_return std::move(node).error();
  }
  if (node->uid != node_.uid) {
    reload_ = true;
    co_return Error(Errc::invalid, "node " + options_.node + " was replaced");
  }
  learn(*std::move(node), news);
  if (!node_.unschedulable) co_return uncordoned_by_somebody();
  TimePoint later = TimePoint::max();
  if (const auto foreign = foreign_boot(later)) {
    // With a foreign boot id the agent would not notice the reboot.
    cause_ = foreign->reason;
    cause_message_ = foreign->message;
    co_return Event::gate_closed;
  }
  co_return std::nullopt;
}

Task<std::optional<Event>> Agent::Impl::doubt_gates() {
  CO_TRY(const bool closed, co_await given_up());
  co_return closed ? std::optional(Event::gate_closed) : std::nullopt;
}

Task<std::optional<Event>> Agent::Impl::doubt_emptiness() {
  CO_TRY(const auto pods, co_await client_.list_pods_on(options_.node, within(std::chrono::minutes(1))));
  for (const k8s::Pod& pod : pods.items)
    if (must_leave(pod)) co_return Event::emptiness_lost;
  co_return std::nullopt;
}

asio::awaitable<Event> Agent::Impl::stay_ready() {
  if (rebooted()) co_return Event::boot_changed;
  co_await with_task_group([this](TaskGroup& group) { return watched_ready(group); });
  co_return decided_.value_or(Event::turn_lost);
}

asio::awaitable<void> Agent::Impl::watched_ready(TaskGroup& group) {
  co_await first_answer();
  const bool by_others = parts_.host.reboot_methods().empty();
  group.spawn(follow_turn());
  group.spawn(follow_pauses());
  group.spawn(follow_pods());
  Backoff backoff({std::chrono::seconds(1), 2.0, std::chrono::seconds(30), BackoffOptions::Jitter::equal});
  TimePoint not_before{};
  while (!reload_ && !decided_) {
    if (!wanted() && pending_.need == Need::no) {
      decided_ = Event::not_needed;
      break;
    }
    if (now() < not_before) {
      co_await wait(not_before);
      continue;
    }
    auto trouble = co_await prove();
    // A decision that was made during the proof is newer than the proof.
    if (reload_ || decided_) break;
    if (by_others && co_await booted_unnoticed()) {
      decided_ = Event::boot_unknown;
      break;
    }
    if (trouble && !*trouble) show_ready(true);
    TimePoint until = TimePoint::max();
    if (!trouble) {
      until = now() + backoff.next(rng_, trouble.error().retry_after);
      not_before = trouble.error().retry_after ? until : now() + least_pause;
      if (status_.reason != reason::api_unavailable)
        group.spawn(show_beside(reason::api_unavailable,
                                "ready, but the agent cannot prove it now: " + trouble.error().message()));
    } else if (*trouble) {
      decided_ = *trouble;
    } else if (by_others) {
      backoff.reset();
      group.spawn(show_beside({}, "drained and cordoned: the node may be rebooted at any time"));
    } else if (pending_.need == Need::unknown && !reboot_requested(node_)) {
      group.spawn(show_beside(reason::backend_unknown, pending_.problem));
    } else if (const std::string who = co_await reboot_blocked_by(); reload_ || decided_) {
      break;
    } else if (!who.empty()) {
      backoff.reset();
      until = now() + block_look;
      group.spawn(show_beside(reason::cannot_reboot, who));
    } else {
      decided_ = Event::reboot_due;
    }
    // Each change of the node, its pods or its slot starts another proof.
    if (!decided_) co_await wait(until);
  }
}

asio::awaitable<bool> Agent::Impl::booted_unnoticed() {
  const BootMarks marks = co_await boot_marks();
  if (!record_.marks) record_.marks = marks;
  const std::string shown = restart_shown(*record_.marks, marks, boot_id_);
  if (shown.empty()) co_return false;
  cause_ = reason::boot_id_unchanged;
  cause_message_ = unchanged_boot_id(shown, options_.node);
  co_return true;
}

asio::awaitable<void> Agent::Impl::follow_pods() {
  k8s::ReflectorOptions options;
  options.field_selector = "spec.nodeName=" + options_.node;
  for (;;) {
    k8s::Reflector<k8s::Pod> view(
        client_, rng_, options,
        [this](const std::string&, const k8s::Pod* pod) {
          if (pod && must_leave(*pod)) decide(Event::emptiness_lost);
        },
        [] {});
    static_cast<void>(co_await view.run());
    co_await clock_.sleep_until(now() + look_interval);
  }
}

}  // namespace haulout::agent
