#include "agent/node/pool.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  const auto limit = agent::parse_max_unavailable(input);
  if (!limit) return must(!limit.error().message().empty(), "an error says what it is");
  const auto again = agent::parse_max_unavailable(agent::to_string(*limit));
  must(again && *again == *limit, "what is written is read again");
  if (limit->unit == agent::MaxUnavailable::Unit::nodes) return;
  must(limit->of(0) == 0, "of no nodes none is out");
  must(limit->of(7) <= 7, "no more than there are");
}

static const Target target("max_unavailable", one);

}  // namespace haulout::fuzz
