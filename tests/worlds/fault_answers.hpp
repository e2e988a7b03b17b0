// Answers that a fault injects, and answers that it changes. Pure.
#pragma once

#include <optional>
#include <string>

#include "http/message.hpp"
#include "retry/task.hpp"
#include "tests/worlds/faults.hpp"

namespace haulout::sim {

// Bytes that no reader accepts as JSON.
inline constexpr const char* noise = "\x16\x03\x01{]\xff\n";

// Returns the error of a request that a fault keeps from reaching the server; nullopt for other faults.
std::optional<Error> failure_in_place(const Fault& fault);
// Returns an answer that replaces the server's: from a proxy, or from the server before it handles the request. Returns
// nullopt for other faults.
std::optional<http::Response> answer_in_place(const Fault& fault);
// Returns what arrives of the server's text: the body of an answer, or a line of a watch. Unchanged for most kinds.
std::string spoilt(FaultKind kind, std::string body);
// Returns a line of a watch: an ERROR event with `fault.code`.
std::string error_event(const Fault& fault);

}  // namespace haulout::sim
