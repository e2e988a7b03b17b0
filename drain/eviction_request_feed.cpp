#include "drain/eviction_request_feed.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "k8s/patience.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

constexpr BackoffOptions withdraw_patience{std::chrono::milliseconds(200), 2.0, std::chrono::seconds(5),
                                           BackoffOptions::Jitter::equal};
constexpr Duration longest_pause = std::chrono::seconds(30);

using left_over::refusals_that_count;

k8s::ListOptions labelled(std::string selector, std::uint32_t page_size) {
  k8s::ListOptions options;
  options.label_selector = std::move(selector);
  options.limit = page_size;
  return options;
}

k8s::ListOptions requests_of(const std::string& node_uid, std::uint32_t page_size) {
  return labelled(fmt::format("{}={}", k8s::request_node_label, node_uid), page_size);
}

// Withdraws the requests of one node in rounds. Borrows the client.
class Withdrawing {
 public:
  Withdrawing(k8s::Client& client, std::string node_uid, TimePoint deadline)
      : client_(client), node_uid_(std::move(node_uid)), deadline_(deadline) {}

  // Makes one attempt for each request of the list that is open, several at a time. A server that ignores the selector
  // also lists the requests of other nodes.
  asio::awaitable<void> round(std::vector<k8s::EvictionRequest> requests) {
    std::erase_if(requests, [this](const k8s::EvictionRequest& request) {
      return !is_open(request) || k8s::value_at(request.labels, k8s::request_node_label) != node_uid_;
    });
    // One whose last attempt failed comes last, because its next one may hang.
    std::ranges::sort(requests, {},
                      [this](const k8s::EvictionRequest& request) { return states_[request.uid].failures; });
    left_.clear();
    goes_on_ = false;
    const auto one = [this](const k8s::EvictionRequest& request) { return attempt(request); };
    co_await left_over::in_batches(requests, EvictionRequestFeed::most_requests, one);
  }
  // Returns true if a next round may make progress.
  bool goes_on() const { return goes_on_; }
  Withdrawn result(bool unserved) const { return {withdrawn_, left_, unserved}; }

 private:
  struct State {
    unsigned failures = 0, refusals = 0;
    std::string why{};
  };

  asio::awaitable<void> attempt(k8s::EvictionRequest request) {
    State& state = states_[request.uid];
    const std::string pod = request.ns + "/" + request.pod_name;
    if (state.refusals >= refusals_that_count) co_return left_.push_back({pod, state.why});
    const auto answer = co_await client_.patch<k8s::EvictionRequest>(
        request.ns, request.name, k8s::intent_patch(request, k8s::intent_withdrawn),
        left_over::end_of_attempt(client_.clock().now(), state.failures, deadline_));
    if (answer) {
      withdrawn_.push_back(pod);
    } else if (!k8s::is_gone(answer.error())) {
      ++state.failures;
      state.why = answer.error().message();
      const bool passes = k8s::is_conflict(answer.error()) || k8s::may_heal(answer.error());
      goes_on_ |= passes || ++state.refusals < refusals_that_count;
      left_.push_back({pod, state.why});
    }
  }

  k8s::Client& client_;
  std::string node_uid_;
  TimePoint deadline_;
  std::map<std::string, State> states_;  // by UID of the request
  std::vector<std::string> withdrawn_;
  std::vector<LeftOver> left_;
  bool goes_on_ = false;
};

}  // namespace

Task<Withdrawn> withdraw_requests(k8s::Client& client, Rng& rng, std::string node_uid, Asked asked,
                                  TimePoint deadline) {
  Clock& clock = client.clock();
  const TimePoint look_until =
      std::min(deadline, clock.now() + (asked.unanswered ? left_over::unanswered_limit : Duration::zero()));
  Backoff backoff(withdraw_patience);
  Withdrawing withdrawing(client, node_uid, deadline);
  unsigned refused_lists = 0, lost_lists = 0;
  for (;;) {
    auto requests = co_await client.list<k8s::EvictionRequest>(
        requests_of(node_uid, k8s::usual_page), left_over::end_of_attempt(clock.now(), lost_lists, deadline));
    if (!requests) ++lost_lists;
    const bool unserved = !requests && k8s::is_not_found(requests.error());
    const bool final = !requests && !unserved && !k8s::may_heal(requests.error());
    if (final && ++refused_lists >= refusals_that_count) co_return requests.error();
    const std::optional<std::chrono::milliseconds> retry_after = requests ? std::nullopt : requests.error().retry_after;
    if (requests) co_await withdrawing.round(std::move(requests->items));
    const bool done = requests ? !withdrawing.goes_on() : unserved && !asked.seen;
    const TimePoint next = clock.now() + backoff.next(rng, retry_after);
    if ((done && next >= look_until) || next >= deadline) {
      if (!requests && !done) co_return requests.error();
      co_return withdrawing.result(unserved);
    }
    co_await clock.sleep_until(next);
  }
}

std::string EvictionRequestFeed::plan() const {
  if (!book_.is_on()) return {};
  std::size_t asked = 0;
  for (const TrackedPod* tracked : pipeline_.leaving())
    asked += tracked->decision.verdict == Verdict::evict && EvictionRequestBook::has_responders(tracked->pod);
  if (asked == 0) return {};
  return fmt::format("; an EvictionRequest would be created for {} (--eviction-requests)", count_of(asked, "pod"));
}

void EvictionRequestFeed::look(TaskGroup& group) {
  if (!book_.is_on() || node_.gone()) return;
  if (!follows_) {
    follows_ = std::ranges::any_of(
        pipeline_.pods(), [](const auto& entry) { return EvictionRequestBook::has_responders(entry.second.pod); });
    if (!follows_) return;
    using Book = EvictionRequestBook;
    const std::uint32_t page = session_.options().page_size;
    group.spawn(follow<k8s::EvictionRequest>({"the EvictionRequests of the node could not be listed",
                                              requests_of(node_.node().uid, page), &Book::request_changed,
                                              &Book::requests_known, &Book::not_usable, requests_}));
    // The controller gives Evictions the names of their requesters as labels.
    group.spawn(follow<k8s::EvictionProcess>(
        {"the Evictions of lifecycle.k8s.io could not be listed", labelled(std::string(k8s::eviction_requester), page),
         &Book::process_changed, &Book::processes_known, &Book::processes_unreadable, processes_}));
  }
  const std::size_t most =
      session_.now() < pipeline_.throttled_until() ? 0 : most_requests - std::min(book_.requests_out(), most_requests);
  using Node = EvictionRequestBook::Node;
  const Node node = !node_.unschedulable() ? Node::schedulable : node_.in_doubt() ? Node::in_doubt : Node::cordoned;
  for (EvictionRequestBook::Step& step :
       book_.take_steps(pipeline_.pods(), node_.node().uid, node, most, session_.now()))
    group.spawn(take(std::move(step)));
}

void EvictionRequestFeed::news() {
  pipeline_.guards_changed();
  session_.changed().notify();
}

template <class T>
asio::awaitable<void> EvictionRequestFeed::follow(Followed<T> followed) {
  auto listed = co_await session_.insist<k8s::List<T>>(
      followed.problem, [&](TimePoint limit) { return session_.client().list<T>(followed.which, limit); },
      request_timeout);
  if (!listed) {
    (book_.*followed.failed)(listed.error());
    co_return news();
  }
  k8s::ReflectorOptions options;
  options.label_selector = followed.which.label_selector;
  options.page_size = followed.which.limit;
  followed.view = std::make_unique<k8s::Reflector<T>>(
      session_.client(), session_.rng(), options,
      [this, changed = followed.changed](const std::string& uid, const T* object) { (book_.*changed)(uid, object); },
      [this] { news(); });
  for (const T& object : listed->items) (book_.*followed.changed)(object.uid, &object);
  followed.view->seed(*std::move(listed));
  (book_.*followed.known)();
  news();
  co_await followed.view->run_for_good(longest_pause);
}

Task<k8s::EvictionRequest> EvictionRequestFeed::send(EvictionRequestBook::Step step) {
  using Kind = EvictionRequestBook::Step::Kind;
  const TimePoint limit = session_.within(request_timeout);
  const k8s::EvictionRequest& request = step.request;
  if (step.kind != Kind::create)
    co_return co_await session_.client().patch<k8s::EvictionRequest>(
        request.ns, request.name,
        k8s::intent_patch(request, step.kind == Kind::renew ? k8s::intent_eviction : k8s::intent_withdrawn), limit);
  auto created = co_await session_.client().create(request, limit);
  // The answer to an earlier attempt may have been lost.
  if (!created && k8s::is_already_exists(created.error()))
    co_return co_await session_.client().get<k8s::EvictionRequest>(request.ns, request.name, limit);
  co_return created;
}

asio::awaitable<void> EvictionRequestFeed::take(EvictionRequestBook::Step step) {
  const auto answer = co_await send(step);
  book_.answered(step, answer, session_.now());
  news();
}

bool EvictionRequestFeed::may_be_left() const {
  return left_.value_or(is_unsure() || book_.may_have_requested(pipeline_.pods()));
}

asio::awaitable<void> EvictionRequestFeed::withdraw() {
  const bool any = may_be_left();
  left_ = any;
  if (!any) co_return;
  const auto withdrawn = co_await withdraw_requests(session_.client(), session_.rng(), node_.node().uid, asked(),
                                                    session_.now() + request_timeout);
  // One answer 404 does not prove that an earlier process could not create any.
  left_ = !withdrawn || !withdrawn->left.empty() || (withdrawn->unserved && is_unsure());
  if (withdrawn && withdrawn->left.empty()) co_return;
  session_.ending().add(fmt::format("; EvictionRequests could not be withdrawn: {}; run haulout release {}",
                                    withdrawn ? words_of(withdrawn->left) : withdrawn.error().message(),
                                    session_.node_name()));
}

void EvictionRequestFeed::close() {
  requests_.reset();
  processes_.reset();
}

}  // namespace haulout::drain
