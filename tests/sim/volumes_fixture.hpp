// Fixture with two nodes and a volume that can be attached to either of them.
#pragma once

#include "tests/sim/sim_test.hpp"

namespace haulout::testing {

class VolumesTest : public SimTest {
 protected:
  void SetUp() override {
    add_node("n1");
    add_node("n2");
  }
  void add_volume(Json annotations = Json::object(), const char* mode = "ReadWriteOnce") {
    cluster.create("persistentvolumes", {{"metadata", {{"name", "pv"}, {"annotations", annotations}}},
                                         {"spec",
                                          {{"accessModes", {mode}},
                                           {"csi", {{"driver", "csi.example.com"}, {"volumeHandle", "h"}}},
                                           {"claimRef", {{"namespace", "shop"}, {"name", "data"}}}}}});
    cluster.create("persistentvolumeclaims",
                   {{"metadata", {{"name", "data"}, {"namespace", "shop"}}}, {"spec", {{"volumeName", "pv"}}}});
  }
  static Json user(const std::string& name, const std::string& node) {
    Json result = ready_pod("shop", name, node, 5);
    result["spec"]["volumes"] = {{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data"}}}}};
    return result;
  }
  Json attachment(const std::string& node = "n1") const {
    for (const Json& object : cluster.all("volumeattachments"))
      if (sim::text(object, "/spec/nodeName") == node) return object;
    return {};
  }
  // Returns the length of a list in Node.status: "volumesInUse" or "volumesAttached".
  std::size_t told(const char* list, const std::string& node = "n1") const {
    const Json status = cluster.get("nodes", "", node).value("status", Json::object());
    return status.contains(list) ? status.at(list).size() : 0;
  }
  bool attached(const std::string& node = "n1") const { return !attachment(node).is_null(); }
};

}  // namespace haulout::testing
