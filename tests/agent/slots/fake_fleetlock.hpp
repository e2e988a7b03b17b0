// Simulates a FleetLock server as the protocol describes it, with two variants of known servers that clients must
// handle. A test uses it as a transport, or passes requests to answer(). Borrows the clock. No I/O.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "http/transport.hpp"
#include "retry/clock.hpp"

namespace haulout::testing {

class FakeFleetLock final : public http::Transport {
 public:
  explicit FakeFleetLock(Clock& clock) : clock_(clock) {}

  std::string prefix;
  std::size_t slots = 1;                 // per group
  int full = 409;                        // HTTP status if all slots are taken
  bool refuses_strangers = false;        // steady-state fails if another node holds the slot (poseidon/fleetlock)
  std::optional<http::Response> canned;  // replaces every answer; the request then has no effect
  std::optional<Error> broken;           // error that the client gets after the request was carried out
  Duration delay{};                      // time until a request is carried out; the client may have given up by then
  std::map<std::string, std::set<std::string>> holders;
  std::vector<http::Request> requests;
  bool carried_out_late = false;

  http::Response answer(const http::Request& request) {
    requests.push_back(request);
    if (canned) return *canned;
    if (request.method != "POST") return refusal(405, "method_not_allowed", "required method POST");
    if (request.headers.find("fleet-lock-protocol") != "true") return refusal(400, "missing_header", "required header");
    const auto body = nlohmann::json::parse(request.body, nullptr, false);
    if (!body.is_object()) return refusal(400, "failed_decoding_request", "no JSON");
    const std::string id = body["client_params"]["id"], group = body["client_params"]["group"];
    auto& held = holders[group];
    if (request.target == prefix + "/v1/pre-reboot") {
      if (!held.contains(id) && held.size() >= slots)
        return refusal(full, "failed_lock_semaphore_full", "semaphore currently full, all slots are locked already");
      held.insert(id);
      return {200, {}, "obtained reboot lease"};
    }
    if (request.target == prefix + "/v1/steady-state") {
      if (refuses_strangers && !held.empty() && !held.contains(id))
        return refusal(423, "lock_held", "reboot lease unlock unavailable, held by " + *held.begin());
      held.erase(id);
      return {200, {}, "steady-state confirmed"};
    }
    return {404, {}, "404 page not found\n"};
  }

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override {
    if (clock_.now() + delay > deadline) {
      late_.push_back(std::move(request));
      co_await clock_.sleep_until(deadline);
      co_return Error(Errc::timeout, "no answer in time");
    }
    auto response = answer(request);
    if (broken) co_return *broken;
    co_return response;
  }
  Task<std::unique_ptr<http::BodyStream>> open(http::Request, TimePoint) override {
    co_return Error(Errc::protocol, "no streams here");
  }
  // Carries out the requests that came too late for their clients.
  void carry_out_late() {
    carried_out_late = !late_.empty();
    for (const http::Request& request : std::exchange(late_, {})) answer(request);
  }

 private:
  static http::Response refusal(int status, const std::string& kind, const std::string& value) {
    http::Response response;
    response.status = status;
    response.headers.set("Content-Type", "application/json");
    response.body = nlohmann::json{{"kind", kind}, {"value", value}}.dump();
    return response;
  }

  Clock& clock_;
  std::vector<http::Request> late_;
};

}  // namespace haulout::testing
