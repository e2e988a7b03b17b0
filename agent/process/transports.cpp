#include "agent/process/transports.hpp"

#include <fmt/format.h>

#include "k8s/status.hpp"
#include "k8s/warnings.hpp"

namespace haulout::agent {

namespace {

// The parts of a request's target: whether it addresses a resource, the API group, and the segments after "/api/v1" or
// "/apis/GROUP/VERSION". The path of the server's URL may precede "/api" or "/apis".
struct Path {
  bool resource = false;
  std::string group;
  std::vector<std::string> segments;
};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end != 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

Path parse_path(std::string_view path) {
  Path result;
  const std::vector<std::string> parts = split(path, '/');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool core = parts[i] == "api" && i + 2 < parts.size();
    const bool grouped = parts[i] == "apis" && i + 3 < parts.size();
    if (!core && !grouped) continue;
    result.resource = true;
    if (grouped) result.group = parts[i + 1];
    result.segments.assign(parts.begin() + static_cast<std::ptrdiff_t>(i + (core ? 2 : 3)), parts.end());
    break;
  }
  return result;
}

bool asks_to_watch(std::string_view query) {
  for (const std::string& parameter : split(query, '&'))
    if (parameter == "watch" || parameter == "watch=1" || parameter == "watch=true") return true;
  return false;
}

std::string verb_of(std::string_view method, bool named, bool watch) {
  if (method == "POST") return "create";
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE") return named ? "delete" : "deletecollection";
  if (watch) return "watch";
  return named ? "get" : "list";
}

}  // namespace

RequestInfo describe_request(std::string_view method, std::string_view target) {
  const std::size_t question = std::min(target.find('?'), target.size());
  const std::string_view query = target.substr(std::min(question + 1, target.size()));
  Path path = parse_path(target.substr(0, question));
  RequestInfo info;
  if (!path.resource) {
    info.verb = verb_of(method, true, false);
    return info;
  }
  std::vector<std::string>& segments = path.segments;
  info.group = path.group;
  if (segments.size() > 2 && segments[0] == "namespaces") {
    info.ns = segments[1];
    segments.erase(segments.begin(), segments.begin() + 2);
  }
  if (!segments.empty()) info.resource = segments[0];
  if (segments.size() > 1) info.name = segments[1];
  if (segments.size() > 2) info.subresource = segments[2];
  info.verb = verb_of(method, !info.name.empty(), asks_to_watch(query));
  return info;
}

void CountingTransport::count(const http::Request& request) {
  ++counts_.total;
  ++counts_.by_verb[describe_request(request.method, request.target).verb];
}

Task<http::Response> CountingTransport::round_trip(http::Request request, TimePoint deadline) {
  count(request);
  return inner_.round_trip(std::move(request), deadline);
}

Task<std::unique_ptr<http::BodyStream>> CountingTransport::open(http::Request request, TimePoint deadline) {
  count(request);
  return inner_.open(std::move(request), deadline);
}

void ServerWarnings::see(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (told_.contains(text)) continue;
    if (told_.size() == most_remembered) told_.clear();
    told_.insert(text);
    ++count_;
    tell_(text);
  }
}

namespace {

std::int64_t milliseconds(Duration took) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
}

}  // namespace

Task<http::Response> WatchedTransport::round_trip(http::Request request, TimePoint deadline) {
  const TimePoint began = clock_.now();
  RequestEnd end{request.method, request.target};
  auto response = co_await inner_.round_trip(std::move(request), bounded(deadline));
  if (response) {
    end.status = response->status;
    end.warnings = k8s::warnings_of(response->headers);
  }
  note(std::move(end), began, response ? std::nullopt : std::optional(response.error()));
  co_return response;
}

Task<std::unique_ptr<http::BodyStream>> WatchedTransport::open(http::Request request, TimePoint deadline) {
  const TimePoint began = clock_.now();
  RequestEnd end{request.method, request.target};
  auto stream = co_await inner_.open(std::move(request), bounded(deadline));
  if (stream) {
    end.status = (*stream)->head().status;
    end.warnings = k8s::warnings_of((*stream)->head().headers);
  }
  note(std::move(end), began, stream ? std::nullopt : std::optional(stream.error()));
  co_return stream;
}

TimePoint WatchedTransport::bounded(TimePoint deadline) const {
  return request_timeout_ ? std::min(deadline, saturating_add(clock_.now(), *request_timeout_)) : deadline;
}

void WatchedTransport::note(RequestEnd end, TimePoint began, const std::optional<Error>& error) {
  if (error) end.failure = error->code();
  tell_(end);
  if (!log_.enabled(Severity::info)) return;
  const Duration took = clock_.now() - began;
  if (!server_.empty()) return log_as_kubectl(end, took);
  Log::Fields fields = {{"method", end.method}, {"target", end.target}, {"ms", std::to_string(milliseconds(took))}};
  if (!error) {
    fields.emplace_back("status", std::to_string(end.status));
  } else {
    fields.emplace_back("error", error->message());
  }
  log_.write(Severity::info, "request", fields);
}

void WatchedTransport::log_as_kubectl(const RequestEnd& end, Duration took) {
  log_.write(Severity::info,
             fmt::format("\"Response\" verb=\"{}\" url=\"{}{}\" status=\"{}\" milliseconds={}", end.method, server_,
                         end.target, end.status == 0 ? "" : k8s::status_words(end.status), milliseconds(took)));
}

}  // namespace haulout::agent
