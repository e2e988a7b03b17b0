// An HTTP answer that is no success, as an Error: the server's Status if the body is one, otherwise the code and the
// first line of whatever came. Also finds the failures that hide in a 2xx: HTML, and a Status that says Failure. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "http/message.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::k8s {

// Nothing when the answer is a success whose body may be decoded. `wall` resolves a Retry-After date.
std::optional<Error> failure_of(const http::Response& response, WallTime wall);
// The Status object in `json` (the object of a watch's ERROR line).
Error error_of_status(std::string_view json);
// What is wrong with a head that should begin a watch; the body of a failure is given as far as it was read.
std::optional<Error> failure_of(const http::ResponseHead& head, std::string_view body, WallTime wall);

// "404 Not Found", as a status line has it.
std::string status_words(int code);

// Predicates; reason first, code only when the reason says nothing.
bool is_not_found(const Error& error);
// The API server itself says so: the bare 404 of something on the way does not mean that an object has gone.
bool is_gone(const Error& error);
bool is_conflict(const Error& error);
// 409, too, but no conflict: something of that name is there. Never said of an answer without a reason.
bool is_already_exists(const Error& error);
bool is_expired(const Error& error);  // 410: start again with a list
bool is_forbidden(const Error& error);
bool is_unauthorized(const Error& error);
// Refused by an authorizer (not by admission): "User … cannot …".
bool is_denied_by_rbac(const Error& error);
bool is_too_many_requests(const Error& error);
// Worth sending again unchanged after a wait: transport failures, 408, 429, 5xx, truncated answers.
bool is_transient(const Error& error);

}  // namespace haulout::k8s
