#include "agent/gates/alerts.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

// The first byte selects whether the answer has a success status. The rest is its body.
static void one(std::string_view input) {
  if (input.empty()) return;
  const int status = input.front() % 2 == 0 ? 200 : 422;
  auto answer = agent::decode_query_answer(status, input.substr(1));
  const std::size_t count = answer ? answer->samples.size() : 0;
  Result<std::vector<agent::Sample>> samples = answer.error();
  if (answer) samples = agent::without_old(answer->samples, answer->samples, std::chrono::hours(1));
  if (answer) must(samples->size() <= count, "alerts are only left out");
  const agent::Gate gate = agent::alerts_gate(samples, {});
  must(gate.closed() != (samples && samples->empty()), "the gate is open when nothing fires, and only then");
}

static const Target target("prometheus", one);

}  // namespace haulout::fuzz
