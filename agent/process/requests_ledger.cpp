#include "agent/process/requests_ledger.hpp"

namespace haulout::agent {
namespace {

// The segments after "/api/v1" or "/apis/GROUP/VERSION". The server's URL can put a prefix before them.
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

void RequestLedger::count(const http::Request& request) {
  ++counts_.total;
  ++counts_.by_verb[describe_request(request.method, request.target).verb];
}

drain::RequestCounts difference(const drain::RequestCounts& later, const drain::RequestCounts& earlier) {
  drain::RequestCounts result;
  result.total = later.total - earlier.total;
  for (const auto& [verb, count] : later.by_verb) {
    const auto before = earlier.by_verb.find(verb);
    const std::uint64_t more = count - (before == earlier.by_verb.end() ? 0 : before->second);
    if (more != 0) result.by_verb[verb] = more;
  }
  return result;
}

void add(drain::RequestCounts& total, const drain::RequestCounts& more) {
  total.total += more.total;
  for (const auto& [verb, count] : more.by_verb) total.by_verb[verb] += count;
}

}  // namespace haulout::agent
