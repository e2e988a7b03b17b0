#include "agent/lifecycle/foreign_records.hpp"

namespace haulout::agent {

namespace {

// The agent writes the record again soon after a person has removed it.
constexpr BackoffOptions patience{std::chrono::seconds(1), 2.0, std::chrono::minutes(1), BackoffOptions::Jitter::equal};
constexpr Duration no_rival_for = std::chrono::minutes(5);
// After so many foreign records in a row, another agent must be running. Neither late writes of a previous process nor
// a person cause so many.
constexpr unsigned surely_a_rival = 3;

}  // namespace

ForeignRecords::ForeignRecords(Clock& clock, Rng& rng, std::string node, std::function<void(std::string)> warn)
    : clock_(clock), rng_(rng), node_(std::move(node)), warn_(std::move(warn)), backoff_(patience) {}

boost::asio::awaitable<void> ForeignRecords::give_way() {
  if (!seen_) co_return;
  if (clock_.now() - gave_way_ > no_rival_for) {
    backoff_.reset();
    in_a_row_ = 0;
  }
  if (++in_a_row_ == surely_a_rival)
    warn_("another agent writes the record of node " + node_ +
          ", too, and each undoes what the other one does: stop one of them");
  co_await clock_.sleep_until(clock_.now() + backoff_.next(rng_));
  gave_way_ = clock_.now();
  seen_ = false;
}

}  // namespace haulout::agent
