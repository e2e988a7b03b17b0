// Stores whether this node needs a reboot and which version runs, from the back end, and reads a person's reboot
// request from the Node. Borrows its parts. One thread.
#pragma once

#include <functional>
#include <string>

#include "agent/lifecycle/context.hpp"
#include "agent/lifecycle/node_view.hpp"
#include "agent/node/record.hpp"
#include "agent/ports/backend.hpp"

namespace haulout::agent {

class RebootNeed {
 public:
  RebootNeed(Backend& backend, Activity& activity, const NodeView& view, const Record& record, Clock& clock, Rng& rng);

  // Asks the back end, and again each time that its answer may have changed. Ends only by cancellation.
  boost::asio::awaitable<void> follow();
  // Returns when the back end has answered, or when the activity has to end. Cancellable.
  boost::asio::awaitable<void> first_answer();

  // The last answer of the back end.
  const Pending& pending() const { return pending_; }
  // Returns true if the back end has answered since the process started, even if the answer is `unknown`.
  bool answered() const { return answered_; }
  // Returns true if a person requests a reboot of this node.
  bool requested() const { return reboot_requested(view_.node()); }
  // Returns true if there is a reason to reboot: a request, or a need whose target was not rolled back before.
  bool wanted() const;

  // Reads the running version from the back end and stores it. An update must not begin without it, because later the
  // agent could not check whether the version has changed. Cancellable.
  Task<> learn_version(TimePoint deadline);
  // The version of the last learn_version(); empty if there was none.
  const std::string& version() const { return version_; }

 private:
  Backend& backend_;
  Activity& activity_;
  const NodeView& view_;
  const Record& record_;
  Clock& clock_;
  Rng& rng_;
  Pending pending_;
  bool answered_ = false;
  std::string version_;
};

}  // namespace haulout::agent
