// Everything that is checked before the drain changes anything. Reads the Node and its pods, makes the plan, and checks
// policy, rights and, unless Options::fit is `off`, whether the pods that must leave fit on other nodes. Makes the plan
// again before the first eviction if it is old by then. Borrows session, pipeline, feeds, volumes and daemon_sets.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "drain/cordon.hpp"
#include "drain/feeds.hpp"
#include "drain/pipeline.hpp"
#include "drain/pod_filter.hpp"
#include "drain/session.hpp"
#include "placement/pod_fit.hpp"

namespace haulout::drain {

class Preflight {
 public:
  // Writes the state of the pods' DaemonSets to `daemon_sets`, by which policy decides about these pods.
  Preflight(Session& session, Pipeline& pipeline, Feeds feeds, VolumeBook& volumes, DaemonSetStates& daemon_sets)
      : session_(session), pipeline_(pipeline), feeds_(feeds), volumes_(volumes), daemon_sets_(daemon_sets) {}

  // Returns false if the drain has ended. Cancellable.
  boost::asio::awaitable<bool> run();
  // Returns true if the plan is so recent that the eviction may begin with it.
  bool holds() const;
  // Makes the plan again, because other nodes may have been drained since it was made: pods of this node may have been
  // deleted, recreated under the same names, or protected by an annotation. Does not check rights and fit again. A pod
  // that policy refuses only now is parked. Returns false if the drain has ended. Cancellable.
  boost::asio::awaitable<bool> run_again();
  // Returns the mark of the Node's cordon if this run has set it before, as an agent has that was restarted.
  std::optional<CordonMark> mark_of_this_run(const k8s::Node& node) const;
  // The results of the fit check. Empty if Options::fit is `off`.
  const std::vector<placement::PodFit>& fits() const { return fits_; }

 private:
  Task<k8s::Node> first_contact();
  boost::asio::awaitable<void> look_up_daemon_sets(std::vector<k8s::Pod> pods);
  boost::asio::awaitable<bool> permitted(k8s::ResourceAttributes attributes);
  boost::asio::awaitable<bool> permitted_in(std::set<std::string> namespaces, k8s::ResourceAttributes right,
                                            std::string what);
  boost::asio::awaitable<bool> review_permissions();
  bool refuse_by_policy();
  boost::asio::awaitable<bool> check_fit();

  Session& session_;
  Pipeline& pipeline_;
  Feeds feeds_;
  VolumeBook& volumes_;
  DaemonSetStates& daemon_sets_;
  std::vector<placement::PodFit> fits_;
  TimePoint planned_at_{};
};

}  // namespace haulout::drain
