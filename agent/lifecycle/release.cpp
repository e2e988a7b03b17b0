#include "agent/lifecycle/release.hpp"

#include <fmt/format.h>

#include "agent/node/lifecycle_conditions.hpp"
#include "agent/node/node_status.hpp"
#include "agent/node/waiting_taint.hpp"
#include "drain/cordon.hpp"
#include "drain/eviction_request_feed.hpp"
#include "drain/surge_feed.hpp"
#include "k8s/status.hpp"
#include "retry/backoff.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// Backoff after transient errors and conflicts.
constexpr BackoffOptions patience{std::chrono::milliseconds(200), 2.0, std::chrono::seconds(10),
                                  BackoffOptions::Jitter::equal};
constexpr Duration request_timeout = std::chrono::seconds(30);
// Leaves time for what comes after it.
constexpr Duration give_back_limit = std::chrono::seconds(8);

class Releasing {
 public:
  Releasing(ReleaseParts parts, std::string node, TimePoint deadline)
      : parts_(parts), name_(std::move(node)), deadline_(deadline) {}

  asio::awaitable<Released> all() {
    if (auto shown = parts_.host.show_ready(false); !shown) failed("the ready file stays", shown.error());
    auto node = co_await insist<k8s::Node>([this](TimePoint limit) { return parts_.client.get_node(name_, limit); });
    if (node) {
      node_ = *std::move(node);
      co_await give_node_back();
    } else if (k8s::is_gone(node.error())) {
      out_.done.push_back("node " + name_ + " does not exist");
      co_await free_turn(false);
    } else {
      failed("node " + name_ + " cannot be read", node.error());
    }
    co_return std::move(out_);
  }

 private:
  asio::awaitable<void> give_node_back() {
    const std::optional<Record> record = record_of(node_);
    const State state = record ? record->state : State::unknown;
    if (record) slot_ = record->slot;
    parts_.slots.remember(slot_);
    if (state == State::rebooting)
      out_.done.emplace_back("the agent may have requested a reboot, so the machine may still go down");
    if (record && state == State::updating && record->installing)
      out_.done.emplace_back(
          "the agent was installing updates, and the installation may still run: see `systemctl status haulout-update` "
          "on the machine (Flatcar: `update_engine_client -status`)");
    const bool uncordoned = co_await take_cordon_back();
    co_await change(
        "the node was added to load balancers again", "the node is still excluded from load balancers",
        [](const k8s::Node& seen) { return exclude_patch(seen, false); }, false);
    co_await change(
        "the agent's conditions were removed", "the agent's conditions stay",
        [this](const k8s::Node& seen) { return conditions_patch(seen, {}, parts_.client.server_now(), false); }, true);
    if (uncordoned) co_await free_turn(duties_of(state).turn != Duty::no);
    if (record && record->surges) co_await give_pods_back(state == State::draining);
    if (record && record->asks) co_await withdraw_requests(state == State::draining);
    if (out_.failures.empty())
      co_await change("labels and annotations were removed", "labels and annotations stay", no_status_patch, false);
    if (uncordoned)
      co_await change(
          "the annotations for autoscalers were removed", "the annotations for autoscalers stay",
          [](const k8s::Node& seen) { return hold_patch(seen, Duty::no); }, false);
    const bool tainted = has_waiting_taint(node_);
    co_await change(
        tainted ? "the taint of a node that waits was removed"
                : fmt::format("the annotation {} was removed; the taint that it named was gone", waiting_mark),
        tainted ? "the taint of a node that waits stays" : fmt::format("the annotation {} stays", waiting_mark),
        [this](const k8s::Node& seen) { return waiting_taint_patch(seen, Duty::no, {}, parts_.client.server_now()); },
        false);
  }

  // Comes after the cordon and the slot, because a pod that cannot be given back must not hold up the node and the
  // fleet. The record stays if this fails. With `draining`, the last request of the agent may not have been answered.
  asio::awaitable<void> give_pods_back(bool draining) {
    const TimePoint limit = std::min(deadline_, parts_.client.clock().now() + give_back_limit);
    const auto given = co_await drain::give_back_surged(parts_.client, parts_.rng, name_, {draining}, limit);
    if (given)
      for (const std::string& pod : given->pods)
        out_.done.push_back("pod " + pod + " was given back to its ReplicaSet");
    if (given && given->left.empty()) co_return;
    out_.failures.push_back("pods could not be given back to their ReplicaSets: " +
                            (given ? drain::words_of(given->left) : given.error().message()));
  }

  asio::awaitable<void> withdraw_requests(bool draining) {
    const TimePoint limit = std::min(deadline_, parts_.client.clock().now() + give_back_limit);
    const auto withdrawn =
        co_await drain::withdraw_requests(parts_.client, parts_.rng, node_.uid, {.unanswered = draining}, limit);
    if (withdrawn)
      for (const std::string& pod : withdrawn->pods)
        out_.done.push_back("the EvictionRequest for pod " + pod + " was withdrawn");
    if (withdrawn && withdrawn->left.empty()) co_return;
    out_.failures.push_back("EvictionRequests could not be withdrawn: " +
                            (withdrawn ? drain::words_of(withdrawn->left) : withdrawn.error().message()));
  }

  asio::awaitable<bool> take_cordon_back() {
    const auto mark = drain::mark_of(node_);
    // A person's cordon may also have a mark, because `haulout cordon` writes the person's name into one.
    if (!mark || mark->by != cordoned_by) {
      if (node_.unschedulable) out_.done.emplace_back("the node stays cordoned, because the agent did not cordon it");
      co_return true;
    }
    const std::string run = mark->run;
    auto changed = co_await insist<drain::CordonChange>(
        [this, run](TimePoint limit) { return drain::take_back(parts_.client, parts_.rng, name_, run, limit); });
    if (!changed) {
      failed("the node stays cordoned and keeps its slot", changed.error());
      co_return false;
    }
    node_ = changed->after;
    out_.done.emplace_back(node_.unschedulable ? "the node stays cordoned, because another client has cordoned it, too"
                                               : "the node was uncordoned");
    co_return true;
  }

  asio::awaitable<void> free_turn(bool had_one) {
    // If the slot was taken with another kind of slots, the configured kind would find nothing to release, and
    // afterwards no record would refer to the slot.
    if (const auto keeper = keeper_of(slot_); !keeper.empty() && keeper != parts_.slots.name()) {
      out_.failures.push_back(
          fmt::format("slot {} is not released, because it was taken with --slots={}: run haulout agent --release "
                      "again with that value instead of --slots={}",
                      slot_, keeper, parts_.slots.name()));
      co_return;
    }
    auto freed = co_await insist<void>([this](TimePoint limit) { return parts_.slots.release(limit); });
    if (!freed)
      failed("the slot could not be released", freed.error());
    else if (had_one)
      out_.done.emplace_back("the slot was released");
  }

  using Patch = std::function<std::optional<std::string>(const k8s::Node&)>;
  // Sends one patch of the Node that is guarded by its resourceVersion. After a conflict builds it again from the
  // current Node.
  asio::awaitable<void> change(std::string done, std::string not_done, Patch patch, bool status) {
    Backoff backoff(patience);
    for (;;) {
      const auto wanted = patch(node_);
      if (!wanted) co_return;
      auto node = co_await insist<k8s::Node>([this, wanted, status](TimePoint limit) {
        return status ? parts_.client.patch_node_status(name_, *wanted, limit)
                      : parts_.client.patch_node(name_, *wanted, k8s::DryRun::none, limit);
      });
      const bool conflict = !node && k8s::is_conflict(node.error());
      if (conflict) {
        Clock& clock = parts_.client.clock();
        const TimePoint next = clock.now() + backoff.next(parts_.rng);
        if (next >= deadline_) co_return failed(not_done, node.error());
        co_await clock.sleep_until(next);
        node = co_await insist<k8s::Node>([this](TimePoint limit) { return parts_.client.get_node(name_, limit); });
      }
      if (!node) co_return failed(not_done, node.error());
      node_ = *std::move(node);
      if (!conflict) co_return out_.done.push_back(std::move(done));
    }
  }

  template <class T>
  Task<T> insist(std::function<Task<T>(TimePoint)> request) {
    Backoff backoff(patience);
    Clock& clock = parts_.client.clock();
    for (;;) {
      auto answer = co_await request(std::min(deadline_, clock.now() + request_timeout));
      if (answer || !k8s::is_transient(answer.error())) co_return answer;
      const TimePoint next = clock.now() + backoff.next(parts_.rng, answer.error().retry_after);
      if (next >= deadline_) co_return answer;
      co_await clock.sleep_until(next);
    }
  }

  void failed(const std::string& what, const Error& error) { out_.failures.push_back(what + ": " + error.message()); }

  ReleaseParts parts_;
  std::string name_;
  TimePoint deadline_;
  k8s::Node node_;
  std::string slot_;  // name of the slot in the record; empty if it names none
  Released out_;
};

}  // namespace

asio::awaitable<Released> release(ReleaseParts parts, std::string node, TimePoint deadline) {
  Releasing releasing(parts, std::move(node), deadline);
  co_return co_await releasing.all();
}

}  // namespace haulout::agent
