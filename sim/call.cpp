#include "sim/call.hpp"

#include <fmt/format.h>

#include <charconv>

namespace haulout::sim {

namespace {

std::string percent_decode(std::string_view text, bool plus_is_space) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ptr == text.data() + i + 3) {
      result += static_cast<char>(value);
      i += 2;
    } else {
      result += text[i] == '+' && plus_is_space ? ' ' : text[i];
    }
  }
  return result;
}

std::vector<std::string> segments(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    path.remove_prefix(1);
    const auto end = std::min(path.find('/'), path.size());
    if (end > 0) parts.push_back(percent_decode(path.substr(0, end), false));
    path.remove_prefix(end);
  }
  return parts;
}

void parse_query(std::string_view query, std::map<std::string, std::string>& into) {
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    const auto equals = std::min(pair.find('='), pair.size());
    into.emplace(percent_decode(pair.substr(0, equals), true),
                 percent_decode(pair.substr(std::min(equals + 1, pair.size())), true));
    query.remove_prefix(std::min(end + 1, query.size()));
  }
}

// Parses the path: /api/v1/… or /apis/GROUP/VERSION/…, then [namespaces/NS/]RESOURCE[/NAME[/SUBRESOURCE]].
void parse_resource(const std::vector<std::string>& parts, Call& call) {
  std::string group;
  std::size_t next = 2;
  if (parts.size() > 3 && parts[0] == "apis") {
    group = parts[1];
    next = 3;
  } else if (parts.size() < 3 || parts[0] != "api" || parts[1] != "v1") {
    return;
  }
  if (parts[next] == "namespaces" && parts.size() > next + 2 && find_resource(group, parts[next + 2])) {
    call.ns = parts[next + 1];
    next += 2;
  }
  call.info = find_resource(group, parts[next]);
  if (parts.size() > next + 1) call.name = parts[next + 1];
  if (parts.size() > next + 2) call.subresource = parts[next + 2];
}

std::string verb_of(const Call& call) {
  const std::string& method = call.request.method;
  if (method == "POST") return "create";
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE") return call.name.empty() ? "deletecollection" : "delete";
  if (call.truthy("watch")) return "watch";
  return call.name.empty() ? "list" : "get";
}

}  // namespace

std::string Call::bearer_token() const {
  constexpr std::string_view scheme = "Bearer ";
  const std::string authorization = header("Authorization");
  return authorization.starts_with(scheme) ? authorization.substr(scheme.size()) : std::string();
}

std::string Call::manager() const {
  std::string named = option("fieldManager");
  if (!named.empty()) return named;
  const std::string agent = header("User-Agent");
  return agent.substr(0, agent.find('/'));
}

Call parse_call(http::Request request) {
  Call call;
  call.request = std::move(request);
  const std::string_view target = call.request.target;
  const auto question = std::min(target.find('?'), target.size());
  call.path = target.substr(0, question);
  parse_query(target.substr(std::min(question + 1, target.size())), call.query);
  parse_resource(segments(call.path), call);
  call.verb = verb_of(call);
  return call;
}

bool Call::is_dry_run() const {
  if (verb != "delete" || request.body.empty()) return !option("dryRun").empty();
  return !at(Json::parse(request.body, nullptr, false), "/dryRun").empty();
}

std::string AuditEntry::text() const {
  std::string result = verb + " " + resource;
  if (!subresource.empty()) result += "/" + subresource;
  if (!name.empty()) result += " " + (ns.empty() ? name : ns + "/" + name);
  return result + fmt::format(" {}", status);
}

AuditEntry entry_of(const Call& call, std::string user, TimePoint now) {
  AuditEntry entry;
  entry.user = std::move(user);
  entry.time = entry.answered = now;
  entry.verb = call.verb;
  entry.resource = call.info ? std::string(call.info->resource) : call.path;
  entry.subresource = call.subresource;
  entry.ns = call.ns;
  entry.name = call.name;
  const auto question = call.request.target.find('?');
  if (question != std::string::npos) entry.query = call.request.target.substr(question + 1);
  entry.user_agent = call.header("User-Agent");
  entry.dry_run = call.is_dry_run();
  if (call.request.body.empty()) return entry;
  const Json body = Json::parse(call.request.body, nullptr, false);
  const Json& options = call.subresource == "eviction" ? at(body, "/deleteOptions") : body;
  entry.uid = text(options, "/preconditions/uid");
  if (at(options, "/gracePeriodSeconds").is_number()) entry.grace_seconds = number(options, "/gracePeriodSeconds");
  if (call.subresource == "eviction" && !at(options, "/dryRun").empty()) entry.dry_run = true;
  return entry;
}

}  // namespace haulout::sim
