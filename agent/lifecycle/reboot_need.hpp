// Stores the last answers of the back end (whether this node needs a reboot, and which version runs) and of the updater
// (which updates wait). Reads a person's reboot request from the Node. Borrows its parts. One thread.
#pragma once

#include <functional>
#include <string>

#include "agent/lifecycle/context.hpp"
#include "agent/lifecycle/node_view.hpp"
#include "agent/node/record.hpp"
#include "agent/ports/backend.hpp"
#include "agent/ports/updater.hpp"
#include "k8s/client.hpp"
#include "retry/notifier.hpp"

namespace haulout::agent {

// Returns a clause for messages: "2 package updates wait: openssl 3.0.15-1 to 3.0.16-1, vim 1 to 2", or, if the update
// tool has versions of the whole system, "an update of the system waits: 41.1 to 42.1". Pure.
std::string words_of(const Updates& updates);
// Returns the text and the names of the first updates: "installing updates: vim 1 to 2 and 3 more"; only the text if
// none is known. Pure.
std::string with_names(std::string text, const Updates& updates);

class RebootNeed {
 public:
  // `updater` is null if the agent installs no updates.
  RebootNeed(boost::asio::any_io_executor executor, Backend& backend, Updater* updater, Activity& activity,
             const NodeView& view, const Record& record, k8s::Client& client, Rng& rng);

  // Asks the back end, and again each time that its answer may have changed. Ends only by cancellation.
  boost::asio::awaitable<void> follow();
  // Looks for updates, and again each time that the result may have changed. Ends only by cancellation. Requires an
  // updater.
  boost::asio::awaitable<void> follow_updates();
  // Wakes the activity when the time of a person's request comes, by the server's clock. Ends only by cancellation.
  boost::asio::awaitable<void> follow_request();
  // Called when the Node may have changed.
  void node_changed() { request_news_.notify(); }
  // Asks the back end and the updater now, because their last answers are from before an installation. Cancellable.
  boost::asio::awaitable<void> ask_now();
  // Returns when the back end and the updater have answered, or when the Node has to be read again. Cancellable.
  boost::asio::awaitable<void> first_answer() const;

  // The last answer of the back end.
  const Pending& pending() const { return pending_; }
  // The updates that waited at the last look; `no` if the agent installs no updates.
  const Updates& updates() const { return updates_; }
  // Returns true if the back end has answered since the process started, even if the answer is `unknown`.
  bool answered() const { return answered_; }
  // Returns true if a person requests a reboot of this node now.
  bool requested() const { return reboot_requested(view_.node(), client_.server_now()); }
  // Returns true if there is a reason to reboot: a request, or a need whose target was not rolled back before.
  bool reboot_wanted() const;
  // Returns true if updates wait, and their version was not rolled back before, or a person requests a reboot.
  bool updates_wanted() const { return updates_.need == Need::yes && (requested() || !is_bad(updates_.target)); }
  // Returns true if there is a reason to begin: to reboot, or to install updates.
  bool wanted() const { return reboot_wanted() || updates_wanted(); }
  // Returns true if it is known that there is no reason to begin.
  bool gone() const { return !wanted() && pending_.need != Need::unknown && updates_.need != Need::unknown; }
  // Returns the need for gates, which treat updates that wait like a reboot, because one may follow.
  Pending all() const;
  // Returns the version to which the update leads; empty if none is needed, if it has no version, or if the
  // version means nothing on other nodes. With `only_in_place`, an update that is not yet written to an image does not
  // count.
  std::string target(bool only_in_place) const;

  // Reads the running version from the back end and stores it. An update must not begin without it, because later the
  // agent could not check whether the version has changed. Fails as Backend::booted() does. Cancellable.
  Task<> learn_version(TimePoint deadline);
  // The version of the last learn_version(); empty if there was none.
  const std::string& version() const { return version_; }

 private:
  // Returns true if this version was rolled back on this node.
  bool is_bad(const std::string& target) const;

  Backend& backend_;
  Updater* const updater_;
  Activity& activity_;
  const NodeView& view_;
  const Record& record_;
  k8s::Client& client_;
  Clock& clock_;
  Rng& rng_;
  Notifier request_news_;
  Pending pending_;
  bool answered_ = false;
  Updates updates_;
  bool looked_;  // the updater has answered since the process started, or there is none
  std::string version_;
};

}  // namespace haulout::agent
