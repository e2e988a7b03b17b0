#include "agent/slots/fleetlock_service.hpp"
#include "agent/slots/fleetlock_slots.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

// What the server reads, it understands again when the client sends it.
static void request(std::string_view body) {
  const auto params = agent::decode_fleetlock_request(body);
  if (!params) return must(!params.error().message().empty(), "an error says what it is");
  const auto again = agent::decode_fleetlock_request(agent::encode_fleetlock_request(params->id, params->group));
  must(again && again->id == params->id && again->group == params->group, "a request that is sent on is the same");
}

// The first byte selects the status. The rest is the body of an answer, and of a request.
static void one(std::string_view input) {
  if (input.empty()) return;
  request(input.substr(1));
  http::Response response;
  response.status = 100 + 2 * static_cast<unsigned char>(input.front());
  response.headers.set("Content-Type", "application/json");
  response.body = std::string(input.substr(1));
  const auto answer = agent::judge_fleetlock_answer(response, WallTime{});
  if (!answer) return must(!answer.error().message().empty(), "an error says what it is");
  must(answer->has_value() || response.status == 200, "only 200 gives a turn");
}

static const Target target("fleetlock", one);

}  // namespace haulout::fuzz
