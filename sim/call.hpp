// One request to the simulated API server, parsed into verb, object and options, the strict decoding of its body, and
// its entry in the audit log. Pure.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.hpp"
#include "retry/clock.hpp"
#include "sim/objects.hpp"

namespace haulout::sim {

struct Call {
  http::Request request;
  std::string path;
  std::map<std::string, std::string> query;
  const ResourceInfo* info = nullptr;  // nullptr if the path names no resource of the table
  std::string ns;
  std::string name;
  std::string subresource;
  std::string verb;  // get, list, watch, create, update, patch, delete, deletecollection

  std::string option(const std::string& key) const {
    const auto found = query.find(key);
    return found == query.end() ? std::string() : found->second;
  }
  bool truthy(const std::string& key) const {
    const std::string value = option(key);
    return value == "1" || value == "true";
  }
  // Returns true if the request is a dry run. The query option says that, but a DELETE with a body has all its options
  // in the body, as on the real server.
  bool is_dry_run() const;
  Key key() const { return {std::string(info->resource), ns, name}; }
  std::string header(std::string_view header_name) const {
    return std::string(request.headers.find(header_name).value_or(""));
  }
  // Returns the token of the Authorization header; empty without that header.
  std::string bearer_token() const;
  // Returns the field manager of a write, for managedFields: ?fieldManager=, or else the User-Agent up to the first
  // "/".
  std::string manager() const;
};

// Sends the response to a call. Must be called exactly once.
using Reply = std::function<void(http::Response)>;

// Parses the path, query and method of the request. Never fails: `info` is nullptr for an unknown path.
Call parse_call(http::Request request);

// The entry of a request in the audit log of the API server.
struct AuditEntry {
  TimePoint time;      // when the request arrived at the server
  TimePoint answered;  // when the server responded; for a watch, when it sent the head
  std::string verb, resource, subresource, ns, name;
  std::string query;  // query string as sent
  std::string uid;    // UID in the preconditions of the request body; may be empty
  std::optional<std::int64_t> grace_seconds;
  bool dry_run = false;
  std::string user;
  std::string user_agent;
  int status = 0;  // HTTP status; 0 until the server responds
  // True if the request was a write, but not a dry run, and the server responded with 2xx. Also true for a repeated
  // eviction and for a patch without effect.
  bool applied = false;

  // Returns the entry as one line for traces: "create pods/eviction shop/web-0 201".
  std::string text() const;
};

// Returns the entry of a request by `user` that has arrived at `now` and has no response yet.
AuditEntry entry_of(const Call& call, std::string user, TimePoint now);

// Strict decoding as in the API server: finds unknown and duplicate fields in request bodies. Pure.

// Parses the text. Returns nullopt if it is not JSON. Appends `duplicate field "a.b"` to `duplicates` for each
// duplicate field.
std::optional<Json> parse_json(std::string_view text, std::vector<std::string>* duplicates);

// The three functions below return `unknown field "a.b"` for each field of the body that its kind does not have.
std::vector<std::string> unknown_eviction_fields(const Json& body);
std::vector<std::string> unknown_delete_options_fields(const Json& body);
// Checks Nodes, Leases, Events and ConfigMaps, and patches of these. Returns an empty list for other kinds.
std::vector<std::string> unknown_fields(const ResourceInfo& info, const Json& body);

}  // namespace haulout::sim
