// Counts the requests that were sent, by Kubernetes verb, for the report. Also remembers the last denied request, so
// that a message can name the missing RBAC rule.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "drain/report.hpp"
#include "http/message.hpp"

namespace haulout::agent {

// The attributes of a request that the API server's authorizer checks.
struct RequestInfo {
  std::string verb;  // get, list, watch, create, update, patch, delete, deletecollection
  std::string group;
  std::string resource;
  std::string subresource;
  std::string ns;
  std::string name;
  bool operator==(const RequestInfo&) const = default;
};
// Pure. A target outside of /api and /apis has only a verb.
RequestInfo describe_request(std::string_view method, std::string_view target);

class RequestLedger {
 public:
  void count(const http::Request& request);
  void denied(RequestInfo info) { last_denied_ = std::move(info); }

  const drain::RequestCounts& counts() const { return counts_; }
  const std::optional<RequestInfo>& last_denied() const { return last_denied_; }

 private:
  drain::RequestCounts counts_;
  std::optional<RequestInfo> last_denied_;
};

drain::RequestCounts difference(const drain::RequestCounts& later, const drain::RequestCounts& earlier);
void add(drain::RequestCounts& total, const drain::RequestCounts& more);

}  // namespace haulout::agent
