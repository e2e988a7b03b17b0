// Deletes the Node of a node that a drain has drained, and checks that nothing in the cluster refers to it any more.
//
// run() first reads the Node once more and lists its pods and VolumeAttachments. It deletes the Node only if
//   - it is the Node that was drained (by UID) and still cordoned, and the caller has no objection;
//   - only pods are left that end with their node: mirror pods, pods of DaemonSets, finished pods. The control plane
//     deletes all pods of a deleted Node, without evictions and budgets;
//   - no volume is attached for which the drain waits. Without its Node, it would be detached while it may be mounted.
// The deletion has the UID and the resourceVersion of that Node as its preconditions. So another Node of the name is
// never deleted, and the Node has not changed since it was read: it was cordoned all the time. If it has changed, run()
// looks again. If there is a clean-up of the machine, run() does it after the first look, and then looks again: it may
// take minutes, and stops the kubelet. After the deletion run() waits, at most for last_look_limit, until the control
// plane has deleted what belonged to the Node: its pods, its VolumeAttachments, its CSINode and its Lease in
// kube-node-lease. In a dry run it checks which pods the drain would leave, and does not wait.
//
// run() returns no error: a failure is an outcome in report(). Cancellable: the outcome is then `cancelled`, and
// RetirementReport::deletion says whether the Node is deleted. Borrows client and rng, which must outlive it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <set>
#include <string>

#include "drain/options.hpp"
#include "drain/report.hpp"
#include "k8s/client.hpp"
#include "k8s/objects.hpp"
#include "retry/rng.hpp"

namespace haulout::drain {

// How long run() waits for the control plane after the deletion. The pod garbage collector runs every 20 s, and deletes
// the pods of a Node that has been missing for 40 s (k/k pkg/controller/podgc/gc_controller.go).
inline constexpr Duration last_look_limit = std::chrono::minutes(2);

struct RetirementOptions {
  DryRunMode dry_run = DryRunMode::none;
  Duration unreachable_limit = std::chrono::seconds(10);  // as Options::unreachable_limit
  // Returns why this Node must not be deleted now, or an empty string. Called with the Node as it is right before the
  // deletion.
  std::function<std::string(const k8s::Node&)> objection = [](const k8s::Node&) { return std::string(); };
  // Cleans up the machine of the node, which nothing keeps any more. Returns what prevents the deletion of the Node, or
  // nothing. Called once, also if the Node is gone already: the pods on it are then not looked at, because they end
  // without it in any case. Not called in a dry run. May be empty.
  std::function<boost::asio::awaitable<std::optional<Leftover>>()> clean_up{};
  // Called when the server has accepted the deletion, before the wait. Not called in a dry run.
  std::function<void()> deleted = [] {};
  // Called with the error before each repetition of a request.
  std::function<void(const Error&)> failed = [](const Error&) {};
};

class Retirement {
 public:
  // `drained` is the final report of the drain; its outcome must be `drained`.
  Retirement(k8s::Client& client, Rng& rng, RetirementOptions options, const Report& drained);

  boost::asio::awaitable<void> run();
  const RetirementReport& report() const { return report_; }

 private:
  enum class Sent { deleted, changed };  // changed: the Node is not what was read, so it was not deleted

  // Steps of run(). Each returns true if the next one may follow; otherwise the retirement has ended.
  boost::asio::awaitable<bool> check_before();
  boost::asio::awaitable<bool> clean_up();
  boost::asio::awaitable<bool> delete_node();
  boost::asio::awaitable<void> wait_until_clean();

  template <class T>
  Task<T> ask(std::function<Task<T>(TimePoint)> request);
  boost::asio::awaitable<bool> find_pods();
  boost::asio::awaitable<bool> find_volumes();
  Task<Sent> send_deletion(TimePoint deadline);
  // Fills `leftovers` with what refers to the deleted Node now. Returns true if it is worth waiting for at least one.
  boost::asio::awaitable<bool> look_after();
  template <class T>
  boost::asio::awaitable<bool> look_for(std::string ns, std::string what);
  bool unreadable(std::string what, const Error& error);
  bool end(RetirementOutcome outcome, std::string message = {});
  bool fail(const Error& error, std::string_view what);

  k8s::Client& client_;
  Rng& rng_;
  RetirementOptions options_;
  std::string node_;
  std::string uid_;
  std::string version_;                    // resourceVersion of the Node when it was read last
  std::set<std::string> settled_volumes_;  // names of the VolumeAttachments for which the drain did not wait
  std::set<std::string> staying_pods_;     // UIDs of the pods that the drain has left on the node
  RetirementReport report_;
  std::optional<std::chrono::milliseconds> retry_after_;  // the longest Retry-After of the last look_after()
};

}  // namespace haulout::drain
