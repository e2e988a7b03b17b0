// Converts an unsuccessful HTTP answer into an Error. It uses the server's Status if the body is one, otherwise the
// HTTP code and the first line of the body. It also finds failures inside a 2xx: HTML, and a Status that says Failure.
// Pure.
#pragma once

#include <optional>
#include <string_view>

#include "http/message.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::k8s {

// Returns nothing if the answer is a success whose body may be decoded. `wall` is needed for a Retry-After that is a
// date.
std::optional<Error> failure_of(const http::Response& response, WallTime wall);
// Converts the Status object in `json` (the object of an ERROR line of a watch).
Error error_of_status(std::string_view json);
// Likewise for the head of an answer that should begin a watch. `body` is the part of the body that has been read, for
// a failure.
std::optional<Error> failure_of(const http::ResponseHead& head, std::string_view body, WallTime wall);

// "404 Not Found", as in a status line.
std::string status_words(int code);

// Predicates. They use the reason of the Status, and the HTTP code only if there is no reason.
bool is_not_found(const Error& error);
// True only if the API server itself says that the object does not exist. A bare 404 may come from a proxy and does not
// mean that.
bool is_gone(const Error& error);
bool is_conflict(const Error& error);
// HTTP code 409, too, but not a conflict: an object of that name exists. False for an answer without a reason.
bool is_already_exists(const Error& error);
bool is_expired(const Error& error);  // 410: the caller has to list again
bool is_forbidden(const Error& error);
bool is_unauthorized(const Error& error);
// True if an authorizer has refused the request, not admission: "User … cannot …".
bool is_denied_by_rbac(const Error& error);
bool is_too_many_requests(const Error& error);
// True if the same request is worth sending again after a wait: transport failures, 408, 429, 5xx, truncated answers.
bool is_transient(const Error& error);

}  // namespace haulout::k8s
