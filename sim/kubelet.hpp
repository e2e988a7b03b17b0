// The simulated kubelets of all nodes. They start bound pods, report them Ready, stop terminating pods, report these as
// Failed, and remove them from the API. Since Kubernetes 1.27 every pod becomes Failed or Succeeded before its final
// delete. A pod that was terminating when it was loaded continues from there.
#pragma once

#include <map>

#include "sim/world.hpp"

namespace haulout::sim {

class Kubelet {
 public:
  explicit Kubelet(World& world);
  // Checks every pod of the node again; for use when a stopped kubelet comes back.
  void resync(const std::string& node);

 private:
  void look(const Key& key, const Json& pod);
  void plan_start(const Key& key, const Json& pod);
  // Checks the pods of the node again, since some may have waited for the volume.
  void volume_attached(const std::string& node);
  void start(const Key& key, const std::string& uid);
  void plan_stop(const Key& key, const Json& pod);
  void plan_loaded_stop(const Key& key, const Json& pod);
  void stop(const Key& key, const std::string& uid, std::uint64_t plan);
  void report_stopped(const Key& key, const std::string& uid);
  Duration wanted(const Json& pod) const;
  bool stopped_kubelet(const Json& pod) const;

  struct Stopping {
    TimePoint asked;         // when the kubelet saw the request to stop the pod
    TimePoint done;          // when the pod will have stopped
    std::uint64_t plan = 0;  // number of the latest planned step of this pod; older steps are void
    bool finished = false;
  };
  World& world_;
  std::uint64_t plans_ = 0;
  std::map<std::string, TimePoint> reporting_until_;  // by node
  std::map<std::string, Stopping> stopping_;          // by uid
  std::map<std::string, bool> starting_;              // by uid
};

}  // namespace haulout::sim
