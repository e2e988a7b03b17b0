// Asks what `haulout explain` wants to know of a node besides its pods and budgets (cli/people/findings.hpp): reads
// only, few of them, and what may not be read is a problem and no failure. Cancellable. Borrows client and facts.
#pragma once

#include <functional>

#include "cli/people/explanation.hpp"
#include "k8s/client.hpp"

namespace haulout::cli {

class Questions {
 public:
  // So many pods and controllers are asked about: enough to see what is the matter.
  static constexpr std::size_t most_pods = 10;
  static constexpr std::size_t most_controllers = 30;

  // `deadline`: of a request that is sent now.
  Questions(k8s::Client& client, const NodeFacts& facts, std::function<TimePoint()> deadline, WallTime now);

  // `attachments`: of the node, listed before the pods were: whose pod has come since is not nobody's.
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
