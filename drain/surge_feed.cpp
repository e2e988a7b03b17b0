#include "drain/surge_feed.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "base/text.hpp"
#include "k8s/patience.hpp"
#include "k8s/status.hpp"
#include "k8s/surge_mark.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

// Pauses between the rounds of give_back_surged(). A ReplicaSet adopts a pod within milliseconds.
constexpr BackoffOptions give_back_patience{std::chrono::milliseconds(100), 2.0, std::chrono::seconds(5),
                                            BackoffOptions::Jitter::equal};
// For this time a ReplicaSet that was read is taken to exist.
constexpr Duration owner_known_for = std::chrono::seconds(1);
using left_over::refusals_that_count;

bool is_left_over(const k8s::Pod& pod) {
  return pod.surge_mark && !pod.terminating() && !pod.finished();
}

// Returns false if the ReplicaSet that the mark names does not exist any more, so that nothing can adopt the pod.
// Returns true without the right to read it: the pod is given back all the same. Fails with errors that may pass.
Task<bool> owner_exists(k8s::Client& client, k8s::Pod pod, TimePoint deadline) {
  const auto owner = co_await k8s::get_workload(client, "ReplicaSet", pod.ns, pod.surge_mark->owner, deadline);
  if (owner) co_return owner->uid == pod.surge_mark->owner_uid && !owner->terminating;
  if (k8s::is_gone(owner.error())) co_return false;
  if (!k8s::may_heal(owner.error())) co_return true;
  co_return owner.error();
}

// What has become of one pod. `orphan`: its ReplicaSet is gone.
enum class BackProgress { done, gone, again, refused, orphan };
struct Round {
  BackProgress progress = BackProgress::again;
  std::string why{};
  bool failed = false;  // a request of it failed
};

Round failed(const Error& error) {
  if (k8s::is_gone(error)) return {BackProgress::gone};
  const bool passes = k8s::is_conflict(error) || k8s::may_heal(error);
  return {passes ? BackProgress::again : BackProgress::refused, error.message(), true};
}

// Takes the next step for a pod that was just read. `owner_read` is when its ReplicaSet was last seen to exist.
Task<Round> give_back_one(k8s::Client& client, k8s::Pod pod, std::optional<TimePoint>& owner_read, TimePoint deadline) {
  if (!pod.surged() && pod.owned) {
    const auto unmarked = co_await client.patch<k8s::Pod>(pod.ns, pod.name, k8s::unmark_patch(pod), deadline);
    co_return unmarked ? Round{BackProgress::done} : failed(unmarked.error());
  }
  if (!owner_read || client.clock().now() - *owner_read >= owner_known_for) {
    const auto exists = co_await owner_exists(client, pod, deadline);
    if (!exists) co_return failed(exists.error());
    if (!*exists)
      co_return Round{BackProgress::orphan,
                      fmt::format("its ReplicaSet {} does not exist any more; delete the pod if it is not needed",
                                  pod.surge_mark->owner)};
    owner_read = client.clock().now();
  }
  const Round waits{BackProgress::again, fmt::format("ReplicaSet {} has not adopted it yet", pod.surge_mark->owner)};
  if (!pod.surged()) co_return waits;
  const auto relabelled = co_await client.patch<k8s::Pod>(pod.ns, pod.name, k8s::relabel_patch(pod), deadline);
  co_return relabelled ? waits : failed(relabelled.error());
}

// Gives back the pods of one node in rounds. Borrows the client.
class GivingBack {
 public:
  GivingBack(k8s::Client& client, std::map<std::string, k8s::SurgeMark> lost, TimePoint deadline)
      : client_(client), lost_(std::move(lost)), deadline_(deadline) {}

  // Makes one attempt for each pod of the list that is left over, several at a time. `pods` are all pods of the node.
  asio::awaitable<void> round(std::vector<k8s::Pod> pods) {
    open_.clear();
    for (k8s::Pod& pod : pods) {
      const auto begun = states_.find(pod.uid);
      const bool whole = pod.owned && pod.has_template_hash();
      if (const auto lost = lost_.find(pod.uid); lost != lost_.end() && !pod.surge_mark && !whole)
        pod.surge_mark = lost->second;
      if (is_left_over(pod)) {
        open_.push_back(std::move(pod));
      } else if (begun != states_.end() && !pod.surge_mark) {  // the answer to the last step was lost
        begun->second.round = {BackProgress::done};
      }
    }
    // A pod whose last attempt failed comes last, because its next one may hang.
    std::ranges::sort(open_, {}, [this](const k8s::Pod& pod) { return states_[pod.uid].failures; });
    const auto one = [this](const k8s::Pod& pod) { return attempt(pod); };
    co_await left_over::in_batches(open_, SurgeFeed::most_requests, one);
  }

  // Returns true if a next round may make progress.
  bool goes_on() const {
    return std::ranges::any_of(open_, [this](const k8s::Pod& pod) {
      const State& state = states_.at(pod.uid);
      return state.round.progress == BackProgress::again ||
             (state.round.progress == BackProgress::refused && state.refusals < refusals_that_count);
    });
  }

  GivenBack result() const {
    GivenBack result;
    for (const auto& [uid, state] : states_)
      if (state.round.progress == BackProgress::done) result.pods.push_back(state.key);
    for (const k8s::Pod& pod : open_) {
      const State& state = states_.at(pod.uid);
      if (state.round.progress == BackProgress::done || state.round.progress == BackProgress::gone) continue;
      result.left.push_back({state.key, state.round.why});
      result.may_heal |= state.round.progress != BackProgress::orphan;
    }
    return result;
  }

 private:
  struct State {
    std::string key{};
    Round round{};
    unsigned failures = 0, refusals = 0;
    std::optional<TimePoint> owner_read{};
  };

  asio::awaitable<void> attempt(k8s::Pod pod) {
    State& state = states_[pod.uid];
    state.key = pod.key();
    if (state.round.progress == BackProgress::orphan || state.refusals >= refusals_that_count) co_return;
    const TimePoint end = left_over::end_of_attempt(client_.clock().now(), state.failures, deadline_);
    auto round = co_await give_back_one(client_, pod, state.owner_read, end);
    state.round = round ? *std::move(round) : failed(round.error());
    if (state.round.failed) ++state.failures;
    if (state.round.progress == BackProgress::refused) ++state.refusals;
  }

  k8s::Client& client_;
  std::map<std::string, k8s::SurgeMark> lost_;
  TimePoint deadline_;
  std::vector<k8s::Pod> open_;  // the pods of the last list that are left over
  std::map<std::string, State> states_;
};

}  // namespace

Task<GivenBack> give_back_surged(k8s::Client& client, Rng& rng, std::string node, Surged surged, TimePoint deadline) {
  Clock& clock = client.clock();
  const TimePoint look_until =
      std::min(deadline, clock.now() + (surged.unanswered ? left_over::unanswered_limit : Duration::zero()));
  Backoff backoff(give_back_patience);
  GivingBack back(client, std::move(surged.marks), deadline);
  for (unsigned lost_lists = 0;;) {
    auto pods = co_await client.list_pods_on(node, left_over::end_of_attempt(clock.now(), lost_lists, deadline));
    if (!pods) ++lost_lists;
    if (!pods && !k8s::may_heal(pods.error())) co_return pods.error();
    const Duration pause = backoff.next(rng, pods ? std::nullopt : pods.error().retry_after);
    if (pods) co_await back.round(std::move(pods->items));
    const TimePoint next = clock.now() + pause;
    if (pods && !back.goes_on() && next >= look_until) co_return back.result();
    if (!pods && next >= deadline) co_return pods.error();
    if (next >= deadline) co_return back.result();
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
  std::string words = fmt::format("; {} would be replaced in advance (--surge)", count_of(replaced, "pod"));
  for (const DiagnosisFact& fact : facts) words += fmt::format("; {}: {}", fact.subject, fact.message);
  return words;
}

void SurgeFeed::look(TaskGroup& group) {
  const bool throttled = session_.now() < throttled_until();
  const std::size_t most = throttled ? 0 : most_requests - std::min(book_.requests_out(), most_requests);
  const bool may_begin = node_.unschedulable() && !node_.gone() && !node_.in_doubt();
  for (SurgeBook::Step& step : book_.take_steps(pipeline_.leaving(), most, may_begin, session_.now()))
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
  book_.facts().claim_known(question, surge_obstacle(*claim));
}

// Sends the patch of a step. Returns nullopt if it would make the pod one that nothing adopts.
asio::awaitable<std::optional<Result<k8s::Pod>>> SurgeFeed::send(const SurgeBook::Step& step) {
  const Options& options = session_.options();
  const k8s::Pod& pod = step.pod;
  const TimePoint limit = session_.within(request_timeout);
  std::string patch;
  switch (step.kind) {
    case SurgeBook::Step::Kind::surge: {
      k8s::SurgeMark mark = step.mark;
      mark.run = options.run_id;
      mark.by = options.cordoned_by;
      mark.at = session_.client().server_now();
      mark.node = session_.node_name();
      patch = k8s::surge_patch(pod, mark);
      break;
    }
    case SurgeBook::Step::Kind::relabel: {
      const auto exists = co_await owner_exists(session_.client(), pod, limit);
      if (!exists) co_return exists.error();
      if (!*exists) co_return std::nullopt;
      patch = k8s::relabel_patch(pod);
      break;
    }
    case SurgeBook::Step::Kind::unmark: patch = k8s::unmark_patch(pod); break;
  }
  co_return co_await session_.client().patch<k8s::Pod>(pod.ns, pod.name, std::move(patch), limit);
}

asio::awaitable<void> SurgeFeed::take(SurgeBook::Step step) {
  const std::optional<Result<k8s::Pod>> sent = co_await send(step);
  if (sent) {
    const Result<k8s::Pod>& answer = *sent;
    book_.answered(step, answer, session_.now());
    if (!answer && k8s::is_too_many_requests(answer.error())) {
      const Duration pause = answer.error().retry_after.value_or(std::chrono::milliseconds(0));
      throttled_until_ = session_.now() + std::clamp<Duration>(pause, throttle_pause, Backoff::longest_retry_after);
    }
  } else {
    book_.orphaned(step);
  }
  pipeline_.guards_changed();
  session_.changed().notify();
}

TimePoint SurgeFeed::throttled_until() const {
  return std::max(throttled_until_, pipeline_.throttled_until());
}

TimePoint SurgeFeed::next_wake(TimePoint at) const {
  const TimePoint due = book_.next_due(at);
  const TimePoint throttled = throttled_until();
  return throttled > at ? std::min(due, throttled) : due;
}

asio::awaitable<void> SurgeFeed::give_back() {
  const auto& pods = pipeline_.pods();
  const bool any = std::any_of(pods.begin(), pods.end(), [](const auto& entry) {
    return is_left_over(entry.second.pod) && entry.second.state != PodState::vanished;
  });
  left_ = false;
  // The watch may not have shown a pod yet that was surged a moment ago.
  if (!any && (session_.ending().is(Outcome::drained) || !book_.may_have_surged())) co_return;
  left_ = true;
  const auto given = co_await give_back_surged(session_.client(), session_.rng(), session_.node_name(), book_.surged(),
                                               session_.now() + request_timeout);
  left_ = !given || !given->left.empty();
  if (!*left_) co_return;
  session_.ending().add(fmt::format(
      "; pods that were to be replaced in advance could not be given back to their ReplicaSets: {}; run haulout "
      "release {}",
      given ? words_of(given->left) : given.error().message(), session_.node_name()));
}

}  // namespace haulout::drain
