#include "agent/process/transports.hpp"

#include <fmt/format.h>

#include "k8s/status.hpp"
#include "k8s/warnings.hpp"

namespace haulout::agent {
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
