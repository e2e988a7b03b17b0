#include "drain/order.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  const auto rule = drain::parse_order_rule(input);
  if (!rule) return must(!rule.error().message().empty(), "an error says what it is");
  must(!rule->selector.empty(), "no rule is about every pod");
}

static const Target target("order_rule", one);

}  // namespace haulout::fuzz
