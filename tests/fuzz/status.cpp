#include "k8s/status.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

// The first three bytes of the first line determine the status code. The second line is the content type, the third
// Retry-After. The rest is the body.
static void one(std::string_view input) {
  const std::string_view code = take_line(input);
  http::Response response;
  response.status = 100;
  for (const char c : code.substr(0, 3)) response.status += static_cast<unsigned char>(c);
  response.headers.set("Content-Type", take_line(input));
  response.headers.set("Retry-After", take_line(input));
  response.body = std::string(input);
  const WallTime now = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);
  const auto failure = k8s::failure_of(response, now);
  must(failure.has_value() || (response.status >= 200 && response.status < 300), "a failure is never read as success");
  if (failure) must(!failure->message().empty(), "a failure says what it is");
  const http::ResponseHead head{response.status, response.headers};
  std::ignore = k8s::failure_of(head, response.body, now);
  must(!k8s::error_of_status(input).message().empty(), "a Status that is an error says what it is");
}

static const Target target("status", one);

}  // namespace haulout::fuzz
