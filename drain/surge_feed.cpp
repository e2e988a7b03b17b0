#include "drain/surge_feed.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "k8s/status.hpp"
#include "k8s/surge_mark.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

constexpr BackoffOptions give_back_patience{std::chrono::milliseconds(200), 2.0, std::chrono::seconds(5),
                                            BackoffOptions::Jitter::equal};

bool is_left_over(const k8s::Pod& pod) {
  return pod.surge_mark && !pod.terminating();
}

// Gives one pod back. After a conflict reads the pod again. A pod that is gone, or was given back meanwhile, is no
// error.
Task<> give_back_one(k8s::Client& client, Rng& rng, k8s::Pod pod, TimePoint deadline) {
  const std::string uid = pod.uid;
  Backoff backoff(give_back_patience);
  for (;;) {
    auto patched = co_await client.patch<k8s::Pod>(pod.ns, pod.name, k8s::give_back_patch(pod), deadline);
    if (patched || k8s::is_gone(patched.error())) co_return Result<>();
    Error error = std::move(patched).error();
    if (!k8s::is_conflict(error) && !k8s::may_heal(error)) co_return error;
    const TimePoint next = client.clock().now() + backoff.next(rng, error.retry_after);
    if (next >= deadline) co_return error;
    co_await client.clock().sleep_until(next);
    auto read = co_await client.get<k8s::Pod>(pod.ns, pod.name, deadline);
    if (!read && k8s::is_gone(read.error())) co_return Result<>();
    if (!read) continue;
    if (read->uid != uid || !is_left_over(*read)) co_return Result<>();
    pod = *std::move(read);
  }
}

}  // namespace

Task<GivenBack> give_back_surged(k8s::Client& client, Rng& rng, std::string node, TimePoint deadline) {
  Backoff backoff(give_back_patience);
  auto pods = co_await client.list_pods_on(node, deadline);
  while (!pods && k8s::may_heal(pods.error())) {
    const TimePoint next = client.clock().now() + backoff.next(rng, pods.error().retry_after);
    if (next >= deadline) break;
    co_await client.clock().sleep_until(next);
    pods = co_await client.list_pods_on(node, deadline);
  }
  if (!pods) co_return std::move(pods).error();
  GivenBack result;
  for (const k8s::Pod& pod : pods->items) {
    if (!is_left_over(pod)) continue;
    auto given = co_await give_back_one(client, rng, pod, deadline);
    if (given) {
      result.pods.push_back(pod.key());
      continue;
    }
    result.left.push_back(pod.key());
    if (!result.error) result.error = std::move(given).error();
  }
  co_return result;
}

void SurgeFeed::look(TaskGroup& group) {
  if (!book_.is_on()) return;
  for (SurgeBook::Step& step : book_.take_steps(pipeline_.leaving(), session_.now()))
    group.spawn(take(std::move(step)));
  if (!reader_.runs() && book_.next_question(session_.now())) reader_.start(group, read_all());
}

asio::awaitable<void> SurgeFeed::read_at_first() {
  if (!book_.is_on() || session_.options().dry_run != DryRunMode::none) co_return;
  // Claims are of interest only after the namespace has been read, hence two rounds.
  for (int round = 0; round < 2; ++round) {
    for (const TrackedPod* tracked : pipeline_.leaving()) static_cast<void>(book_.held(tracked->pod, session_.now()));
    while (const auto question = book_.next_question(session_.now())) co_await read(*question);
  }
}

asio::awaitable<void> SurgeFeed::read_all() {
  while (const auto question = book_.next_question(session_.now())) co_await read(*question);
  pipeline_.guards_changed();
  session_.changed().notify();
}

asio::awaitable<void> SurgeFeed::read(SurgeBook::Question question) {
  const TimePoint limit = session_.within(request_timeout);
  if (question.claim.empty()) {
    auto ns = co_await session_.client().get<k8s::Namespace>(question.ns, limit);
    if (!ns && k8s::may_heal(ns.error())) co_return book_.not_answered(question, session_.now());
    // Without the right to read it, the namespace counts as one without the annotation.
    book_.namespace_known(question.ns, ns ? k8s::value_at(ns->annotations, surge_annotation).value_or("") : "");
    co_return;
  }
  auto claim = co_await session_.client().get<k8s::PersistentVolumeClaim>(question.ns, question.claim, limit);
  if (!claim && k8s::may_heal(claim.error())) co_return book_.not_answered(question, session_.now());
  std::string obstacle;
  if (!claim)
    obstacle =
        fmt::format("its PersistentVolumeClaim {} could not be read: {}", question.claim, claim.error().message());
  else if (!claim->shared)
    obstacle = fmt::format("only one node may mount its PersistentVolumeClaim {}", question.claim);
  book_.claim_known(question, std::move(obstacle));
}

asio::awaitable<void> SurgeFeed::take(SurgeBook::Step step) {
  const k8s::Pod& pod = step.pod;
  const Options& options = session_.options();
  std::string patch;
  if (step.kind == SurgeBook::Step::Kind::surge) {
    const auto hash = k8s::value_at(pod.labels, k8s::template_hash_label).value_or("");
    patch = k8s::surge_patch(pod, {options.run_id, options.cordoned_by, session_.client().server_now(),
                                   session_.node_name(), hash, pod.controller->name, pod.controller->uid, step.ready});
  } else {
    patch = k8s::give_back_patch(pod);
  }
  auto patched =
      co_await session_.client().patch<k8s::Pod>(pod.ns, pod.name, std::move(patch), session_.within(request_timeout));
  book_.answered(step, patched ? Result<>() : Result<>(patched.error()), session_.now());
  if (patched) {
    controllers_.pod_changed(patched->uid, &*patched, session_.now(), session_.client().server_now());
    pipeline_.pod_changed(*patched, session_.now());
  }
  pipeline_.guards_changed();
  session_.changed().notify();
}

TimePoint SurgeFeed::next_wake(TimePoint at) const {
  return book_.is_on() ? book_.next_due(at) : TimePoint::max();
}

asio::awaitable<void> SurgeFeed::give_back() {
  const auto& pods = pipeline_.pods();
  const bool any = std::any_of(pods.begin(), pods.end(), [](const auto& entry) {
    return is_left_over(entry.second.pod) && entry.second.state != PodState::vanished;
  });
  // A patch whose answer was lost may have surged a pod that the view does not show as surged yet.
  if (!any && !book_.any_unanswered()) co_return;
  auto given = co_await give_back_surged(session_.client(), session_.rng(), session_.node_name(),
                                         session_.now() + request_timeout);
  if ((given && !given->error) || !session_.ending().has_come()) co_return;
  const std::string why = given ? given->error->message() : given.error().message();
  session_.ending().add(
      fmt::format("; pods that the drain has surged could not be given back to their ReplicaSets: {}; "
                  "run haulout release {}",
                  why, session_.node_name()));
}

}  // namespace haulout::drain
