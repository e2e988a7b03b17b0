// Converts an unsuccessful HTTP response into an Error. It uses the server's Status if the body is one, otherwise the
// HTTP code and the first line of the body. It also finds failures inside a 2xx: HTML, and a Status that says Failure.
// Pure.
#pragma once

#include <optional>
#include <string_view>

#include "http/message.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::k8s {

// Returns nullopt if the response is a success whose body may be decoded. `wall` is the current time, for a Retry-After
// that is a date.
std::optional<Error> failure_of(const http::Response& response, WallTime wall);
// Converts the Status object in `json` (the object of an ERROR line of a watch).
Error error_of_status(std::string_view json);
// As the first failure_of(), for the head of a response that should begin a watch. `body` is the part of the body that
// has been read, or empty.
std::optional<Error> failure_of(const http::ResponseHead& head, std::string_view body, WallTime wall);

// Returns code and phrase as in a status line: "404 Not Found".
std::string status_words(int code);

// Predicates. They use the reason of the Status, and the HTTP code only if there is no reason.
bool is_not_found(const Error& error);
// Returns true only if the API server itself says that the object does not exist. A 404 without a Status may come from
// a proxy and does not mean that.
bool is_gone(const Error& error);
bool is_conflict(const Error& error);
// Returns true if an object of that name exists already. The HTTP code is 409, as for a conflict, so only the reason of
// the Status counts.
bool is_already_exists(const Error& error);
bool is_expired(const Error& error);  // 410: the caller has to list again
bool is_forbidden(const Error& error);
bool is_unauthorized(const Error& error);
// Returns true if an authorizer has denied the request ("User … cannot …"), not admission.
bool is_denied_by_rbac(const Error& error);
bool is_too_many_requests(const Error& error);
// Returns true if the same request is worth sending again after a wait: transport failures, responses that cannot be
// decoded (they may be truncated), 408, 423, 425, 429, and 5xx except 501 and 505.
bool is_transient(const Error& error);

}  // namespace haulout::k8s
