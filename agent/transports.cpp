#include "agent/transports.hpp"

namespace haulout::agent {

Task<http::Response> WatchedTransport::round_trip(http::Request request, TimePoint deadline) {
  const TimePoint began = clock_.now();
  const std::string method = request.method;
  const std::string target = request.target;
  auto response = co_await inner_.round_trip(std::move(request), bounded(deadline));
  note(method, target, began, response ? response->status : 0,
       response ? std::nullopt : std::optional(response.error()));
  co_return response;
}

Task<std::unique_ptr<http::BodyStream>> WatchedTransport::open(http::Request request, TimePoint deadline) {
  const TimePoint began = clock_.now();
  const std::string method = request.method;
  const std::string target = request.target;
  auto stream = co_await inner_.open(std::move(request), bounded(deadline));
  note(method, target, began, stream ? (*stream)->head().status : 0,
       stream ? std::nullopt : std::optional(stream.error()));
  co_return stream;
}

TimePoint WatchedTransport::bounded(TimePoint deadline) const {
  return request_timeout_ ? std::min(deadline, saturating_add(clock_.now(), *request_timeout_)) : deadline;
}

void WatchedTransport::note(const std::string& method, const std::string& target, TimePoint began, int status,
                            std::optional<Error> error) {
  tell_({method, target, status, error ? error->code() : Errc{}});
  if (!log_.enabled(Severity::info)) return;
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.now() - began);
  Log::Fields fields = {{"method", method}, {"target", target}, {"ms", std::to_string(took.count())}};
  if (!error) {
    fields.emplace_back("status", std::to_string(status));
  } else {
    fields.emplace_back("error", error->message());
  }
  log_.write(Severity::info, "request", fields);
}

}  // namespace haulout::agent
