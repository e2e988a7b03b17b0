// The states `ready` and `rebooting`: the agent checks that the node stays ready, and requests the reboot. One object
// for each time that the node enters the state. Cancellable. Borrows its arguments.
#pragma once

#include <optional>
#include <string>

#include "agent/lifecycle/permission.hpp"
#include "agent/lifecycle/proof.hpp"
#include "agent/lifecycle/shutdown.hpp"

namespace haulout::agent {

// Runs the state `ready`. The ready file exists while the last proof holds (see proof.hpp); the state ends when it does
// not hold any more. If the agent does not reboot the machine itself, the state also lasts until another program has
// rebooted it.
class Ready {
 public:
  Ready(const Context& context, RebootNeed& need, GateWatch& gates, OwnSlot& slot, RemainingPods& pods, Proof& proof)
      : context_(context), need_(need), gates_(gates), slot_(slot), pods_(pods), proof_(proof) {}
  boost::asio::awaitable<Decision> run();

 private:
  boost::asio::awaitable<void> watched(TaskGroup& group);
  // Returns a decision if another program has rebooted the machine since it was ready and the boot id has not changed.
  boost::asio::awaitable<std::optional<Decision>> booted_unnoticed();
  // Shows a reason and a message on the Node. Runs as a child, because the end of the state must not wait for a Node
  // that cannot be written. Only one child at a time writes, and it goes on until it has written the values that were
  // passed last.
  boost::asio::awaitable<void> show(std::string reason, std::string message);

  const Context& context_;
  RebootNeed& need_;
  GateWatch& gates_;
  OwnSlot& slot_;
  RemainingPods& pods_;
  Proof& proof_;
  bool shows_ = false;                                            // a child of show() is writing
  std::optional<std::pair<std::string, std::string>> show_next_;  // reason and message that it writes next
};

class Rebooting {
 public:
  Rebooting(const Context& context, RebootNeed& need, RemainingPods& pods, Proof& proof, Shutdowns& shutdowns)
      : context_(context), need_(need), pods_(pods), proof_(proof), shutdowns_(shutdowns) {}
  boost::asio::awaitable<Decision> run();

 private:
  boost::asio::awaitable<void> watched(std::optional<Decision>& decision);
  boost::asio::awaitable<Decision> by_one_method(bool last);
  // Requests the reboot by this method. Returns the decision that prevents the request; otherwise nothing. Then `asked`
  // in the record says whether the reboot was requested, and `problem_` why a request failed.
  boost::asio::awaitable<std::optional<Decision>> request();
  // Sends the request to the host. Returns a decision if the cordon is lost, or if the host refused because something
  // blocks the reboot. Otherwise returns nothing, also after any other error.
  boost::asio::awaitable<std::optional<Decision>> request_of_host(TimePoint deadline);
  // Returns a decision if the reboot limit forbids another request.
  boost::asio::awaitable<std::optional<Decision>> braked();
  // Waits until `deadline` for the machine to go down. Returns the evidence if the machine has rebooted although its
  // boot id has not changed; otherwise an empty string.
  boost::asio::awaitable<std::string> until_down(TimePoint deadline);
  // Returns the current boot id if it differs from the record's.
  std::optional<std::string> later_boot() const;
  // Returns the current reboot method for messages. Not stored, because the host may name it differently after the
  // request (Host::reboot_methods()).
  std::string method() const;
  // Starts the time limit of the current reboot method, and returns its deadline.
  TimePoint start_limit();

  const Context& context_;
  RebootNeed& need_;
  RemainingPods& pods_;
  Proof& proof_;
  Shutdowns& shutdowns_;
  std::string problem_;  // why the machine has not rebooted by the current method
};

}  // namespace haulout::agent
