// What a fault puts in the place of an answer, or makes of one. Pure.
#pragma once

#include <optional>
#include <string>

#include "http/message.hpp"
#include "retry/task.hpp"
#include "tests/worlds/faults.hpp"

namespace haulout::sim {

// Not JSON in any reader's eyes.
inline constexpr const char* noise = "\x16\x03\x01{]\xff\n";

// Of a request that never reaches the server; nothing where it does, or something else answers.
std::optional<Error> failure_in_place(const Fault& fault);
// Of something else than the server, or of the server before it has looked at the request; nothing otherwise.
std::optional<http::Response> answer_in_place(const Fault& fault);
// What arrives of what the server has sent: the body of an answer, or a line of a watch.
std::string spoilt(FaultKind kind, std::string body);
// A line of a watch.
std::string error_event(const Fault& fault);

}  // namespace haulout::sim
