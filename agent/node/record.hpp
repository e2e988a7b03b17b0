// What an agent needs to know to go on after a crash. It is stored in the Node's annotation haulout.dev/record, as JSON
// in one line. The agent writes it in the same patch as the labels, and always before the step that it announces. Pure.
//
// A record that cannot be read does not count as `idle`. It decodes to `degraded`, with a message that names the
// remedy.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/node/boot_marks.hpp"
#include "agent/node/state.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

inline constexpr std::string_view record_annotation = "haulout.dev/record";

// A reboot of the node. `at` is the time of its request, and later the time at which the agent noticed the boot.
struct PastReboot {
  WallTime at{};
  std::vector<std::string> reasons{};  // why the reboot was needed, from the back end
  std::string target{};                // the version that the reboot was to lead to; empty if there are no versions
  // Since this reboot the back end has reported that no reboot is needed. A later need is a new one, even if it has the
  // same name, as each kernel update has.
  bool cleared = false;
  // The reboot was requested, and no boot has been noticed since. It counts nevertheless, because a machine whose boots
  // stay unnoticed must not be rebooted for ever.
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
  // The boot id when the node entered this state, or the boot id of a later boot that is no event of this state.
  std::string boot_id{};
  std::string slot{};  // `Turn::slot` of the slot, until it is released
  std::string run{};   // run id in the mark of the agent's cordon; empty if there is no cordon to take back
  // The cordon of this run has been in force. If spec.unschedulable is false now, another client has cleared it.
  bool cordoned = false;
  bool requested = false;  // a person requested this reboot
  std::vector<std::string> reasons{};
  std::string from{};      // the version that ran when the slot was taken
  std::string to{};        // the version that the reboot is to lead to
  std::size_t method = 0;  // index into Host::reboot_methods()
  // The reboot is about to be requested by this method, or was requested. Written before the request.
  bool asked = false;
  // The request was repeated once, because the previous process may have been killed before it sent the request.
  bool asked_again = false;
  std::optional<BootMarks> marks{};      // marks of the machine before the reboot
  std::optional<WallTime> deadline{};    // end of the reboot, the verification or the soak time
  unsigned failures = 0;                 // number of failed attempts in a row
  std::optional<WallTime> not_before{};  // earliest time of the next attempt
  // When the slot was taken; nothing if the current boot belongs to no update.
  std::optional<WallTime> began{};
  // The outcome of this update was reported; what follows is not reported as another update.
  bool judged = false;
  std::optional<WallTime> verified_at{};          // when the last successful update was verified
  std::vector<PastReboot> reboots{};              // the last reboots, the newest last; at most ten, see remembered.hpp
  std::vector<std::chrono::seconds> durations{};  // of the last updates, from slot to verification; at most ten
  std::vector<std::string> bad_targets{};         // versions that were rolled back; the agent does not try them again
  // Reason (CamelCase) of the degradation, or of the failure of the last attempt.
  std::string cause{};
  std::string cause_message{};
  // The state is degraded, but the node is well: the agent takes its cordon back.
  bool uncordon = false;
  std::vector<std::string> hooks_passed{};  // names of the hook points that have passed in this attempt
  std::optional<WallTime> hooks_asked{};    // when the agent began to ask the annotation hooks of the current point
  std::set<std::string> leaked{};           // UIDs of VolumeAttachments that no pod was seen to use in this attempt
  // Controllers (namespace/kind/name) that bring their pods back to the cordoned node. With --pinned leave their pods
  // stay. Otherwise the drain does not evict them any more, and waits for them.
  std::set<std::string> pinned{};
  // `attempts` and `authority` are only for people.
  std::vector<PastAttempt> attempts{};  // the last attempts, the newest last; at most `remembered_attempts`
  std::string authority{};              // the credential by which the agent acts
  std::string pool{};                   // the pool in the label that the agent writes; empty if it writes none
  bool operator==(const Record&) const = default;
};

std::string encode_record(const Record& record);
Record decode_record(std::string_view json);

}  // namespace haulout::agent
