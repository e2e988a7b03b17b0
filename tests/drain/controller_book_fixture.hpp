// Fixture with a ControllerBook whose facts the test provides, and a ControllerGuard that decides by it. No I/O.
#pragma once

#include <gmock/gmock.h>

#include "drain/controller_book.hpp"
#include "drain/controller_guard.hpp"
#include "tests/drain/builders.hpp"

namespace haulout::drain::testing {

inline Guards at_most(std::uint32_t value, bool percent = false) {
  Guards guards;
  guards.max_unavailable = Share{value, percent};
  return guards;
}

inline Guards canary(Duration time) {
  Guards guards;
  guards.canary = time;
  return guards;
}

inline Guards single(SingleReplica policy) {
  Guards guards;
  guards.single_replica = policy;
  return guards;
}

class BookTest : public ::testing::Test {
 protected:
  void begin(Guards guards) {
    book.emplace();
    guard.emplace(guards, *book);
  }
  // Learns the Deployment shop/web, whose ReplicaSet owns the builders' pods, and shows that many Ready pods of it.
  void make(Guards guards, std::int32_t replicas = 4, std::map<std::string, std::string> annotations = {}) {
    begin(guards);
    learn("rs-uid", replicas, std::move(annotations));
    for (std::int32_t i = 0; i < replicas; ++i) see(pod(i));
    book->namespace_seen("shop");
  }
  // Begins with at most one pod unavailable, and shows a Deployment of that many replicas whose last pod is broken.
  // Returns that pod.
  k8s::Pod begin_with_a_broken_pod(std::int32_t replicas) {
    begin(at_most(1));
    learn("rs-uid", replicas);
    for (std::int32_t i = 0; i + 1 < replicas; ++i) see(pod(i));
    k8s::Pod broken = pod(replicas - 1);
    broken.ready = false;
    broken.created = wall - std::chrono::minutes(10) - std::chrono::seconds(1);
    see(broken);
    book->namespace_seen("shop");
    return broken;
  }
  void learn(const std::string& owner, std::optional<std::int32_t> replicas,
             std::map<std::string, std::string> annotations = {}) {
    Controller controller;
    controller.ns = "shop";
    controller.kind = "Deployment";
    controller.name = "web";
    controller.uid = "deployment-uid";
    controller.replicas = replicas;
    controller.annotations = std::move(annotations);
    book->learned(owner, controller, now);
  }
  static k8s::Pod pod(int number) { return a_pod("web-" + std::to_string(number)); }
  static k8s::Pod replacement(int number, bool ready) {
    k8s::Pod pod = a_pod("new-" + std::to_string(number));
    pod.node_name = "n2";
    pod.ready = ready;
    return pod;
  }
  static k8s::Pod homeless(int number) {
    k8s::Pod pod = replacement(number, false);
    pod.node_name.clear();
    pod.phase = k8s::PodPhase::pending;
    pod.unschedulable = "0/3 nodes are available: 3 Insufficient cpu.";
    return pod;
  }
  void see(const k8s::Pod& seen) { book->pod_changed(seen.uid, &seen, now, wall); }
  void gone(const k8s::Pod& pod) { book->pod_changed(pod.uid, nullptr, now, wall); }
  std::string held(const k8s::Pod& asked) {
    auto hold = guard->held(asked, now);
    message = hold ? hold->message : "";
    until = hold ? hold->until : TimePoint::max();
    return hold ? hold->reason : "";
  }
  // Returns the time at which the book or the guard has something to do without an event.
  TimePoint next_due(TimePoint at) const { return std::min(book->next_due(at), guard->next_due(at)); }
  void leave(const k8s::Pod& pod) { book->leaving(pod, true); }

  TimePoint now{std::chrono::hours(1)};
  WallTime wall{std::chrono::hours(1)};
  std::string message;
  TimePoint until;
  std::optional<ControllerBook> book;
  std::optional<ControllerGuard> guard;
};

}  // namespace haulout::drain::testing
