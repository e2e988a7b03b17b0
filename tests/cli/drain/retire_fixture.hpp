// Fixture for `haulout retire` against a simulated cluster of two nodes, in virtual time.
#pragma once

#include "tests/cli/drain/jobs_fixture.hpp"

namespace haulout::cli {

class RetireTest : public JobsTest {
 protected:
  RetireTest() { uid_ = sim::uid_of(cluster.get("nodes", "", "n1")); }

  // The kubelet of a real node creates both, with its Node as their owner.
  void add_lease_and_csinode() {
    const Json owner = {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", "n1"}, {"uid", uid_}};
    add({{"apiVersion", "coordination.k8s.io/v1"},
         {"kind", "Lease"},
         {"metadata", {{"name", "n1"}, {"namespace", "kube-node-lease"}, {"ownerReferences", {owner}}}},
         {"spec", Json::object()}});
    add({{"apiVersion", "storage.k8s.io/v1"},
         {"kind", "CSINode"},
         {"metadata", {{"name", "n1"}, {"ownerReferences", {owner}}}},
         {"spec", {{"drivers", Json::array()}}}});
  }
  void add_daemon_pod() {
    add({{"apiVersion", "apps/v1"},
         {"kind", "DaemonSet"},
         {"metadata", {{"name", "log"}, {"namespace", "shop"}, {"uid", "ds"}}}});
    add({{"apiVersion", "v1"},
         {"kind", "Pod"},
         {"metadata",
          {{"name", "log-n1"},
           {"namespace", "shop"},
           {"ownerReferences",
            {{{"apiVersion", "apps/v1"},
              {"kind", "DaemonSet"},
              {"name", "log"},
              {"uid", "ds"},
              {"controller", true}}}}}},
         {"spec", {{"nodeName", "n1"}, {"containers", {{{"name", "m"}, {"image", "i"}}}}}},
         {"status", {{"phase", "Running"}}}});
  }
  void add_attachment(const std::string& name) {
    add({{"apiVersion", "storage.k8s.io/v1"},
         {"kind", "VolumeAttachment"},
         {"metadata", {{"name", name}}},
         {"spec", {{"attacher", "d"}, {"nodeName", "n1"}, {"source", {{"persistentVolumeName", "pv"}}}}},
         {"status", {{"attached", true}}}});
  }
  void become_another_node() {
    cluster.remove("nodes", "", "n1");
    add({{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", "n1"}, {"uid", "another"}}}});
  }
  // Calls `act` when the server gets the `count`-th request with this verb for this resource.
  void at_request(std::string verb, std::string resource, unsigned count, std::function<void()> act) {
    cluster.server().intercept(
        [=, left = count](const sim::Call&, const sim::AuditEntry& entry) mutable -> std::optional<http::Response> {
          if (entry.verb == verb && entry.resource == resource && --left == 0) act();
          return std::nullopt;
        });
  }
  bool exists(const char* resource, const char* ns, const char* name) const {
    return !cluster.get(resource, ns, name).is_null();
  }
  // Returns the deletions that the command has sent, as "RESOURCE NAME UID STATUS".
  std::vector<std::string> deletions() const {
    std::vector<std::string> all;
    for (const sim::AuditEntry& entry : cluster.audit())
      if (entry.verb.starts_with("delete"))
        all.push_back(entry.resource + " " + entry.name + " " + entry.uid + " " + std::to_string(entry.status) +
                      (entry.dry_run ? " dry run" : ""));
    return all;
  }
  static drain::VolumeReport volume_of(std::string attachment, drain::VolumeOutcome outcome) {
    drain::VolumeReport volume;
    volume.attachment = std::move(attachment);
    volume.outcome = outcome;
    return volume;
  }
  // Retires n1 as it is now, as if a drain with this report had just ended.
  drain::RetirementReport retire_drained(std::vector<drain::VolumeReport> volumes = {}) {
    drain::Report drained;
    drained.node = "n1";
    drained.node_uid = uid_;
    drained.outcome = drain::Outcome::drained;
    drained.volumes = std::move(volumes);
    drain::Retirement retirement(client, rng, {}, drained);
    run([&]() -> boost::asio::awaitable<void> {
      co_await with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
        group.spawn(cluster.run());
        co_await retirement.run();
      });
    }());
    return retirement.report();
  }
  void cordon_n1() { cluster.patch("nodes", "", "n1", {{"spec", {{"unschedulable", true}}}}); }

  std::string uid_;
};

}  // namespace haulout::cli
