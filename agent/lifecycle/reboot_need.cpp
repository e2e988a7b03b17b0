#include "agent/lifecycle/reboot_need.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "retry/backoff.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// Time limit of one question to the back end.
constexpr Duration answer_limit = std::chrono::minutes(1);
// Time limit of one question to the updater, which may ask a server.
constexpr Duration updates_limit = std::chrono::minutes(5);
// Backoff after an answer that says `unknown`.
constexpr BackoffOptions until_known{std::chrono::seconds(1), 2.0, std::chrono::minutes(5),
                                     BackoffOptions::Jitter::equal};
// Time between two looks at the server's clock, while a request waits for its time.
constexpr Duration request_look = std::chrono::minutes(1);
// Delay after a change, so that a burst of changes counts as one.
constexpr Duration breath = std::chrono::milliseconds(200);

}  // namespace

std::string with_names(std::string text, const Updates& updates) {
  if (updates.first.empty()) return text;
  text += ": " + joined(updates.first, ", ");
  if (updates.count > updates.first.size()) text += fmt::format(" and {} more", updates.count - updates.first.size());
  return text;
}

std::string words_of(const Updates& updates) {
  if (updates.need == Need::unknown) return updates.problem;
  if (updates.count == 0) return "no update waits";
  if (!updates.target.empty()) return "an update of the system waits: " + joined(updates.first, ", ");
  return with_names(
      fmt::format("{} {}", count_of(updates.count, "package update"), updates.count == 1 ? "waits" : "wait"), updates);
}

RebootNeed::RebootNeed(asio::any_io_executor executor, Backend& backend, Updater* updater, Activity& activity,
                       const NodeView& view, const Record& record, k8s::Client& client, Rng& rng)
    : backend_(backend),
      updater_(updater),
      activity_(activity),
      view_(view),
      record_(record),
      client_(client),
      clock_(client.clock()),
      rng_(rng),
      request_news_(std::move(executor)),
      updates_{.need = updater ? Need::unknown : Need::no},
      looked_(!updater) {}

asio::awaitable<void> RebootNeed::follow_request() {
  for (;;) {
    const auto from = reboot_request(view_.node());
    const WallTime now = client_.server_now();
    TimePoint until = TimePoint::max();
    // The server's clock may be set meanwhile.
    if (from && *from > now)
      until = clock_.now() + std::clamp<Duration>(*from - now, std::chrono::milliseconds(1), request_look);
    if (!co_await request_news_.wait_until(clock_, until) && requested()) activity_.wake();
  }
}

asio::awaitable<void> RebootNeed::follow() {
  Backoff backoff(until_known);
  for (;;) {
    pending_ = co_await backend_.pending(clock_.now() + answer_limit);
    answered_ = true;
    activity_.wake();
    if (pending_.need == Need::unknown) {
      co_await clock_.sleep_until(clock_.now() + backoff.next(rng_));
      continue;
    }
    backoff.reset();
    co_await backend_.changed();
    co_await clock_.sleep_until(clock_.now() + breath);
  }
}

asio::awaitable<void> RebootNeed::follow_updates() {
  Backoff backoff(until_known);
  for (;;) {
    updates_ = co_await updater_->look(clock_.now() + updates_limit);
    looked_ = true;
    activity_.wake();
    if (updates_.need == Need::unknown) {
      co_await clock_.sleep_until(clock_.now() + backoff.next(rng_));
      continue;
    }
    backoff.reset();
    co_await updater_->changed();
    co_await clock_.sleep_until(clock_.now() + breath);
  }
}

asio::awaitable<void> RebootNeed::ask_now() {
  pending_ = co_await backend_.pending(clock_.now() + answer_limit);
  answered_ = true;
  if (updater_) updates_ = co_await updater_->look(clock_.now() + updates_limit);
}

asio::awaitable<void> RebootNeed::first_answer() const {
  while (!activity_.must_reload() && !(answered_ && looked_)) co_await activity_.wait(TimePoint::max());
}

bool RebootNeed::reboot_wanted() const {
  if (requested()) return true;
  return pending_.need == Need::yes && !is_bad(pending_.target);
}

bool RebootNeed::is_bad(const std::string& target) const {
  return std::find(record_.bad_targets.begin(), record_.bad_targets.end(), target) != record_.bad_targets.end();
}

Pending RebootNeed::all() const {
  Pending all = pending_;
  if ((all.need == Need::no || is_bad(all.target)) && updates_.need == Need::unknown)
    return {.need = Need::unknown, .problem = updates_.problem};
  if (!updates_wanted() || all.need == Need::unknown) return all;
  all.need = Need::yes;
  // The installation replaces an image that is in place already.
  if (!updates_.target.empty()) all.target = updates_.target;
  all.reasons.insert(all.reasons.end(), updates_.first.begin(), updates_.first.end());
  return all;
}

std::string RebootNeed::target(bool only_in_place) const {
  Pending need = only_in_place ? pending_ : all();
  const bool of_the_offer = !only_in_place && updates_wanted() && !updates_.target.empty();
  const bool shared = of_the_offer ? updater_->versions_are_shared() : backend_.versions_are_shared();
  return need.need == Need::yes && shared ? std::move(need.target) : std::string();
}

Task<> RebootNeed::learn_version(TimePoint deadline) {
  auto version = co_await backend_.booted(deadline);
  if (!version) co_return std::move(version).error();
  version_ = *std::move(version);
  co_return Result<>();
}

}  // namespace haulout::agent
