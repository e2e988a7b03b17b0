// What a process does with each request to the API server: WatchedTransport limits and logs it, CountingTransport
// counts it, DeniedRequest remembers the last one that was denied, ServerWarnings reports the warnings in the response.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process/logging.hpp"
#include "drain/report.hpp"
#include "http/message.hpp"
#include "http/transport.hpp"

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
// Returns the attributes of a request. A target outside of /api and /apis has only a verb. Pure.
RequestInfo describe_request(std::string_view method, std::string_view target);

// The last request that was denied, so that a message can name the missing RBAC rule.
using DeniedRequest = std::optional<RequestInfo>;

// Counts the requests that pass, by Kubernetes verb, for the report of a drain. Borrows `inner`.
class CountingTransport final : public http::Transport {
 public:
  explicit CountingTransport(http::Transport& inner) : inner_(inner) {}

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override;
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override;

  const drain::RequestCounts& counts() const { return counts_; }

 private:
  void count(const http::Request& request);

  http::Transport& inner_;
  drain::RequestCounts counts_;
};

// Reports each different warning of the API server (k8s/warnings.hpp) once. Uses bounded memory: after 200 different
// texts it discards them all, and may report one again.
class ServerWarnings {
 public:
  explicit ServerWarnings(std::function<void(const std::string& text)> tell) : tell_(std::move(tell)) {}

  void see(const std::vector<std::string>& texts);
  // Returns the number of warnings reported so far.
  std::size_t count() const { return count_; }

 private:
  static constexpr std::size_t most_remembered = 200;

  std::function<void(const std::string&)> tell_;
  std::set<std::string> told_;
  std::size_t count_ = 0;
};

// The result of a request.
struct RequestEnd {
  std::string method{};
  std::string target{};
  int status = 0;  // 0 if there was no response
  Errc failure{};  // the error if there was no response
  std::vector<std::string> warnings{};
};

// Transport decorator: limits each request to --request-timeout, and logs it (method, target, status, milliseconds;
// never headers or bodies). It also reports to `tell` how the request ended and which warnings the server sent. Borrows
// the inner transport, the clock and the log. Errors and cancellation are those of the inner transport; a request that
// exceeds its limit fails as at its deadline.
class WatchedTransport final : public http::Transport {
 public:
  // `server` is the URL without path; if it is not empty, requests are logged in kubectl's format.
  WatchedTransport(http::Transport& inner, Clock& clock, Log& log, std::function<void(const RequestEnd&)> tell,
                   std::optional<Duration> request_timeout, std::string server = {})
      : inner_(inner),
        clock_(clock),
        log_(log),
        tell_(std::move(tell)),
        request_timeout_(request_timeout),
        server_(std::move(server)) {}

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override;
  // Sends a request. The time limit and the result apply only to the head of the response, because a watch is meant to
  // last.
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override;

 private:
  TimePoint bounded(TimePoint deadline) const;
  void note(RequestEnd end, TimePoint began, const std::optional<Error>& error);
  void log_as_kubectl(const RequestEnd& end, Duration took);

  http::Transport& inner_;
  Clock& clock_;
  Log& log_;
  std::function<void(const RequestEnd&)> tell_;
  std::optional<Duration> request_timeout_;
  std::string server_;
};

}  // namespace haulout::agent
