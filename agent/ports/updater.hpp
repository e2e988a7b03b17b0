// Port: finds the updates of the operating system that wait on this machine, and installs them (--update): between the
// drain and the reboot, or, if they are written to an image that only the next boot runs, before the drain. One
// implementation per kind of update tool; tests have fakes. The agent has none (null) if another program installs the
// updates.
//
// The agent calls look() and changed() as long as it runs. AgentWhole owns the updater, and the agent borrows it. Every
// error names subject, cause and remedy; its Errc depends on the tool.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "agent/ports/backend.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// The updates that wait to be installed.
struct Updates {
  Need need = Need::unknown;         // yes: at least one update waits, or an interrupted installation must be finished
  std::size_t count = 0;             // number of updates
  std::vector<std::string> first{};  // the first of them, for messages: "openssl 3.0.15-1 to 3.0.16-1"
  // The version of the system to which the updates lead (see Pending::target); empty if the tool has no versions.
  std::string target{};
  std::string problem{};  // why `need` is unknown: subject, cause, remedy
  bool operator==(const Updates&) const = default;
};
// Maximum number of updates that are named in messages and in the record.
inline constexpr std::size_t named_updates = 5;

class Updater {
 public:
  virtual ~Updater() = default;
  // Returns true if a version means the same on each machine. The number of a snapshot does not.
  virtual bool versions_are_shared() const { return true; }
  // Finds out which updates wait, without a change to the machine. Never fails: an error becomes `unknown`, with the
  // error as `problem`. Cancellable.
  virtual boost::asio::awaitable<Updates> look(TimePoint deadline) = 0;
  // Returns when look() may have a different answer; may also return without cause. May fetch the lists of available
  // updates first. Cancellable.
  virtual boost::asio::awaitable<void> changed() = 0;
  // Downloads the updates that wait, so that install() takes less time. install() works without it. Cancellable.
  virtual Task<> download(TimePoint deadline) = 0;
  // Returns a sentence that names what blocks an installation for now, or an empty string if nothing does. An error
  // means that the answer is unknown. Cancellable.
  virtual Task<std::string> blocked_by(TimePoint deadline) = 0;
  // Finishes an interrupted installation, then installs the updates that wait. Succeeds only if none of them waits
  // afterwards. Idempotent: a second call continues where an earlier one, or an earlier agent, was interrupted. After
  // an error the updates may be installed in part. Cancellable: the installation may then go on without the agent, and
  // the next call waits for its end.
  virtual Task<> install(TimePoint deadline) = 0;
  // Returns the services that still use files which an installation has replaced. Empty if there are none, or if the
  // tool does not replace files that are in use. An error means that the answer is unknown. Cancellable.
  virtual Task<std::vector<std::string>> old_services(TimePoint) { co_return std::vector<std::string>(); }
  // Restarts those services, except the ones that the machine's own rules exempt. The agent may be among them: then the
  // restarts go on without it. Cancellable like install().
  virtual Task<> restart_services(TimePoint) { co_return Result<>(); }
  // Returns which of these services do not run because they have failed; a service that ended well is none of them. An
  // error means that the answer is unknown. Cancellable.
  virtual Task<std::vector<std::string>> failed_services(std::vector<std::string>, TimePoint) {
    co_return std::vector<std::string>();
  }
  // Called with the services that still use such files afterwards, or that have failed. Returns true if it has demanded
  // a reboot, in the way that the back end reads; false if the configuration does not want that. Idempotent.
  // Cancellable.
  virtual Task<bool> need_reboot_for(std::vector<std::string>, TimePoint) { co_return false; }
};

}  // namespace haulout::agent
