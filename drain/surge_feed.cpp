#include "drain/surge_feed.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "k8s/patience.hpp"
#include "k8s/status.hpp"
#include "k8s/surge_mark.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

// Pauses between the rounds of give_back_surged(). A ReplicaSet adopts a pod within milliseconds.
constexpr BackoffOptions give_back_patience{std::chrono::milliseconds(100), 2.0, std::chrono::seconds(5),
                                            BackoffOptions::Jitter::equal};
// How long the pods are listed again if an answer is lost. A request whose client has gone away is processed within
// the 10 s that the server allows for admission webhooks.
constexpr Duration unanswered_limit = std::chrono::seconds(10);

bool is_left_over(const k8s::Pod& pod) {
  return pod.surge_mark && !pod.terminating() && !pod.finished();
}

enum class BackProgress { done, again, never };
struct Round {
  BackProgress progress = BackProgress::again;
  std::string why{};
};

Round failed(const Error& error) {
  if (k8s::is_gone(error)) return {BackProgress::done};
  return {k8s::is_conflict(error) || k8s::may_heal(error) ? BackProgress::again : BackProgress::never, error.message()};
}

// Takes the next step for a pod that was just read.
asio::awaitable<Round> give_back_one(k8s::Client& client, k8s::Pod pod, TimePoint deadline) {
  if (!pod.surged() && !pod.owned)
    co_return Round{BackProgress::again, fmt::format("ReplicaSet {} has not adopted it yet", pod.surge_mark->owner)};
  if (!pod.surged()) {
    const auto unmarked = co_await client.patch<k8s::Pod>(pod.ns, pod.name, k8s::unmark_patch(pod), deadline);
    co_return unmarked ? Round{BackProgress::done} : failed(unmarked.error());
  }
  const auto owner = co_await k8s::get_workload(client, "ReplicaSet", pod.ns, pod.surge_mark->owner, deadline);
  if ((owner && owner->uid != pod.surge_mark->owner_uid) || (!owner && k8s::is_gone(owner.error())))
    co_return Round{BackProgress::never,
                    fmt::format("its ReplicaSet {} does not exist any more; delete the pod if it is "
                                "not needed",
                                pod.surge_mark->owner)};
  // Without the right to read the ReplicaSet, the pod is given back all the same.
  if (!owner && k8s::may_heal(owner.error())) co_return failed(owner.error());
  const auto relabelled = co_await client.patch<k8s::Pod>(pod.ns, pod.name, k8s::relabel_patch(pod), deadline);
  co_return relabelled ? Round{BackProgress::again, "its ReplicaSet has not adopted it yet"}
                       : failed(relabelled.error());
}

}  // namespace

std::string GivenBack::words() const {
  std::string text;
  for (const Left& one : left) text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", one.pod, one.why);
  return text;
}

Task<GivenBack> give_back_surged(k8s::Client& client, Rng& rng, std::string node, bool unanswered, TimePoint deadline) {
  Clock& clock = client.clock();
  const TimePoint look_until = std::min(deadline, clock.now() + (unanswered ? unanswered_limit : Duration::zero()));
  Backoff backoff(give_back_patience);
  GivenBack result;
  std::map<std::string, std::string> never;  // why a pod cannot be given back, by its UID
  for (;;) {
    const auto pods = co_await client.list_pods_on(node, deadline);
    result.left.clear();
    result.may_heal = false;
    if (!pods && !k8s::may_heal(pods.error())) co_return pods.error();
    if (pods)
      for (const k8s::Pod& pod : pods->items) {
        if (!is_left_over(pod)) continue;
        if (const auto known = never.find(pod.uid); known != never.end()) {
          result.left.push_back({pod.key(), known->second});
          continue;
        }
        const Round round = co_await give_back_one(client, pod, deadline);
        if (round.progress == BackProgress::done) result.pods.push_back(pod.key());
        if (round.progress != BackProgress::done) result.left.push_back({pod.key(), round.why});
        if (round.progress == BackProgress::never) never.emplace(pod.uid, round.why);
        result.may_heal |= round.progress == BackProgress::again;
      }
    const TimePoint next = clock.now() + backoff.next(rng, pods ? std::nullopt : pods.error().retry_after);
    if (pods && !result.may_heal && next >= look_until) co_return result;
    if (!pods && next >= deadline) co_return pods.error();
    if (next >= deadline) co_return result;
    co_await clock.sleep_until(next);
  }
}

asio::awaitable<void> SurgeFeed::read_at_first() {
  if (!book_.is_on()) co_return;
  // Claims are of interest only after the namespace has been read, hence two rounds.
  for (int round = 0; round < 2; ++round) {
    for (const TrackedPod* tracked : pipeline_.leaving()) static_cast<void>(book_.held(tracked->pod, session_.now()));
    while (const auto question = book_.facts().next_question(session_.now())) co_await read(*question);
  }
}

std::string SurgeFeed::plan() const {
  if (!book_.is_on()) return {};
  std::size_t replaced = 0;
  for (const TrackedPod* tracked : pipeline_.leaving())
    replaced += tracked->decision.verdict == Verdict::evict && book_.covers(tracked->pod);
  std::vector<DiagnosisFact> facts;
  diagnose(facts);
  std::string words = fmt::format("; {} of them would be replaced in advance (--surge)", replaced);
  for (const DiagnosisFact& fact : facts) words += fmt::format("; {}: {}", fact.subject, fact.message);
  return words;
}

void SurgeFeed::look(TaskGroup& group) {
  const std::size_t out = book_.requests_out();
  const bool may_begin = node_.unschedulable() && !node_.gone() && !node_.in_doubt() && out < most_requests;
  for (SurgeBook::Step& step :
       book_.take_steps(pipeline_.leaving(), may_begin ? most_requests - out : 0, session_.now()))
    group.spawn(take(std::move(step)));
  if (!reader_.runs() && book_.facts().next_question(session_.now())) reader_.start(group, read_all());
}

asio::awaitable<void> SurgeFeed::read_all() {
  while (const auto question = book_.facts().next_question(session_.now())) co_await read(*question);
  pipeline_.guards_changed();
  session_.changed().notify();
}

asio::awaitable<void> SurgeFeed::read(SurgeFacts::Question question) {
  const TimePoint limit = session_.within(request_timeout);
  if (question.claim.empty()) {
    const auto ns = co_await session_.client().get<k8s::Namespace>(question.ns, limit);
    if (!ns && !k8s::is_gone(ns.error())) co_return book_.facts().not_answered(question, ns.error(), session_.now());
    book_.facts().namespace_known(question.ns,
                                  ns ? k8s::value_at(ns->annotations, surge_annotation).value_or("") : std::string());
    co_return;
  }
  const auto claim = co_await session_.client().get<k8s::PersistentVolumeClaim>(question.ns, question.claim, limit);
  if (!claim) co_return book_.facts().not_answered(question, claim.error(), session_.now());
  book_.facts().claim_known(question, claim->shared ? std::string()
                                                    : fmt::format("only one node may mount PersistentVolumeClaim {}/{}",
                                                                  question.ns, question.claim));
}

asio::awaitable<void> SurgeFeed::take(SurgeBook::Step step) {
  const Options& options = session_.options();
  for (std::optional<SurgeBook::Step> next = std::move(step); next;) {
    const SurgeBook::Step now = *std::exchange(next, std::nullopt);
    const k8s::Pod& pod = now.pod;
    std::string patch;
    switch (now.kind) {
      case SurgeBook::Step::Kind::surge:
        patch = k8s::surge_patch(
            pod, {options.run_id, options.cordoned_by, session_.client().server_now(), session_.node_name(),
                  k8s::value_at(pod.labels, k8s::template_hash_label).value_or(""), pod.controller->name,
                  pod.controller->uid, now.ready});
        break;
      case SurgeBook::Step::Kind::relabel: patch = k8s::relabel_patch(pod); break;
      case SurgeBook::Step::Kind::unmark: patch = k8s::unmark_patch(pod); break;
    }
    const auto patched = co_await session_.client().patch<k8s::Pod>(pod.ns, pod.name, std::move(patch),
                                                                    session_.within(request_timeout));
    next = book_.answered(now, patched, session_.now());
  }
  pipeline_.guards_changed();
  session_.changed().notify();
}

TimePoint SurgeFeed::next_wake(TimePoint at) const {
  return book_.next_due(at);
}

asio::awaitable<void> SurgeFeed::give_back() {
  const auto& pods = pipeline_.pods();
  const bool any = std::any_of(pods.begin(), pods.end(), [](const auto& entry) {
    return is_left_over(entry.second.pod) && entry.second.state != PodState::vanished;
  });
  left_ = false;
  if (!any && !book_.any_unanswered()) co_return;
  left_ = true;
  const auto given = co_await give_back_surged(session_.client(), session_.rng(), session_.node_name(),
                                               book_.any_unanswered(), session_.now() + request_timeout);
  left_ = !given || !given->left.empty();
  if (!*left_) co_return;
  session_.ending().add(fmt::format(
      "; pods that were to be replaced in advance could not be given back to their ReplicaSets: {}; run haulout "
      "release {}",
      given ? given->words() : given.error().message(), session_.node_name()));
}

}  // namespace haulout::drain
