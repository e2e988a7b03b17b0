// The jobs by which people control agents: `haulout pause`, `resume`, `request-reboot` and `release`, and the writes of
// the jobs.
#pragma once

#include <optional>
#include <string>

#include "agent/gates/pause.hpp"
#include "cli/people/people_job.hpp"
#include "k8s/client.hpp"
#include "k8s/objects.hpp"
#include "retry/rng.hpp"

namespace haulout::cli {

// The functions below write the objects by which people control agents: an annotation of a Node, or a key of the
// ConfigMap `haulout`. Each write carries the resourceVersion that was read, so that the server rejects it with 409
// after a concurrent change. The function then reads again and retries until the deadline. It sends no write if the
// object already has the value. Fails with the errors of the client. Cancellable. Borrows the client and the random
// number generator.

struct NodeChange {
  k8s::Node node;                     // the Node after the change
  std::optional<std::string> before;  // value of the annotation before the change; unset: it did not exist
  bool changed = false;
};
// Sets the annotation `key` of the Node, or removes it if `value` is unset.
Task<NodeChange> change_annotation(k8s::Client& client, Rng& rng, std::string node, std::string key,
                                   std::optional<std::string> value, TimePoint deadline);

struct EntryChange {
  std::map<std::string, std::string> data;  // all entries of the ConfigMap after the change
  std::optional<std::string> before;
  bool changed = false;
};
// Sets `key` in the ConfigMap `haulout` of the namespace `ns`, or removes it if `value` is unset. Creates the ConfigMap
// if it does not exist and `value` is set.
Task<EntryChange> change_entry(k8s::Client& client, Rng& rng, std::string ns, std::string key,
                               std::optional<std::string> value, TimePoint deadline);

// The two functions below return the merge patches of these changes (steering_json.cpp). A patch contains the
// resourceVersion of the object that was read, so that the server rejects it with 409 if the object has changed. Pure.
//
// Returns a patch that sets the annotation `key` of the Node, or removes it if `value` is unset.
std::string annotation_patch(const k8s::Node& node, std::string_view key, const std::optional<std::string>& value);
// Returns a patch that sets `key` in the data of the ConfigMap, or removes it if `value` is unset.
std::string entry_patch(const k8s::ConfigMap& config_map, std::string_view key,
                        const std::optional<std::string>& value);

// The job of `haulout pause`, which keeps agents from beginning updates, and of `haulout resume`, which ends a pause.
// It writes or removes annotations of Nodes or keys of the ConfigMap `haulout`, as kubectl could
// (agent/gates/pause.hpp).
class PauseJob final : public NodeByNodeJob {
 public:
  using NodeByNodeJob::NodeByNodeJob;
  boost::asio::awaitable<void> run() override;

 private:
  Task<> act(std::string node) override;
  // Writes or removes the pause of a pool or of the cluster, which is a key of the ConfigMap.
  Task<> act_on_key();
  // Returns the pause to write. Fails with Errc::invalid if the time of --until is in the past.
  Result<agent::Pause> wanted() const;
  bool pausing() const { return settings_.command == Command::pause; }
  // After a resume, prints a warning for each other pause that is still in force. `entries` are the data of the
  // ConfigMap; the key `but` is skipped. `pool` is the pool of the node or nodes that were resumed.
  void warn_of_others(const std::map<std::string, std::string>& entries, const std::string& but,
                      const std::string& pool) const;

  std::optional<agent::Pause> pause_;
};

// The job of `haulout release`: gives back the pods of the nodes that a drain has surged (drain/surge_feed.hpp),
// and withdraws the EvictionRequests that a drain has left open (drain/eviction_request_feed.hpp).
class ReleaseJob final : public NodeByNodeJob {
 public:
  using NodeByNodeJob::NodeByNodeJob;

 private:
  Task<> act(std::string node) override;
};

// The job of `haulout request-reboot`: requests a reboot from the agents of the nodes, by an annotation of the Node.
// Rejects a node without an agent, because the annotation would stay and cause a reboot when an agent is installed
// later.
class RequestJob final : public NodeByNodeJob {
 public:
  using NodeByNodeJob::NodeByNodeJob;
  boost::asio::awaitable<void> run() override;

 private:
  Task<> act(std::string node) override;

  std::optional<WallTime> at_;  // nothing: at once
};

}  // namespace haulout::cli
