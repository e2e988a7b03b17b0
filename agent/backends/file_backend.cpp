#include "agent/backends/file_backend.hpp"

#include <fmt/format.h>
#include <boost/asio/this_coro.hpp>

#include "base/plain_text.hpp"

namespace haulout::agent {

namespace {
// Bytes of a sentinel file that are read: only its first line is shown, as the reason.
constexpr std::size_t beginning = std::size_t{4} * 1024;
}  // namespace

Pending sentinel_answer(const Result<std::optional<std::string>>& content, const std::string& name) {
  if (!content) return {.need = Need::unknown, .problem = content.error().message()};
  if (!*content) return {.need = Need::no};
  std::string reason = first_line(**content);
  if (reason.empty()) reason = fmt::format("{} exists", name);
  return {.need = Need::yes, .reasons = {std::move(reason)}};
}

Pending read_sentinel(const HostRoot& root, const std::string& path) {
  return sentinel_answer(root.read(path, beginning), root.display(path));
}

Pending either(Pending first, Pending second) {
  if (first.need != Need::yes && second.need == Need::yes) return second;
  if (first.need == Need::yes && second.need == Need::yes)
    first.reasons.insert(first.reasons.end(), second.reasons.begin(), second.reasons.end());
  if (first.need == Need::no && second.need == Need::unknown) return second;
  return first;
}

namespace asio = boost::asio;

namespace {

// After the sentinel has disappeared, the need for a reboot is unknown for this long. transactional-update of openSUSE
// removes the file when it starts, and creates it again if it fails. In between it installs packages into a snapshot,
// which takes minutes.
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
