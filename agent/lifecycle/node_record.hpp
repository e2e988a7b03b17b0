// The record of the agent on its Node: writes it, with everything else that the agent shows there, and reads it. All
// coroutines are cancellable. Borrows its arguments. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "agent/lifecycle/agent.hpp"
#include "agent/lifecycle/conditions.hpp"
#include "agent/lifecycle/context.hpp"
#include "agent/lifecycle/reboot_need.hpp"
#include "retry/backoff.hpp"

namespace haulout::agent {

// Handles records on the agent's Node that the agent has not written. Such a record takes precedence, so the agent
// reads it and continues from it. If a person has removed the record, or a late write of a previous process has
// arrived, one reading is enough. If another agent runs for the same node, each would overwrite the other's record; so
// the agent waits with a growing backoff, and reports the other agent.
class ForeignRecords {
 public:
  // `warn` is called with a message about a second agent. Borrows clock and rng.
  ForeignRecords(Clock& clock, Rng& rng, std::string node, std::function<void(std::string)> warn);

  // Records that a foreign record was seen.
  void note() { seen_ = true; }
  // Waits with backoff if a foreign record was seen since the last call. Cancellable.
  boost::asio::awaitable<void> give_way();
  bool seen() const { return seen_; }

 private:
  Clock& clock_;
  Rng& rng_;
  std::string node_;
  std::function<void(std::string)> warn_;
  Backoff backoff_;
  bool seen_ = false;     // a foreign record was seen since the last give_way()
  TimePoint gave_way_{};  // end of the last give_way()
  unsigned in_a_row_ = 0;
};

// Writes everything that the agent shows on its Node: the record, the labels and the message in one guarded patch, and
// then the conditions.
//
// A new state counts only after it was written. Therefore the writer retries until it succeeds, and meanwhile reports
// that the Node cannot be written. It stops if the Node was deleted or replaced, or if another client has written a
// record, which takes precedence; then Activity::must_reload() is true.
class NodeWriter {
 public:
  // `record` is the record that the writer shows, and that take_over() replaces.
  NodeWriter(boost::asio::any_io_executor executor, const AgentParts& parts, const AgentOptions& options,
             Record& record, Activity& activity, NodeView& view, const RebootNeed& need, ForeignRecords& foreign);

  // Takes over record and status from the Node in the view, as it was just read.
  void take_over();
  // Returns the status that the Node shows, or will show after the current write.
  const Status& status() const { return status_; }
  // Returns true if another client has written or removed the record on the Node in the view.
  bool has_foreign_record() const;

  // Makes the Node show the record and this reason and message, and reports them if they are new.
  boost::asio::awaitable<void> show(std::string reason, std::string message);
  // Writes the record after a transition, with the status of the new state, and reports it. `served`: the request of a
  // person for a reboot that is removed (status_patch()).
  boost::asio::awaitable<void> show_transition(Status status, std::string served);
  // Writes the record and the status as they are. Reports only that the Node cannot be written. Returns false if the
  // Node has to be read again first.
  boost::asio::awaitable<bool> write(std::string served = {});
  Conditions& conditions() { return conditions_; }

  // Restores what another client has removed from the Node or changed there, with a growing backoff; not the
  // conditions. Runs as a child of the agent, and ends only by cancellation.
  boost::asio::awaitable<void> keep_shown();

  // Reports a problem that does not delay the update.
  void warn(std::string reason, std::string message) const;
  // Creates or removes the ready file.
  void show_ready(bool ready) const;

 private:
  // Returns the record as it is on the Node or will be there. A record that cannot be decoded stays as it is.
  const std::string& encoded() const { return unreadable_.empty() ? text_.of(record_) : unreadable_; }
  TimePoint within(Duration limit) const { return client_.clock().now() + limit; }
  // Report that the Node cannot be written, and that it can be written again.
  void tell_unwritten(const Error& error);
  void tell_written();
  std::optional<std::string> what_was_taken() const;

  const AgentParts& parts_;
  const AgentOptions& options_;
  k8s::Client& client_;
  Record& record_;
  Activity& activity_;
  NodeView& view_;
  const RebootNeed& need_;
  ForeignRecords& foreign_;

  Status status_;
  std::string written_;  // the record on the Node
  std::string sent_;     // the record in the last request; its answer may have been lost
  mutable RecordText text_;
  std::string unreadable_;  // the text of a record that cannot be decoded; otherwise empty
  bool unwritten_ = false;  // it was reported that the Node cannot be written
  Conditions conditions_;
};

// Reads the Node and takes over its record, at the start and each time that the Node has to be read again. Also records
// a boot of the machine for which the state has no event.
class Loading {
 public:
  explicit Loading(const Context& context) : context_(context) {}

  // Reads the Node and takes over its record; retries until it succeeds. Removes the ready file first, because the API
  // server may be unavailable for long.
  boost::asio::awaitable<void> run();
  // Called when the duties of the state are established. If the machine has booted and the state has no event for a
  // boot, writes the new boot id. Such a boot also serves a reboot request that was made before it.
  boost::asio::awaitable<void> note_boot();

 private:
  void tell_unread(const Error& error);

  const Context& context_;
  // The request that was there when this process started, if any boot serves it. A request that was made later cannot
  // have been served by an earlier boot.
  std::optional<std::string> requested_at_start_;
};

}  // namespace haulout::agent
