// Counts the requests that went to the wire by Kubernetes verb, for the report, and remembers what was denied last, so
// that the missing RBAC rule can be named.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "drain/report.hpp"
#include "http/message.hpp"

namespace haulout::agent {

// What the API server's authorizer sees in a request.
struct RequestInfo {
  std::string verb;  // get, list, watch, create, update, patch, delete, deletecollection
  std::string group;
  std::string resource;
  std::string subresource;
  std::string ns;
  std::string name;
  bool operator==(const RequestInfo&) const = default;
};
// Pure. A target outside /api and /apis has only a verb.
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
