#include "tests/worlds/fault_answers.hpp"

#include <fmt/format.h>

#include "sim/status_bodies.hpp"

namespace haulout::sim {
namespace {

constexpr const char* page =
    "<!DOCTYPE html>\n<html><head><title>Gateway</title></head><body><h1>Something went wrong</h1></body></html>\n";

http::Response html_response(int status) {
  http::Response response;
  response.status = status;
  response.headers.add("Content-Type", "text/html");
  response.body = page;
  return response;
}

const char* reason_of(int code) {
  switch (code) {
    case 400: return "BadRequest";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "NotFound";
    case 405: return "MethodNotAllowed";
    case 406: return "NotAcceptable";
    case 409: return "Conflict";
    case 410: return "Expired";
    case 413: return "RequestEntityTooLarge";
    case 415: return "UnsupportedMediaType";
    case 422: return "Invalid";
    case 429: return "TooManyRequests";
    case 503: return "ServiceUnavailable";
    case 408:
    case 504: return "Timeout";
    default: return "InternalError";
  }
}

StatusBody status_of(int code) {
  StatusBody body;
  body.code = code;
  body.reason = reason_of(code);
  body.message = "an error on the server has prevented the request from succeeding";
  return body;
}

http::Response error_response(const Fault& fault) {
  if (fault.proxy) return html_response(fault.code);
  if (fault.plain) return plain_text(fault.code, fault.code == 404 ? "404 page not found\n" : "not here, not now\n");
  return status_of(fault.code).response();
}

Error failed(Errc code, const Fault& fault, const char* usual) {
  return Error(code, (fault.words.empty() ? usual : fault.words) + std::string(" (injected)"));
}

void take_uid(Json& object) {
  if (object.contains("metadata")) object["metadata"].erase("uid");
}

}  // namespace

std::optional<Error> failure_in_place(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::refuse: return Error(Errc::unreachable, "connection refused (injected)");
    case FaultKind::crowded: return Error(Errc::unreachable, "too many connections (injected)");
    case FaultKind::reset_before: return Error(Errc::reset, "connection reset by peer (injected)");
    case FaultKind::dns:
      return failed(Errc::dns, fault, "no name server gave a usable answer for host api.example.com");
    case FaultKind::tls:
      return failed(Errc::tls, fault, "the certificate of api.example.com:6443 is not signed by the given CA");
    case FaultKind::protocol:
      return failed(Errc::protocol, fault,
                    "the answer of api.example.com:6443 cannot be used: it is not valid HTTP/1.1");
    case FaultKind::credentials: return failed(Errc::unavailable, fault, "the token file cannot be read");
    default: return std::nullopt;
  }
}

std::optional<http::Response> answer_in_place(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::html: return html_response(200);
    case FaultKind::garbage: return json_response(200, noise);
    case FaultKind::hidden_error: return json_response(200, status_of(fault.code).json());
    case FaultKind::redirect: {
      http::Response response = html_response(302);
      response.headers.add("Location", "https://login.example.com/");
      return response;
    }
    case FaultKind::server_error: return error_response(fault);
    case FaultKind::future: return too_large_revision(1'000'000, 1'000).response();
    case FaultKind::throttle: {
      http::Response response = too_many_requests(1);
      response.headers.set("Retry-After", fault.retry_after);
      return response;
    }
    default: return std::nullopt;
  }
}

std::string spoilt(FaultKind kind, std::string body) {
  if (kind == FaultKind::truncate) body.resize(body.size() / 2);
  if (kind != FaultKind::no_kind && kind != FaultKind::no_uid) return body;
  Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) return body;
  Json& object = json.contains("type") && json.contains("object") ? json["object"] : json;
  if (kind == FaultKind::no_kind) {
    object.erase("kind");
  } else {
    take_uid(object);
    if (object.contains("items"))
      for (Json& item : object["items"]) take_uid(item);
  }
  return json.dump() + "\n";
}

std::string error_event(const Fault& fault) {
  return fmt::format("{{\"type\":\"ERROR\",\"object\":{}}}\n", status_of(fault.code).json());
}

}  // namespace haulout::sim
