// Limits how many eviction requests are in flight at once, since each needs an HTTP/1.1 connection of its own. Pure
// bookkeeping.
//
// The limit is `usual`. Each request that is unanswered after a second raises it by one, up to `most`, because an
// admission webhook may take a while for each pod. A quick answer lowers it by one, but not below `usual`. A bad answer
// sets it back to `usual`, where it stays until a slow request gets a good answer. Above the limit, a namespace that
// has no request in flight may still send one, because often only the webhook of one namespace is slow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

#include "retry/clock.hpp"

namespace haulout::drain {

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

}  // namespace haulout::drain
