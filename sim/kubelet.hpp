// The kubelets of all nodes: start pods that are bound, report them Ready, stop them when they are asked to, report
// that they have failed (as since 1.27 each pod has or has succeeded before it goes) and remove them from the API. A
// pod that was on its way out when it was loaded goes on from where it was.
#pragma once

#include <map>

#include "sim/world.hpp"

namespace haulout::sim {

class Kubelet {
 public:
  explicit Kubelet(World& world);
  // Looks at every pod of the node again: after loading, and when a stopped kubelet comes back.
  void resync(const std::string& node);

 private:
  void look(const Key& key, const Json& pod);
  void plan_start(const Key& key, const Json& pod);
  // Pods of the node may have waited for that.
  void volume_attached(const std::string& node);
  void start(const Key& key, const std::string& uid);
  void plan_stop(const Key& key, const Json& pod);
  void plan_loaded_stop(const Key& key, const Json& pod);
  void stop(const Key& key, const std::string& uid, std::uint64_t plan);
  void report_stopped(const Key& key, const std::string& uid);
  Duration wanted(const Json& pod) const;
  bool stopped_kubelet(const Json& pod) const;

  struct Stopping {
    TimePoint asked;         // when the kubelet was told
    TimePoint done;          // when the pod will have stopped
    std::uint64_t plan = 0;  // its latest step on the agenda; older ones are void
    bool finished = false;
  };
  World& world_;
  std::uint64_t plans_ = 0;
  std::map<std::string, TimePoint> reporting_until_;  // by node
  std::map<std::string, Stopping> stopping_;          // by uid
  std::map<std::string, bool> starting_;              // by uid
};

}  // namespace haulout::sim
