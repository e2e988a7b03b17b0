#include "agent/backends/bottlerocket_api.hpp"

#include <fmt/format.h>

#include "base/plain_text.hpp"

namespace haulout::agent {
namespace {

constexpr Duration poll_interval = std::chrono::seconds(1);
// The server accepts or refuses every request at once; the commands run on in the background.
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

std::string_view meaning_of(int status) {
  if (status == 404) return "this update does not exist any more";
  if (status == 409) return "the state of the update does not allow this command";
  if (status == locked) return "another update command holds the lock";
  return "the command was refused";
}

Error refusal(const std::string& who, const http::Response& response) {
  const std::string said = one_line(response.body);
  Error error(Errc::status, fmt::format("{}: {} (HTTP {}{}{})", who, meaning_of(response.status), response.status,
                                        said.empty() ? "" : ": ", said));
  error.peer.emplace();
  error.peer->code = response.status;
  error.peer->message = said;
  return error;
}

bool is_success(const http::Response& response) {
  return response.status >= 200 && response.status < 300;
}

std::string request_name(std::string_view method, std::string_view target) {
  return fmt::format("Bottlerocket's API, {} {}", method, target);
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
    if (again >= deadline) co_return Error(Errc::timeout, refusal(who, *response).message());
    co_await clock_.sleep_until(again);
  }
}

Task<std::string> BottlerocketApi::version(TimePoint deadline) {
  const std::string target = "/os";
  CO_TRY(const http::Response response, co_await send("GET", target, deadline));
  if (!is_success(response)) co_return refusal(request_name("GET", target), response);
  auto version = decode_bottlerocket_version(response.body);
  if (!version) co_return std::move(version).error().with_context(request_name("GET", target));
  co_return std::move(*version);
}

Task<BottlerocketStatus> BottlerocketApi::status(TimePoint deadline) {
  const std::string target = "/updates/status";
  CO_TRY(const http::Response response, co_await send("GET", target, deadline));
  if (response.status == 404) co_return BottlerocketStatus{};
  if (!is_success(response)) co_return refusal(request_name("GET", target), response);
  auto status = decode_bottlerocket_status(response.body);
  if (!status) co_return std::move(status).error().with_context(request_name("GET", target));
  co_return std::move(*status);
}

Task<BottlerocketStatus> BottlerocketApi::run(BottlerocketAction action, TimePoint deadline) {
  const ActionNames names = names_of(action);
  const std::string who = request_name("POST", names.target);
  CO_TRY(const BottlerocketStatus before, co_await status(deadline));
  CO_TRY(const http::Response accepted, co_await send("POST", names.target, deadline));
  if (!is_success(accepted)) co_return refusal(who, accepted);
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

}  // namespace haulout::agent
