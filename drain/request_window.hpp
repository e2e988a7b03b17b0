// How many requests may be on the wire at once: each needs a connection of its own in HTTP/1.1. Pure bookkeeping.
//
// Usually `usual` of them. Each that has been out for a second without an answer lets one more go, up to `most`, as
// long as slow answers are good ones: an admission webhook may take its time with each pod. A pod of a namespace with
// none out may go beyond that: what is slow is often one namespace's webhook.
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

  // Takes into account how long each has been out.
  void look(TimePoint now);
  std::size_t out() const { return out_.size(); }
  // No other may be sent but the first of a namespace; none at all.
  bool full() const { return out_.size() >= limit_; }
  bool exhausted() const { return full() && out_.size() >= most_of_namespaces(); }
  bool takes(const std::string& ns) const { return !full() || (!exhausted() && !namespaces_.contains(ns)); }
  // When look() may let another one go; max() if never.
  TimePoint next() const;

  void sent(const std::string& uid, const std::string& ns, TimePoint now);
  // `good`: the server had time for it.
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
  std::map<std::string, Request> out_;  // by UID of the pod
  std::map<std::string, std::size_t> namespaces_;
};

}  // namespace haulout::drain
