#include "agent/backends/bottlerocket_backend.hpp"

#include <fmt/format.h>

#include "agent/ports/backend.hpp"
#include "base/plain_text.hpp"
#include "base/scope_exit.hpp"

namespace haulout::agent {

namespace {

// Interval at which run() queries the status of its command, and at which a request is repeated after the HTTP status
// 423 (another update command holds the lock).
constexpr Duration poll_interval = std::chrono::seconds(1);
// Time limit of one request. The server accepts or refuses every request at once; the commands continue in the
// background.
constexpr Duration request_limit = std::chrono::seconds(10);
constexpr int locked = 423;
constexpr std::size_t body_limit = std::size_t{1} << 20;

struct ActionNames {
  const char* target;
  const char* type;  // value of cmd_type
};

ActionNames names_of(BottlerocketAction action) {
  switch (action) {
    case BottlerocketAction::refresh: return {"/actions/refresh-updates", "refresh"};
    case BottlerocketAction::prepare: return {"/actions/prepare-update", "prepare"};
    case BottlerocketAction::activate: return {"/actions/activate-update", "activate"};
  }
  return {"", ""};
}

std::string request_name(std::string_view method, std::string_view target) {
  return fmt::format("Bottlerocket's API, {} {}", method, target);
}

std::string_view meaning_of(int status, bool command) {
  if (status == locked) return "another update command holds the lock";
  if (!command) return "the request failed";
  if (status == 404) return "this update does not exist any more";
  if (status == 409) return "the state of the update does not allow this command";
  return "the command was refused";
}

Error refusal(std::string_view method, std::string_view target, const http::Response& response) {
  const std::string said = one_line(response.body);
  Error error(Errc::status, fmt::format("{}: {} (HTTP {}{}{})", request_name(method, target),
                                        meaning_of(response.status, method == "POST"), response.status,
                                        said.empty() ? "" : ": ", said));
  error.peer.emplace();
  error.peer->code = response.status;
  error.peer->message = said;
  return error;
}

bool is_success(const http::Response& response) {
  return response.status >= 200 && response.status < 300;
}

}  // namespace

Task<http::Response> BottlerocketApi::send(std::string method, std::string target, TimePoint deadline) {
  const std::string who = request_name(method, target);
  http::Request request;
  request.method = method;
  request.target = target;
  request.repeatable = method == "GET";
  for (;;) {
    const TimePoint limit = std::min(deadline, saturating_add(clock_.now(), request_limit));
    auto response = co_await transport_.round_trip(request, limit);
    if (!response) co_return std::move(response).error().with_context(who);
    if (response->status != locked) co_return std::move(*response);
    const TimePoint again = clock_.now() + poll_interval;
    if (again >= deadline) co_return Error(Errc::timeout, refusal(method, target, *response).message());
    co_await clock_.sleep_until(again);
  }
}

Task<std::string> BottlerocketApi::version(TimePoint deadline) {
  const std::string target = "/os";
  CO_TRY(const http::Response response, co_await send("GET", target, deadline));
  if (!is_success(response)) co_return refusal("GET", target, response);
  auto version = decode_bottlerocket_version(response.body);
  if (!version) co_return std::move(version).error().with_context(request_name("GET", target));
  co_return std::move(*version);
}

Task<BottlerocketStatus> BottlerocketApi::status(TimePoint deadline) {
  const std::string target = "/updates/status";
  CO_TRY(const http::Response response, co_await send("GET", target, deadline));
  if (response.status == 404) co_return BottlerocketStatus{};
  if (!is_success(response)) co_return refusal("GET", target, response);
  auto status = decode_bottlerocket_status(response.body);
  if (!status) co_return std::move(status).error().with_context(request_name("GET", target));
  co_return std::move(*status);
}

Task<BottlerocketStatus> BottlerocketApi::run(BottlerocketAction action, TimePoint deadline) {
  const ActionNames names = names_of(action);
  const std::string who = request_name("POST", names.target);
  CO_TRY(const BottlerocketStatus before, co_await status(deadline));
  CO_TRY(const http::Response accepted, co_await send("POST", names.target, deadline));
  if (!is_success(accepted)) co_return refusal("POST", names.target, accepted);
  for (;;) {
    const TimePoint look = clock_.now() + poll_interval;
    if (look >= deadline) co_return Error(Errc::timeout, who + ": the command did not finish in time");
    co_await clock_.sleep_until(look);
    CO_TRY(BottlerocketStatus now, co_await status(deadline));
    const bool same = !now.last || (before.last && now.last->timestamp == before.last->timestamp);
    if (same) continue;
    if (now.last->type != names.type)
      co_return Error(Errc::unavailable,
                      fmt::format("{}: another client ran {} at the same time", who, one_line(now.last->type)));
    if (now.last->status != "Success")
      co_return Error(Errc::unavailable, fmt::format("{}: {}: {}", who, one_line(now.last->status), now.last->error));
    co_return std::move(now);
  }
}

Result<std::unique_ptr<http::Client>> bottlerocket_client(boost::asio::any_io_executor executor, Clock& clock,
                                                          const HostRoot& root) {
  auto socket = root.locate("/run/api.sock");
  if (!socket) return std::move(socket).error();
  http::ClientOptions options;
  options.body_limit = body_limit;
  options.max_idle = 1;
  options.idle_timeout = std::chrono::seconds(4);  // less than the 5 s after which the server (actix-web) closes
  return http::Client::create(std::move(executor), clock, {http::Endpoint::Kind::unix_socket, *std::move(socket), 0},
                              {}, options);
}

namespace asio = boost::asio;

namespace {

using State = BottlerocketStatus::State;

// A refresh downloads metadata from the update repository. The interval is shorter than the shortest wait of changed(),
// so that the first pending() after each changed() refreshes, regardless of the calls of pending() in between.
constexpr Duration refresh_interval = std::chrono::minutes(7);

// Interval at which apply() checks whether a refresh has ended.
constexpr Duration look_interval = std::chrono::seconds(1);

Pending yes(const std::string& version, std::string_view what) {
  return {.need = Need::yes, .reasons = {fmt::format("Bottlerocket {} is {}", version, what)}, .target = version};
}

Pending unknown(std::string problem) {
  return {.need = Need::unknown, .problem = "Bottlerocket's update status " + std::move(problem)};
}

Error other_version(const std::string& target, const std::string& have, std::string_view what) {
  return Error(Errc::invalid, fmt::format("Bottlerocket {} should be installed, but {} is {} now", target,
                                          have.empty() ? "none" : have, what));
}

bool is_in_place(const BottlerocketStatus& status, const std::string& target) {
  return status.state == State::ready && status.staged_boots_next && status.staged == target;
}

}  // namespace

Pending bottlerocket_answer(const BottlerocketStatus& status) {
  const bool failed = status.last && status.last->type == "refresh" && status.last->status != "Success";
  switch (status.state) {
    case State::ready:
      if (status.staged.empty() || !status.staged_boots_next)
        return unknown("is Ready, but has no version for the next boot");
      return yes(status.staged, "installed for the next boot");
    case State::staged:
      if (status.chosen.empty()) return {.need = Need::no};  // the update was withdrawn after it was written
      return yes(status.chosen, status.chosen == status.staged
                                    ? "written to the inactive partition, not yet chosen for the next boot"
                                    : "available");
    case State::available:
      if (status.chosen.empty()) return unknown("is Available, but has no version");
      return yes(status.chosen, "available");
    case State::idle:
      if (failed) return unknown(fmt::format("shows that the last check for updates failed: {}", status.last->error));
      return {.need = Need::no};
  }
  return unknown("is unknown");
}

bool BottlerocketBackend::refresh_is_due(const BottlerocketStatus& status) const {
  if (status.state == State::ready) return false;
  return !status.last || clock_.now() >= next_refresh_;
}

Task<BottlerocketStatus> BottlerocketBackend::current(TimePoint deadline) {
  CO_TRY(BottlerocketStatus status, co_await api_.status(deadline));
  if (!refresh_is_due(status) || refreshing_ || applying_) co_return std::move(status);
  refreshing_ = true;
  const ScopeExit done([this] { refreshing_ = false; });
  // Set before the refresh, so that it also delays retries: after a failed refresh command, the next refresh waits for
  // the interval.
  next_refresh_ = clock_.now() + refresh_interval;
  co_return co_await api_.run(BottlerocketAction::refresh, deadline);
}

asio::awaitable<Pending> BottlerocketBackend::pending(TimePoint deadline) {
  const auto status = co_await current(deadline);
  if (!status) co_return Pending{.need = Need::unknown, .problem = status.error().message()};
  co_return bottlerocket_answer(*status);
}

Task<std::string> BottlerocketBackend::booted(TimePoint deadline) {
  return api_.version(deadline);
}

Task<> BottlerocketBackend::apply(std::string target, TimePoint deadline) {
  while (refreshing_) {
    if (clock_.now() >= deadline)
      co_return Error(Errc::timeout, "the check for updates of Bottlerocket did not finish in time");
    co_await clock_.sleep_until(clock_.now() + look_interval);
  }
  CO_TRY(BottlerocketStatus status, co_await current(deadline));
  applying_ = true;
  const ScopeExit done([this] { applying_ = false; });
  if (target.empty()) target = status.state == State::ready ? status.staged : status.chosen;
  if (is_in_place(status, target)) co_return Result<>();
  if (status.state == State::ready) co_return other_version(target, status.staged, "in place");
  if (status.state == State::idle || status.chosen.empty() || status.chosen != target)
    co_return other_version(target, status.chosen, "offered");
  if (status.state != State::staged || status.staged != target) {
    CO_TRY(status, co_await api_.run(BottlerocketAction::prepare, deadline));
    if (status.state != State::staged || status.staged != target)
      co_return other_version(target, status.staged, "written");
  }
  CO_TRY(status, co_await api_.run(BottlerocketAction::activate, deadline));
  if (!is_in_place(status, target)) co_return other_version(target, status.staged, "in place");
  co_return Result<>();
}

asio::awaitable<void> BottlerocketBackend::changed() {
  co_await clock_.sleep_until(next_recheck(clock_, rng_));
}

}  // namespace haulout::agent
