#include "drain/reattach.hpp"

#include <algorithm>

namespace haulout::drain {

namespace {

using Elsewhere = ReattachFacts::Elsewhere;

TimePoint end_of(const ReattachFacts& facts) {
  return std::min(saturating_add(facts.detached_at, facts.limit), facts.until);
}

}  // namespace

Reattach decide_reattach(Reattach before, const ReattachFacts& facts) {
  if (before == Reattach::none || facts.limit == Duration::zero()) return Reattach::none;
  if (facts.elsewhere == Elsewhere::attached) return Reattach::attached;
  if (before != Reattach::waiting) return before;
  if (!facts.comes_back) return Reattach::none;
  if (facts.used_here) return Reattach::unclaimed;
  if (facts.now >= end_of(facts)) return Reattach::late;
  const bool unclaimed = facts.elsewhere == Elsewhere::nowhere && facts.now >= facts.detached_at + claim_hold;
  return unclaimed ? Reattach::unclaimed : Reattach::waiting;
}

TimePoint reattach_wake(Reattach now, const ReattachFacts& facts) {
  if (now != Reattach::waiting) return TimePoint::max();
  const TimePoint hold = facts.detached_at + claim_hold;
  return facts.now < hold ? std::min(hold, end_of(facts)) : end_of(facts);
}

}  // namespace haulout::drain
