// What an agent must know to go on after a crash, as it stands in the Node's annotation haulout.dev/record: JSON, one
// line. Written in the same patch as the labels, always before the step that it announces.
//
// A record that cannot be read is nobody's idle: it decodes to `degraded`, and says what a person has to do.
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

// A reboot of the node: from when it was asked for, then from when its boot was seen.
struct PastReboot {
  WallTime at{};
  std::vector<std::string> reasons{};  // why, as the back end said
  std::string target{};                // the version that it was to lead to; empty where there are no versions
  // The back end has said since then that no reboot is needed: what it asks for later is new, though it may have the
  // same name (each kernel update does).
  bool cleared = false;
  // Asked for, and no boot has been seen since. It counts all the same: a machine whose boots nobody sees must not be
  // rebooted for ever.
  bool asked_only = false;
  bool operator==(const PastReboot&) const = default;
};

// An attempt to update the node, once it is over: from the turn on.
struct PastAttempt {
  WallTime at{};         // when it ended
  std::string reason{};  // CamelCase; "Updated" when all went well
  std::string why{};     // one sentence
  bool operator==(const PastAttempt&) const = default;
};
inline constexpr std::size_t remembered_attempts = 5;

struct Record {
  State state = State::unknown;
  WallTime since{};        // when this state was entered
  std::string boot_id{};   // of the boot in which it was entered
  std::string slot{};      // names our turn, until it is given back
  std::string run{};       // names our cordon; empty: there is none to take back
  bool cordoned = false;   // it has been in force: a field that is clear was cleared by somebody
  bool requested = false;  // a person asked for this reboot
  std::vector<std::string> reasons{};
  std::string from{};                             // the version that ran when the turn was taken
  std::string to{};                               // the version that the reboot is to lead to
  std::size_t method = 0;                         // of the host's ways to reboot
  bool asked = false;                             // the reboot is asked for in this way, or was: written before it is
  bool asked_again = false;                       // after a process that may have been killed before it asked
  std::optional<BootMarks> marks{};               // of the machine before it was
  std::optional<WallTime> deadline{};             // of the reboot, the verification, the soak time
  unsigned failures = 0;                          // attempts in a row that came to nothing
  std::optional<WallTime> not_before{};           // the next attempt
  std::optional<WallTime> began{};                // when the turn was taken; none: this boot belongs to no update
  bool judged = false;                            // it was told how that update ended: what follows is not another one
  std::optional<WallTime> verified_at{};          // of the last update
  std::vector<PastReboot> reboots{};              // the last ones, see remembered.hpp
  std::vector<std::chrono::seconds> durations{};  // of the last updates
  std::vector<std::string> bad_targets{};         // versions that were rolled back: not tried again
  std::string cause{};                            // why degraded, or why the last attempt came to nothing: reason
  std::string cause_message{};
  bool uncordon = false;                    // degraded, but the node itself is well: it takes pods again
  std::vector<std::string> hooks_passed{};  // points of this attempt that are behind us
  std::optional<WallTime> hooks_asked{};    // when others were asked at the point that is not
  std::set<std::string> leaked{};           // UIDs of VolumeAttachments that nobody was found to use in this attempt
  // Controllers whose pods come back whatever is done, namespace/kind/name: they stay (--pinned leave), or are evicted
  // no more and waited for.
  std::set<std::string> pinned{};
  // For people.
  std::vector<PastAttempt> attempts{};  // the last ones, the newest last
  std::string authority{};              // by which the agent works
  std::string pool{};                   // as the agent has labelled its Node; empty: it has not
  bool operator==(const Record&) const = default;
};

std::string encode_record(const Record& record);
Record decode_record(std::string_view json);

}  // namespace haulout::agent
