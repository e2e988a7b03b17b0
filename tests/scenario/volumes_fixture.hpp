// Fixture for pods with volumes and their VolumeAttachments.
#pragma once

#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {

class Volumes : public Scenario {
 protected:
  void add_pod_with(const std::string& pod, const std::string& claim, PodSpec spec = {}) {
    spec.spec = mounting({claim});
    add(a_pod(pod, spec));
  }
  // Adds a volume of a deleted claim with this name. Its VolumeAttachment is still on n1.
  void add_released_volume(const std::string& name, const std::string& claim) {
    Json volume = a_volume(claim)["items"][0];
    volume["metadata"]["name"] = name;
    volume["spec"]["claimRef"]["uid"] = "uid-of-a-claim-before";
    volume["status"] = {{"phase", "Released"}};
    add(volume);
    add(a_volume_attachment(name));
  }
  std::size_t attached_to(const std::string& node) const {
    const auto all = cluster.all("volumeattachments");
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [&](const Json& object) { return sim::text(object, "/spec/nodeName") == node; }));
  }
};

}  // namespace haulout::scenario
