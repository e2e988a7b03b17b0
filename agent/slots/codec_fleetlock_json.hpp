// Encodes requests and decodes responses of the FleetLock protocol, as coreos/zincati documents it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/message.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// Returns {"client_params":{"id":…,"group":…}}.
std::string encode_fleetlock_request(std::string_view id, std::string_view group);

// The reason why the server refuses a request, in the server's words. Control characters are removed, so that it fits
// on one line.
struct FleetLockRefusal {
  int status = 0;     // HTTP status
  std::string kind;   // "lock_held", …; each server has its own words
  std::string value;  // a sentence for people
};
// Returns nothing if the request succeeded: status 200, and the body is not an HTML page. Returns a refusal if the
// server sent one. Fails with Errc::decode or Errc::status for responses that no FleetLock server gives.
Result<std::optional<FleetLockRefusal>> judge_fleetlock_answer(const http::Response& response, WallTime now);

}  // namespace haulout::agent
