// Decides when the drain sends an eviction although the pod's budget is exhausted. Such a request is a signal: an
// admission webhook may react to it by migrating the pod or having it replaced. Pure bookkeeping, by UID of the budget.
//
// Each pod gets one signal. While its budget stays exhausted, one of the budget's pods gets another signal every 30 to
// 60 s, or sooner after the pod or the budget has changed. Each budget has at most one signal in flight, and in the
// long run at most two repeated signals per minute.
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

  // Why a signal is sent: it is the pod's first; the pod has changed since; or the budget's periodic signal is due.
  enum class Cause { first, news, turn };
  // Returns the earliest time for a signal. Does not consider a signal in flight; for that, see under_way().
  TimePoint next(const std::string& budget, Cause cause) const;
  bool under_way(const std::string& budget) const;

  void sent(const std::string& budget, Cause cause, TimePoint now, Rng& rng);
  void answered(const std::string& budget);
  // begin(): the budget was seen exhausted. asked(): an ordinary eviction of one of its pods was sent. As after a
  // signal, the next periodic signal is due in 30 to 60 s. begin() does nothing for a budget that it knows already.
  void begin(const std::string& budget, TimePoint now, Rng& rng);
  void asked(const std::string& budget, TimePoint now, Rng& rng);
  // The owner of the budget has edited it: its next periodic signal is due now.
  void hasten(const std::string& budget, TimePoint now);

 private:
  struct Entry {
    bool under_way = false;
    TimePoint turn{};
    // End of the time that repeated signals use up, 30 s each. The next one may be sent 30 s before this time, so two
    // may follow each other at once.
    TimePoint counted_until{};
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace haulout::drain
