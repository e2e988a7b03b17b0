// The bodies of the FleetLock protocol, as coreos/zincati documents it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/message.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// {"client_params":{"id":…,"group":…}}
std::string encode_fleetlock_request(std::string_view id, std::string_view group);

// What the server says against it, in its own words; fit for one line.
struct FleetLockRefusal {
  int status = 0;     // HTTP
  std::string kind;   // "lock_held", …: each server has its own
  std::string value;  // a sentence for people
};
// Nothing: done (200, and no page for people). An error is an answer that no FleetLock server gives: Errc::decode or
// Errc::status.
Result<std::optional<FleetLockRefusal>> judge_fleetlock_answer(const http::Response& response, WallTime now);

}  // namespace haulout::agent
