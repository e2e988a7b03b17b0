// Reads the objects from which `haulout explain` finds diagnoses of a node (cli/people/findings.hpp), beside its pods
// and budgets: namespaces, volumes and controllers. Sends a limited number of requests, which only read. Never fails:
// what cannot be read is added to Asked::problems. Cancellable. Borrows the client and the facts.
#pragma once

#include <functional>

#include "cli/people/explanation.hpp"
#include "k8s/client.hpp"

namespace haulout::cli {

class Questions {
 public:
  // Largest numbers of pods and of controllers that are looked up: few requests, but enough to find what is wrong.
  static constexpr std::size_t most_pods = 10;
  static constexpr std::size_t most_controllers = 30;

  // The function `deadline` returns the deadline for a request that is sent at that moment.
  Questions(k8s::Client& client, const NodeFacts& facts, std::function<TimePoint()> deadline, WallTime now);

  // Reads the objects. `attachments` are the VolumeAttachments of the node. They must be listed before the pods: the
  // volumes of a pod that arrives in between would otherwise look unused.
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

}  // namespace haulout::cli
