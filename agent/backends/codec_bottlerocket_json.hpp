// Decodes the answers of Bottlerocket's API (apiserver, thar-be-updates) that the agent reads. Pure. Ignores unknown
// fields. Errc::decode if a needed field is missing or has the wrong type.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "retry/task.hpp"

namespace haulout::agent {

struct BottlerocketStatus {
  enum class State { idle, available, staged, ready };
  // The result of the last command. Commands are asynchronous; a new result shows that a command has ended.
  struct LastCommand {
    std::string type;       // refresh, prepare, activate, deactivate
    std::string status;     // Success, Failed, Unknown
    std::string timestamp;  // differs after each command
    std::string error;      // its stderr as one line, cut at 200 bytes
    bool operator==(const LastCommand&) const = default;
  };

  State state = State::idle;
  std::string chosen{};  // version that the settings choose from the available ones; empty if none
  std::string staged{};  // version on the other partition; empty if none
  bool staged_boots_next = false;
  std::optional<LastCommand> last{};
  bool operator==(const BottlerocketStatus&) const = default;
};

// GET /updates/status.
Result<BottlerocketStatus> decode_bottlerocket_status(std::string_view body);
// GET /os: the version that is running.
Result<std::string> decode_bottlerocket_version(std::string_view body);

}  // namespace haulout::agent
