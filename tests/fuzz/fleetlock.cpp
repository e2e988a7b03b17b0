#include "agent/slots/fleetlock_slots.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

// The first byte selects the status. The rest is the body.
static void one(std::string_view input) {
  if (input.empty()) return;
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
