// Decides when an eviction may be sent, in addition to the places and budgets of the pipeline. RequestWindow limits the
// requests in flight. Signals schedules the evictions of pods whose budget is exhausted. DownWebhooks schedules retries
// for the pods that wait for the same webhook, one pod at a time. UnseenBudgets does the same for the pods of one
// controller whose budget the drain may not read. Pure bookkeeping, no I/O.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

#include "k8s/objects.hpp"
#include "retry/backoff.hpp"
#include "retry/clock.hpp"
#include "retry/rng.hpp"

namespace haulout::drain {

// Limits how many eviction requests are in flight at once, since each needs an HTTP/1.1 connection of its own. Pure
// bookkeeping.
//
// The limit begins at `usual`. Each request that is unanswered after a second raises it by one, up to `most`, because
// an admission webhook may take a while for each pod. A quick answer lowers it by one, but not below `usual`. An answer
// that is not good (see answered()) sets it back to `usual`, where it stays until a slow request gets a good answer.
// When the limit is reached, one request may still be sent for each namespace that has none in flight, up to `most` in
// all, because often only the webhook of one namespace is slow.
class RequestWindow {
 public:
  static constexpr std::size_t most = 64;
  static constexpr Duration slow = std::chrono::seconds(1);

  explicit RequestWindow(std::size_t usual) : usual_(usual), limit_(usual) {}

  // Raises the limit for each request that has become slow. Call it before asking whether a request may be sent.
  void look(TimePoint now);
  std::size_t out() const { return out_.size(); }
  // full(): only the first request of a namespace may be sent. exhausted(): no request may be sent.
  bool full() const { return out_.size() >= limit_; }
  bool exhausted() const { return full() && out_.size() >= most_of_namespaces(); }
  bool takes(const std::string& ns) const { return !full() || (!exhausted() && !namespaces_.contains(ns)); }
  // Returns the time at which look() may raise the limit; max() if never.
  TimePoint next() const;

  void sent(const std::string& uid, const std::string& ns, TimePoint now);
  // `good`: the server processed the request. False if it throttled the request, or if the request failed and is to be
  // retried.
  void answered(const std::string& uid, bool good);

 private:
  std::size_t most_of_namespaces() const { return std::max(most, usual_); }

  struct Request {
    std::string ns;
    TimePoint since;
    bool slow = false;
  };
  std::size_t usual_;
  std::size_t limit_;
  bool grows_ = true;
  std::map<std::string, Request> out_;  // requests in flight, by UID of the pod
  std::map<std::string, std::size_t> namespaces_;
};

// Decides when the drain sends an eviction although the pod's budget is exhausted. Such a request is a signal: an
// admission webhook may react to it by migrating the pod or having it replaced. Pure bookkeeping, by UID of the budget.
//
// Each pod gets one signal. While its budget stays exhausted, one of the budget's pods gets another signal every 30 to
// 60 s, or sooner after the pod or the budget has changed. Each budget has at most one signal in flight, and in the
// long run at most two repeated signals per minute.
class Signals {
 public:
  static constexpr Duration shortest = std::chrono::seconds(30);
  static constexpr Duration longest = std::chrono::seconds(60);

  // Why a signal is sent: it is the pod's first; the pod has changed since; or the budget's periodic signal is due.
  enum class Cause { first, news, turn };
  // Returns the earliest time for a signal. Ignores a signal in flight, which under_way() reports.
  TimePoint next(const std::string& budget, Cause cause) const;
  bool under_way(const std::string& budget) const;

  void sent(const std::string& budget, Cause cause, TimePoint now, Rng& rng);
  void answered(const std::string& budget);
  // begin() records that the budget is exhausted; it does nothing if the budget is known already. asked() records that
  // an ordinary eviction of one of its pods was sent. As after a signal, the next periodic signal is due in 30 to 60 s.
  void begin(const std::string& budget, TimePoint now, Rng& rng);
  void asked(const std::string& budget, TimePoint now, Rng& rng);
  // Makes the next periodic signal due now, because the budget was edited.
  void hasten(const std::string& budget, TimePoint now);

 private:
  struct Entry {
    bool under_way = false;
    TimePoint turn{};
    // Limits the rate of repeated signals: each one adds 30 s to this time. The next one may be sent 30 s before this
    // time, so two may follow each other at once.
    TimePoint counted_until{};
  };
  std::map<std::string, Entry> entries_;
};

// Admission webhooks that cannot be called, by name. Of all pods whose evictions such a webhook blocks, the drain tries
// one at a time, with growing pauses, until the webhook answers again. Pure bookkeeping, no I/O.
class DownWebhooks {
 public:
  bool contains(const std::string& name) const { return entries_.contains(name); }
  // Returns the earliest time to retry one of its pods; max() while such a retry is in flight. Requires contains(name).
  TimePoint next(const std::string& name) const;

  void sent(const std::string& name, const std::string& uid);
  // Records that the server could not call the webhook for this pod.
  void refused(const std::string& name, const std::string& uid, TimePoint now, Rng& rng);
  // Records that the retry of this pod was throttled, or that its response was lost. So it is still unknown whether the
  // webhook can be called.
  void lost(const std::string& name, const std::string& uid, TimePoint now, Rng& rng);
  // Records that the webhook could be called.
  void back(const std::string& name) { entries_.erase(name); }

 private:
  struct Entry {
    std::string asked_for{};  // UID of the pod whose retry is in flight; empty: none
    TimePoint ask_at{};
    // The first pause is short, because most webhooks are reachable again at once. The longest is the same as after a
    // denial by admission.
    Backoff backoff{{std::chrono::seconds(1), 2.0, std::chrono::seconds(30), BackoffOptions::Jitter::equal}};
  };
  std::map<std::string, Entry> entries_;
};

// Schedules retries for pods that wait for budgets which the drain may not read. No watch event shows when such a
// budget allows a disruption, so the drain retries one pod of a group at a time, less and less often, until an eviction
// succeeds. The drain cannot see which pods such a budget selects, so the pods of one controller form a group. Pure
// bookkeeping.
class UnseenBudgets {
 public:
  // Returns the UID of the pod's controller, or of the pod if it has none.
  static const std::string& group_of(const k8s::Pod& pod) { return pod.controller ? pod.controller->uid : pod.uid; }

  // Returns the earliest time for the next retry in the group.
  TimePoint next(const std::string& group) const {
    const auto found = entries_.find(group);
    return found == entries_.end() ? TimePoint::min() : found->second.ask_at;
  }
  // Records that a budget refused a pod of the group, and postpones the next retry. Does not postpone a retry that is
  // not due yet: such a refusal answers the first eviction of another pod.
  void refused(const std::string& group, std::optional<std::chrono::milliseconds> retry_after, TimePoint now,
               Rng& rng) {
    Entry& entry = entries_[group];
    if (now >= entry.ask_at) entry.ask_at = now + entry.backoff.next(rng, retry_after);
  }
  // Records that an eviction in the group succeeded. Returns true if a pod of the group was refused before; other pods
  // of the group may then be waiting.
  bool let_go(const std::string& group) { return entries_.erase(group) > 0; }

 private:
  struct Entry {
    TimePoint ask_at = TimePoint::min();
    // In the long run at most two retries per minute, as for a budget that the drain can read (Signals).
    Backoff backoff{{std::chrono::seconds(5), 1.5, std::chrono::seconds(60), BackoffOptions::Jitter::equal}};
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace haulout::drain
