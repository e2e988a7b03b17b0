// What a drain has left on objects of the API, and takes back when it gives up: pods that it has surged
// (surge_feed.hpp), and EvictionRequests (eviction_request_feed.hpp). Both are taken back in rounds, which share these
// limits and the list of what is left.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "retry/clock.hpp"
#include "retry/task_group.hpp"

namespace haulout::drain {

// What could not be taken back from one pod.
struct LeftOver {
  std::string pod;  // "namespace/name"
  std::string why;
};
// Returns "shop/web-1 (why), shop/web-2 (why)".
std::string words_of(const std::vector<LeftOver>& left);

namespace left_over {

// How long the objects are listed again if an answer is lost. A request whose client has gone away is processed within
// the 10 s that the server allows for admission webhooks.
inline constexpr Duration unanswered_limit = std::chrono::seconds(10);
// Limit of the first attempt for an object, and of the first list, so that a request that hangs does not take the time
// of the others. Later attempts have longer ones, because a webhook may be slow.
inline constexpr Duration first_attempt = std::chrono::seconds(4);
// Returns the time at which the next attempt ends, after so many that failed.
inline TimePoint end_of_attempt(TimePoint now, unsigned failures, TimePoint deadline) {
  return std::min(deadline, now + first_attempt * (1 + failures));
}
// One 403 proves nothing, because an authorizer that has just started may refuse wrongly.
inline constexpr unsigned refusals_that_count = 2;

// Runs `attempt` for each item, at most `most` at a time. Cancellable. Borrows both arguments.
template <class Item, class Attempt>
boost::asio::awaitable<void> in_batches(const std::vector<Item>& items, std::size_t most, const Attempt& attempt) {
  for (std::size_t first = 0; first < items.size(); first += most) {
    const std::size_t last = std::min(items.size(), first + most);
    co_await with_task_group([&items, &attempt, first, last](TaskGroup& group) {
      for (std::size_t i = first; i < last; ++i) group.spawn(attempt(items[i]));
      return group.join();
    });
  }
}

}  // namespace left_over

}  // namespace haulout::drain
