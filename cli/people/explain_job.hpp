// `haulout explain`: the job, and the requests for the objects in which it looks for diagnoses.
#pragma once

#include <functional>

#include "cli/people/explanation.hpp"
#include "cli/people/people_job.hpp"
#include "k8s/client.hpp"

namespace haulout::cli {

// Reads the namespaces, volumes and controllers of the pods that must leave the node; findings_of() looks for diagnoses
// in them. The caller reads the pods and budgets itself. The requests only read. Never fails: a failed request is
// described in Asked::problems. Cancellable. Borrows the client and the facts.
class Questions {
 public:
  // Largest number of pods whose local volumes are looked up, and of controllers that are looked up. The limits bound
  // the number of these requests.
  static constexpr std::size_t most_pods = 10;
  static constexpr std::size_t most_controllers = 30;

  // `deadline` is called before each request and returns the deadline of that request.
  Questions(k8s::Client& client, const NodeFacts& facts, std::function<TimePoint()> deadline, WallTime now);

  // Reads the objects. `attachments` are the VolumeAttachments of the node. They must be listed before the pods.
  // Otherwise the volumes of a pod that is created between the two lists would look unused.
  boost::asio::awaitable<Asked> ask(Result<k8s::List<k8s::VolumeAttachment>> attachments);

 private:
  boost::asio::awaitable<void> ask_for_namespaces();
  boost::asio::awaitable<void> ask_for_volumes(Result<k8s::List<k8s::VolumeAttachment>> attachments);
  Task<std::string> claim_of(std::string volume);
  boost::asio::awaitable<void> ask_for_local_volumes();
  boost::asio::awaitable<void> ask_for_controllers();
  Task<std::optional<drain::Controller>> controller_of(k8s::Pod pod);
  void not_known(std::string what, const Error& error);

  k8s::Client& client_;
  const NodeFacts& facts_;
  std::function<TimePoint()> deadline_;
  std::vector<k8s::Pod> leaving_;
  Asked asked_;
};

// `haulout explain`: reads a node and the objects that concern it, and prints why the node is not updated now. Changes
// nothing. Fails only if the Node cannot be read. If another object cannot be read, the output names it and the error.
class ExplainJob final : public NodeByNodeJob {
 public:
  using NodeByNodeJob::NodeByNodeJob;

 private:
  Task<> act(std::string node) override;
  boost::asio::awaitable<void> check_fit(NodeFacts& facts);
  boost::asio::awaitable<drain::DaemonSetStates> look_up_daemon_sets(std::vector<k8s::Pod> pods);
};

}  // namespace haulout::cli
