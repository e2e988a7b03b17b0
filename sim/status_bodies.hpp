// Builds the responses of the simulated API server: metav1.Status bodies and their headers, byte for byte equal to the
// real server's. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/message.hpp"
#include "sim/objects.hpp"

namespace haulout::sim {

struct StatusBody {
  struct Cause {
    std::string reason;
    std::string message;
    std::string field;
  };
  int code = 500;
  std::string reason;
  std::string message;
  // The fields from `name` to `retry_after` are those of `details` in the body.
  std::string name;
  std::string group;
  std::string kind;
  std::vector<Cause> causes;
  int retry_after = 0;           // if not 0, the response also has the header Retry-After
  bool empty_details = false;    // true if the body has "details":{}
  std::string continue_token;    // metadata.continue of the body
  bool from_authorizer = false;  // true if the response has the header X-Content-Type-Options: nosniff

  std::string json() const;  // the body, without a final newline
  http::Response response() const;
};

http::Response json_response(int status, std::string json);
// Returns a Status of success: {"kind":"Status",…,"status":"Success","code":201}.
http::Response success(int code);
http::Response plain_text(int status, std::string body);

// Adds a Warning header for each problem of a request that the server has carried out in spite of it.
void add_warnings(http::Response& response, const std::vector<std::string>& problems);

StatusBody not_found(const ResourceInfo& info, std::string_view name);
StatusBody already_exists(const ResourceInfo& info, std::string_view name);
StatusBody modified_conflict(const ResourceInfo& info, std::string_view name);
// Returns the response to a delete whose precondition does not hold. `what` is "UID" or "ResourceVersion".
StatusBody precondition_conflict(const ResourceInfo& info, std::string_view name, std::string_view what,
                                 std::string_view wanted, std::string_view actual);
StatusBody bad_request(std::string message);
StatusBody invalid(const ResourceInfo& info, std::string_view name, std::string_view problem);
StatusBody namespace_terminating(const ResourceInfo& info, std::string_view name, std::string_view ns);
StatusBody method_not_allowed();
StatusBody unsupported_media_type();
StatusBody forbidden_by_rbac(std::string_view user, std::string_view verb, const ResourceInfo& info,
                             std::string_view subresource, std::string_view ns, std::string_view name);
StatusBody expired_list();
StatusBody expired_continue(std::string token);
StatusBody too_large_revision(std::uint64_t wanted, std::uint64_t current);
StatusBody unauthorized();
StatusBody shutting_down();
// Returns the text/plain response of a server that shuts down and runs with --shutdown-send-retry-after.
http::Response try_again_later();
// Returns the text/plain response (429) by which API Priority and Fairness throttles a client.
http::Response too_many_requests(int retry_after);

}  // namespace haulout::sim
