// When an eviction is asked for although its budget is seen to be closed: an admission webhook may take the request as
// its sign to migrate the pod, or to have it replaced. Pure bookkeeping, by UID of the budget.
//
// Each pod is asked for once; then, while its budget stays closed, one of its pods in turn every 30 to 60 s, sooner
// when the pod or the budget has changed. One such request per budget is under way at a time, and in the long run no
// more than two a minute are repeated.
#pragma once

#include <map>
#include <string>

#include "retry/clock.hpp"
#include "retry/rng.hpp"

namespace haulout::drain {

class Signals {
 public:
  static constexpr Duration shortest = std::chrono::seconds(30);
  static constexpr Duration longest = std::chrono::seconds(60);

  // Why one is sent: the pod was never asked for, it has changed since, or it is its budget's turn.
  enum class Cause { first, news, turn };
  // The earliest time for it, apart from a request that is under way.
  TimePoint next(const std::string& budget, Cause cause) const;
  bool under_way(const std::string& budget) const;

  void sent(const std::string& budget, Cause cause, TimePoint now, Rng& rng);
  void answered(const std::string& budget);
  // Seen closed, or asked in earnest: its next turn is as far away as after a signal.
  void begin(const std::string& budget, TimePoint now, Rng& rng);
  void asked(const std::string& budget, TimePoint now, Rng& rng);
  // Its owner has changed it: its turn comes at once.
  void hasten(const std::string& budget, TimePoint now);

 private:
  struct Entry {
    bool under_way = false;
    TimePoint turn{};
    // What was repeated counts until then: 30 s for each. Two of them may come together.
    TimePoint counted_until{};
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace haulout::drain
