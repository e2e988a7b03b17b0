// The record: what an agent stores on its Node to continue after a crash, including the marks of a boot and the state
// of the hooks. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/hooks/hooks.hpp"
#include "agent/node/state.hpp"
#include "agent/ports/host.hpp"
#include "k8s/objects.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

// Marks that distinguish one boot of a machine from the next, in addition to the boot id that the agent reads. If the
// node is a container, the agent may read the boot id of the container's host, which stays the same when the node
// reboots. The same can happen if the agent runs in the sandbox of a systemd unit inside such a container.
struct BootMarks {
  std::string kubelet_boot_id{};  // status.nodeInfo.bootID of the Node; empty if the kubelet has reported none
  MachineStart start{};
  bool operator==(const BootMarks&) const = default;
};

// Compares the marks before and after a possible reboot, when the agent's own boot id has not changed. Returns a clause
// for messages that names the evidence of a restart, or an empty string if there is none. A new boot id from the
// kubelet is no evidence if it equals `own_boot_id`, the boot id that the agent reads: then the kubelet only reported
// late.
std::string restart_shown(const BootMarks& before, const BootMarks& after, const std::string& own_boot_id);

// Returns true if the kubelet is Ready and reports a different boot id from the one that the agent reads. This is
// normal for a while after a boot.
bool has_foreign_boot_id(const k8s::Node& node, const std::string& own_boot_id);
// Returns the message (subject, cause, remedy) for a node on which has_foreign_boot_id() stays true.
std::string foreign_boot_id(const k8s::Node& node, const std::string& own_boot_id);
// Returns the message (subject, cause, remedy) for a machine that has rebooted and kept its boot id. `shown` is the
// evidence that restart_shown() returned.
std::string unchanged_boot_id(const std::string& shown, const std::string& node);

// What an agent needs to know to continue after a crash. It is stored in the Node's annotation haulout.dev/record, as
// JSON in one line. The agent writes it in the same patch as the labels. It records a step before it takes the step, so
// that after a crash the next process knows of it.
//
// A record that cannot be decoded does not count as `idle`: it becomes `degraded`, with a message that names the
// remedy.

inline constexpr std::string_view record_annotation = "haulout.dev/record";

// A reboot of the node. `at` is the time of its request, and later the time at which the agent noticed the boot.
struct PastReboot {
  WallTime at{};
  std::vector<std::string> reasons{};  // why the reboot was needed, from the back end
  std::string target{};                // the version that the reboot was to lead to; empty if there are no versions
  // Since this reboot the back end has reported that no reboot is needed. A later need for a reboot is a new one, even
  // if its reasons are the same (for example, each update of the kernel may have the same reason).
  bool cleared = false;
  // The reboot was requested, and no boot has been noticed since. It counts for the reboot limit, because a machine
  // whose boots are not noticed must not be rebooted without end.
  bool asked_only = false;
  bool operator==(const PastReboot&) const = default;
};

// An attempt that has ended. An attempt begins when the node takes its slot.
struct PastAttempt {
  WallTime at{};         // when the attempt ended
  std::string reason{};  // CamelCase; "Updated" after a success
  std::string why{};     // one sentence
  bool operator==(const PastAttempt&) const = default;
};
inline constexpr std::size_t remembered_attempts = 5;

struct Record {
  State state = State::unknown;
  WallTime since{};  // when the node entered this state
  // The boot id when the node entered this state, or that of a later boot for which this state has no event.
  std::string boot_id{};
  std::string slot{};  // name of the slot (`Turn::slot`), until the slot is released
  std::string run{};   // run id for the mark of the agent's cordon: from before the cordon until the uncordon
  // The cordon of this run has been in force. If spec.unschedulable is false now, another client has cleared it.
  bool cordoned = false;
  // The drain of this run surges pods (drain/surge_book.hpp), so pods may have to be given back.
  bool surges = false;
  // The drain of this run creates EvictionRequests (drain/eviction_request_book.hpp), so some may have to be withdrawn.
  bool asks = false;
  bool requested = false;  // a person requested this reboot
  std::vector<std::string> reasons{};
  // Keys of the readiness taints (see readiness.hpp) that the Node had before the update. They do not count after it.
  // Nothing without an attempt, and if an agent that knew no readiness taints has begun it.
  std::optional<std::set<std::string>> old_taints{};
  // The machine has booted or was updated, and was not verified since. So what the Node lacks may come from that.
  bool unverified = false;
  std::string from{};  // the version that ran when the slot was taken
  std::string to{};    // the version that the reboot is to lead to
  // The version for which the slot was taken (Slots::aim_at()), and after the installation the version that was
  // installed; empty if it had none.
  std::string slot_version{};
  // The updates of the operating system that waited when the agent last looked for them. From the time at which the
  // slot is taken: the updates that this attempt installs. Has only the first of them; if there are more, the last
  // element is "and N more".
  std::vector<std::string> updates{};
  // The installation of updates is about to begin, or has begun, and is not known to have ended. Written before the
  // installation begins.
  bool installing = false;
  unsigned failed_updates = 0;  // number of installations in a row that have failed
  // How often the agent has begun to restart services in this installation. Written before each restart.
  unsigned service_restarts = 0;
  // The services that these restarts were for; without those that had failed before.
  std::vector<std::string> restarted{};
  bool in_place = false;   // the updates of this attempt were installed and need no reboot
  std::size_t method = 0;  // index into Host::reboot_methods()
  // The reboot is about to be requested by this method, or was requested. Written before the request.
  bool asked = false;
  // The request was repeated once, because the previous process may have been killed before it sent it.
  bool asked_again = false;
  std::optional<BootMarks> marks{};      // marks of the machine before the reboot
  std::optional<WallTime> deadline{};    // deadline of the state updating, rebooting or verifying; end of the soak time
  unsigned failures = 0;                 // number of failed attempts in a row
  std::optional<WallTime> not_before{};  // earliest time of the next attempt
  // When the slot for the current attempt was taken. Nothing without an attempt, and after a boot that does not belong
  // to an attempt.
  std::optional<WallTime> began{};
  // The outcome of this update was reported; later events are not reported as another update.
  bool judged = false;
  std::optional<WallTime> verified_at{};  // when the last successful update was verified
  // The version that ran when the last update to a version was verified. Empty if there was none, or if another version
  // has run since. Other agents count the nodes that have come back well with a version by it (--ramp).
  std::string updated_to{};
  // The version to which the last failed update was to lead; empty if there was none, if the node has run well since
  // with this version or a later one, or if it needs nothing any more and has not rolled this version back. Until then
  // the node keeps its place in the waves of that version (--ramp), also while it has no slot.
  std::string failed_to{};
  // The version for which the node waits for a slot; empty if it waits for none, or if its update has no version. Other
  // agents learn from it whether the node can go before theirs (--roll-out-order).
  std::string waits_for{};
  std::optional<WallTime> needed_since{};         // since when the node has needed an update; nothing if it needs none
  std::vector<PastReboot> reboots{};              // the last reboots, the newest last; at most ten, see remembered()
  std::vector<std::chrono::seconds> durations{};  // of the last updates, from slot to verification; at most ten
  std::vector<std::string> bad_targets{};         // versions that were rolled back; the agent does not try them again
  // How long the last drain took that has ended with a drained node.
  std::optional<std::chrono::seconds> drain_took{};
  // Versions that have failed on this node and have not run well on it since, the newest last; at most ten. Other
  // agents of the pool do not install them. Only agents that install updates write them, and no numbers of snapshots.
  std::vector<std::string> failed_versions{};
  // Reason (CamelCase) of the degradation, or of the failure of the last attempt.
  std::string cause{};
  std::string cause_message{};
  // The state is degraded, but the node is healthy: the agent uncordons it.
  bool uncordon = false;
  std::vector<std::string> hooks_passed{};  // names of the hook points that have passed in this attempt
  std::optional<WallTime> hooks_asked{};    // when the agent asked the hooks of this point that answer by annotation
  std::set<std::string> leaked{};           // UIDs of VolumeAttachments that no pod was seen to use in this attempt
  // UIDs of the DaemonSets of which this attempt evicts pods, and of these pods. The pods that the DaemonSets create in
  // place of them stay.
  std::set<std::string> evicted_daemon_sets{};
  // Controllers (namespace/kind/name) that create their pods on the cordoned node again. With --pinned leave their pods
  // stay. Otherwise the drain does not evict them any more, and waits for them.
  std::set<std::string> pinned{};
  // `attempts` and `authority` are only for people to read.
  std::vector<PastAttempt> attempts{};  // the last attempts, the newest last; at most `remembered_attempts`
  std::string authority{};              // the credential by which the agent acts
  std::string pool{};                   // the pool in the label that the agent writes; empty if it writes none
  bool operator==(const Record&) const = default;
};

// Returns the record as JSON in one line.
std::string encode_record(const Record& record);
// The text of a record that seldom changes: encodes it only if it has changed since the last call.
class RecordText {
 public:
  // Valid until the next call.
  const std::string& of(const Record& record);

 private:
  std::optional<Record> record_;
  std::string text_;
};
// Never fails: a record that cannot be decoded becomes a degraded one.
Record decode_record(std::string_view json);

// The agent keeps at most this many past reboots, durations and rolled-back versions, so that the record stays small.
inline constexpr std::size_t remembered_updates = 10;

// Appends `latest` to the history, whose newest entry is the last one. Removes the oldest entries if there are too
// many.
template <class T>
std::vector<T> remembered(std::vector<T> history, T latest) {
  history.push_back(std::move(latest));
  if (history.size() > remembered_updates)
    history.erase(history.begin(), history.end() - static_cast<std::ptrdiff_t>(remembered_updates));
  return history;
}

// Returns the version for which the node has its slot; empty if it is unknown.
inline const std::string& attempted_version(const Record& record) {
  return record.slot_version.empty() ? record.to : record.slot_version;
}
// Returns true if the hooks of this point have passed in the attempt of this record.
bool has_passed(const Record& record, HookPoint point);
// Returns the hook point of the record's state, which must be one that has a hook point. For a degraded node, returns
// the point at which it failed.
HookPoint hook_point_at(const Record& record);
// Returns the ticket of the current question to hooks that other programs answer by annotations (see
// agent/hooks/hooks.hpp). Empty if the agent asks no such hook now.
std::string asked_ticket(const Record& record);
// Returns HAULOUT_NODE, HAULOUT_POINT, HAULOUT_STATE, HAULOUT_FROM_VERSION, HAULOUT_TO_VERSION and HAULOUT_REASONS (one
// reason per line).
HookEnvironment hook_environment(const std::string& node, HookPoint point, const Record& record);

}  // namespace haulout::agent
