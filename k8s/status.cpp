#include "k8s/status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "k8s/codec_json.hpp"

namespace haulout::k8s {
namespace {

using codec::Json;
using codec::Object;
using codec::Problem;

// A Status has a few hundred bytes. So a successful response that is larger than this is an object or a list. It is not
// searched for a Status, because that would parse it twice.
constexpr std::size_t largest_status = std::size_t{64} * 1024;
constexpr std::size_t longest_excerpt = 200;

std::string_view phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return "";
  }
}

std::string sentence(int code, std::string_view message) {
  return fmt::format("the server answered {}{}{}", status_words(code), message.empty() ? "" : ": ", message);
}

bool is_success(int status) {
  return status >= 200 && status <= 299;
}

bool is_html(const http::Headers& headers, std::string_view body) {
  std::string type(headers.find("Content-Type").value_or(""));
  std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) { return std::tolower(c); });
  if (type.starts_with("text/html")) return true;
  const auto first = body.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && body[first] == '<';
}

std::string first_line(std::string_view body) {
  const auto begin = body.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  body.remove_prefix(begin);
  std::string line(body.substr(0, std::min(body.find_first_of("\r\n"), longest_excerpt)));
  return line;
}

// Returns whether the JSON is a Status that says Failure. Its kind may be absent: kube-apiserver's own timeout filter
// writes a Status without kind (as text/plain).
bool is_failure_status(const Json& json) {
  Problem problem;
  const Object status(json, "Status", problem);
  const auto kind = status.string("kind");
  return (kind.empty() || kind == "Status") && status.string("status") == "Failure" && problem.text.empty();
}

std::optional<codec::Document> failure_status(std::string_view body) {
  if (body.find("\"Failure\"") == std::string_view::npos) return std::nullopt;
  auto json = codec::parse(body);
  if (!json || !is_failure_status(**json)) return std::nullopt;
  return *std::move(json);
}

// Converts a Status to an Error. The HTTP code of the response takes precedence over the code in the body, unless the
// HTTP code is a success.
Error status_error(int code, const Json& json) {
  Error error = codec::error_of(json);
  if (!is_success(code) && error.peer->code != code) {
    Error again(Errc::status, sentence(code, error.peer->message));
    again.peer = std::move(error.peer);
    again.retry_after = error.retry_after;
    again.peer->code = code;
    return again;
  }
  return error;
}

Error unstructured_error(int code, const http::Headers& headers, std::string_view body) {
  std::string message = is_html(headers, body)
                            ? "an HTML page, so a proxy or a login page answered instead of the API server"
                            : first_line(body);
  if (code >= 300 && code <= 399)
    message = headers.find("Location")
                  ? fmt::format("a redirect to {}, which Haulout does not follow; check the address of the server",
                                *headers.find("Location"))
                  : "a redirect without an address; check the address of the server";
  Error error(Errc::status, sentence(code, message));
  error.peer.emplace();
  error.peer->code = code;
  error.peer->message = std::move(message);
  return error;
}

std::optional<Error> failure(int code, const http::Headers& headers, std::string_view body, WallTime wall) {
  if (is_success(code) && is_html(headers, body)) {
    return codec::decode_error(
        fmt::format("the answer {} is an HTML page: a proxy or a login page answered instead of the API server", code));
  }
  if (is_success(code) && body.size() > largest_status) return std::nullopt;
  const auto status = failure_status(body);
  if (is_success(code) && !status) return std::nullopt;
  Error error = status ? status_error(code, **status) : unstructured_error(code, headers, body);
  if (const auto asked = http::retry_after(headers, std::chrono::floor<std::chrono::seconds>(wall))) {
    error.retry_after = asked;
  }
  return error;
}

// Returns whether the error has this reason. The HTTP code counts only if there is no reason, as in the response of a
// proxy: the reason is more precise.
bool says(const Error& error, std::string_view reason, int code) {
  if (!error.peer) return false;
  return error.peer->reason.empty() ? error.peer->code == code : error.peer->reason == reason;
}

}  // namespace

Error codec::error_of(const Json& status) {
  Problem problem;
  const Object json(status, "Status", problem);
  PeerStatus peer;
  peer.structured = true;
  peer.code = json.integer32("code");
  peer.reason = json.string("reason");
  peer.message = json.string("message");
  peer.continue_token = json.object("metadata").string("continue");
  const auto details = json.object("details");
  peer.kind = details.string("kind");
  peer.name = details.string("name");
  details.each("causes", [&](const Object& cause) {
    peer.causes.push_back({cause.string("reason"), cause.string("message"), cause.string("field")});
  });
  const auto retry_seconds = details.integer("retryAfterSeconds").value_or(0);
  // A Status without a code counts as 500, because it stands for a failure.
  if (peer.code == 0) peer.code = 500;
  Error error(Errc::status, sentence(peer.code, peer.message));
  error.peer = std::move(peer);
  // The upper bound of retryAfterSeconds only prevents overflows. Backoff has its own limit.
  if (retry_seconds > 0) error.retry_after = std::chrono::seconds(std::min<std::int64_t>(retry_seconds, 86'400));
  return error;
}

std::optional<Error> failure_of(const http::Response& response, WallTime wall) {
  return failure(response.status, response.headers, response.body, wall);
}

std::optional<Error> failure_of(const http::ResponseHead& head, std::string_view body, WallTime wall) {
  return failure(head.status, head.headers, body, wall);
}

Error error_of_status(std::string_view json) {
  const auto parsed = codec::parse(json);
  if (!parsed) return parsed.error();
  const auto checked = codec::check_kind(**parsed, "Status");
  if (!checked) return checked.error();
  return codec::error_of(**parsed);
}

std::string status_words(int code) {
  const std::string_view name = phrase(code);
  return fmt::format("{}{}{}", code, name.empty() ? "" : " ", name);
}

bool is_not_found(const Error& error) {
  return says(error, "NotFound", 404);
}

bool is_gone(const Error& error) {
  return is_not_found(error) && error.peer && error.peer->structured;
}

bool is_conflict(const Error& error) {
  return says(error, "Conflict", 409);
}

bool is_already_exists(const Error& error) {
  return error.peer && error.peer->reason == "AlreadyExists";
}

bool is_expired(const Error& error) {
  return says(error, "Expired", 410) || says(error, "Gone", 410);
}

bool is_forbidden(const Error& error) {
  return says(error, "Forbidden", 403);
}

bool is_unauthorized(const Error& error) {
  return says(error, "Unauthorized", 401);
}

bool is_too_many_requests(const Error& error) {
  return says(error, "TooManyRequests", 429);
}

// Looks at the text of the message, as drain/eviction_verdict.cpp does for other refusals. Authorizer and admission
// both answer 403 with reason Forbidden, and nothing else in the body distinguishes them. (The authorizer's response
// also has the header X-Content-Type-Options: nosniff, but an Error has no headers.) The authorizer's message has had
// this form since Kubernetes 1.6: `pods is forbidden: User "x" cannot list resource …`, `forbidden: User "x" cannot get
// path …`.
bool is_denied_by_rbac(const Error& error) {
  if (!is_forbidden(error) || !error.peer->structured || !error.peer->causes.empty()) return false;
  const std::string_view message = error.peer->message;
  // The message of a webhook's denial has this prefix. The rest is the webhook's own text, which may contain anything.
  if (message.starts_with("admission webhook ")) return false;
  const auto user = message.find("forbidden: User \"");
  return user != std::string_view::npos && message.find("\" cannot ", user) != std::string_view::npos;
}

bool is_transient(const Error& error) {
  switch (error.code()) {
    case Errc::timeout:
    case Errc::dns:
    case Errc::unreachable:
    case Errc::tls:
    case Errc::reset:
    case Errc::protocol:
    case Errc::decode: return true;
    case Errc::status: break;
    case Errc::unavailable:
    case Errc::invalid: return false;
  }
  const int code = error.peer->code;
  // 423 and 425 come from proxies. 501 and 505 are permanent.
  if (code == 408 || code == 423 || code == 425 || code == 429) return true;
  return code >= 500 && code != 501 && code != 505;
}

}  // namespace haulout::k8s
