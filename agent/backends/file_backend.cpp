#include "agent/backends/file_backend.hpp"

#include <fmt/format.h>

#include <boost/asio/this_coro.hpp>

#include "agent/backends/sentinel.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// If the sentinel (the file that requests a reboot) disappears, the need for a reboot is unknown for this long.
// transactional-update of openSUSE removes the file when it starts, and creates it again if it fails. In between it
// installs packages into a snapshot, which takes minutes.
constexpr Duration comes_back_within = std::chrono::minutes(15);

}  // namespace

FileBackend::FileBackend(HostRoot root, Clock& clock, Rng& rng, std::string sentinel)
    : root_(std::move(root)), clock_(clock), rng_(rng), sentinel_(std::move(sentinel)), watch_(root_, {sentinel_}) {}

asio::awaitable<Pending> FileBackend::pending(TimePoint) {
  watch_.arm(co_await asio::this_coro::executor);
  Pending answer = read_sentinel(root_, sentinel_);
  co_return sentinel_ == suse_sentinel ? steadied(std::move(answer)) : std::move(answer);
}

Pending FileBackend::steadied(Pending answer) {
  if (answer.need == Need::yes) {
    was_there_ = true;
    missing_since_.reset();
  }
  if (answer.need != Need::no || !was_there_) return answer;
  if (!missing_since_) missing_since_ = clock_.now();
  was_there_ = clock_.now() < *missing_since_ + comes_back_within;
  if (!was_there_) return answer;
  return {.need = Need::unknown,
          .problem = fmt::format("{} was removed. transactional-update removes it while it runs, so the agent waits {} "
                                 "minutes before it concludes that no reboot is needed",
                                 root_.display(sentinel_),
                                 std::chrono::duration_cast<std::chrono::minutes>(comes_back_within).count())};
}

Task<std::string> FileBackend::booted(TimePoint) {
  co_return std::string();
}

Task<> FileBackend::apply(std::string, TimePoint) {
  co_return Result<>();
}

asio::awaitable<void> FileBackend::changed() {
  return watch_.changed(clock_, rng_);
}

}  // namespace haulout::agent
