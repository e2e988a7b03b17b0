#include "agent/lifecycle/proof.hpp"

#include <fmt/format.h>

#include "agent/lifecycle/node_record.hpp"
#include "drain/pipeline.hpp"
#include "drain/pod_filter.hpp"
#include "drain/reasons.hpp"
#include "k8s/reflector.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {

void RemainingPods::node_is_schedulable() {
  returned_.clear();
  context_.record.pinned.clear();
}

void RemainingPods::learn(const drain::Report& report) {
  for (const drain::PodReport& pod : report.pods) {
    if (pod.outcome != drain::PodOutcome::skipped || drain::can_be_judged_again(pod.reason)) continue;
    if (pod.reason == reason::pod_pinned)
      context_.record.pinned.insert(pod.ns + "/" + pod.controller);
    else
      left_alone_.insert(pod.uid);
  }
}

drain::Decision RemainingPods::decide(const k8s::Pod& pod) const {
  const std::set<std::string>& evicted = context_.record.evicted_daemon_sets;
  const bool another_was_evicted =
      pod.controller && evicted.contains(pod.controller->uid) && !evicted.contains(pod.uid);
  const drain::Policy& policy = context_.options.drain.policy;
  return drain::decide(
      pod, policy, {}, context_.wall(),
      {.stays_because = drain::why_daemon_stays(pod, policy, context_.options.drain.own_pod_uid, another_was_evicted)});
}

bool RemainingPods::pinned_pods_stay() const {
  return context_.options.drain.policy.pinned == drain::Treatment::skip;
}

bool RemainingPods::was_left(const k8s::Pod& pod) const {
  return left_alone_.contains(pod.uid) ||
         (pinned_pods_stay() && context_.record.pinned.contains(drain::controller_key(pod)));
}

bool RemainingPods::must_leave(const k8s::Pod& pod) {
  if (was_left(pod)) return false;
  const drain::Decision decision = decide(pod);
  if (decision.verdict != drain::Verdict::skip) return !comes_back(pod) || !pinned_pods_stay();
  // Stores the UID, so that the pod stays skipped after it becomes terminating: then the state from which the filters
  // decided cannot be read any more. A pod that is skipped because of its labels, its namespace or its owner is not
  // stored, because these stay readable.
  if (!pod.terminating() && !drain::can_be_judged_again(decision.reason)) left_alone_.insert(pod.uid);
  return false;
}

boost::asio::awaitable<void> RemainingPods::follow(Learns learns, std::function<void()> found,
                                                   std::function<void()> unseen) {
  k8s::ReflectorOptions options;
  options.field_selector = "spec.nodeName=" + context_.options.node;
  for (;;) {
    k8s::Reflector<k8s::Pod> view(
        context_.client, context_.rng, options,
        [this, learns, &found](const std::string&, const k8s::Pod* pod) {
          if (!pod) return;
          const bool leaves = learns == Learns::yes ? must_leave(*pod)
                                                    : !was_left(*pod) && decide(*pod).verdict != drain::Verdict::skip;
          if (leaves) found();
        },
        [] {});
    static_cast<void>(co_await view.run());
    unseen();
    co_await context_.pause(look_interval);
  }
}

// Returns true if the pod's controller has created pods on this cordoned node again and again. While a drain runs, the
// drain detects this. This function detects it when the node is already empty.
bool RemainingPods::comes_back(const k8s::Pod& pod) {
  // A pod that was created while the node was schedulable does not count.
  if (!pod.controller || !pod.created || *pod.created < context_.view.takes_no_pods_since()) return false;
  const std::string controller = drain::controller_key(pod);
  std::set<std::string>& returned = returned_[controller];
  returned.insert(pod.uid);
  if (returned.size() < drain::Pipeline::returns_until_pinned) return false;
  if (!context_.record.pinned.insert(controller).second) return true;
  context_.writer.warn(
      reason::pod_pinned,
      fmt::format("{} has created pods on this cordoned node {} times; {}", controller, returned.size(),
                  pinned_pods_stay()
                      ? "they stay (--pinned leave)"
                      : "they are not evicted again, and the drain waits (--pinned wait): scale the controller down, "
                        "or remove the toleration or nodeName of its pods"));
  return true;
}

Task<std::optional<Decision>> Proof::prove() {
  Conditions& conditions = context_.writer.conditions();
  const std::uint64_t doubts = conditions.doubts();
  std::optional<Error> unknown;
  for (const auto question : {&Proof::doubt_slot, &Proof::doubt_cordon, &Proof::doubt_gates, &Proof::doubt_emptiness}) {
    auto answer = co_await (this->*question)();
    // One decision that prevents the reboot is enough, even if other questions have no answer.
    if (answer && *answer) co_return answer;
    // Of several errors, returns the one with the longest Retry-After.
    if (!answer && (!unknown || unknown->retry_after < answer.error().retry_after)) unknown = std::move(answer).error();
  }
  if (unknown) co_return *std::move(unknown);
  conditions.prove(doubts);
  co_return std::nullopt;
}

Task<std::optional<Decision>> Proof::doubt_slot() {
  slot_uncertain_ = false;
  CO_TRY(const Turn turn, co_await context_.parts.slots.confirm(context_.within(request_timeout)));
  slot_uncertain_ = turn.uncertain;
  if (turn.uncertain) co_return Error(Errc::unavailable, turn.why);
  co_return turn.ours ? std::nullopt : std::optional(Decision{Event::turn_lost});
}

Task<std::optional<Decision>> Proof::doubt_cordon() {
  const std::string& name = context_.options.node;
  const std::uint64_t news = context_.view.news();
  auto node = co_await context_.client.get_node(name, context_.within(request_timeout));
  if (!node) {
    if (k8s::is_gone(node.error())) context_.activity.reload();
    co_return std::move(node).error();
  }
  if (node->uid != context_.node().uid) {
    context_.activity.reload();
    co_return Error(Errc::invalid, "node " + name + " was replaced");
  }
  context_.view.learn(*std::move(node), news);
  if (!context_.node().unschedulable) co_return cordon_lost();
  TimePoint later = TimePoint::max();
  // If the kubelet reports another boot id than the agent reads, the agent could not recognize the reboot afterwards.
  // So it does not reboot.
  if (const auto foreign = context_.view.foreign_boot(later))
    co_return Decision{Event::gate_closed, foreign->reason, foreign->message};
  co_return std::nullopt;
}

Task<std::optional<Decision>> Proof::doubt_gates() {
  if (context_.parts.updater) co_await gates_.need_known();
  co_return co_await gates_.given_up();
}

Task<std::optional<Decision>> Proof::doubt_emptiness() {
  CO_TRY(const auto pods,
         co_await context_.client.list_pods_on(context_.options.node, context_.within(std::chrono::minutes(1))));
  for (const k8s::Pod& pod : pods.items)
    if (pods_.must_leave(pod)) co_return Decision{Event::emptiness_lost};
  co_return std::nullopt;
}

}  // namespace haulout::agent
