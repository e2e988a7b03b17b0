#include "drain/pod_rules.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  const auto rule = drain::parse_pod_rule(input);
  if (!rule) return must(!rule.error().message().empty(), "an error says what it is");
  must(!rule->selector.empty() || !rule->ns.empty() || !rule->kind.empty() || rule->controller,
       "no rule is about every pod");
  must(!rule->limit || (rule->action == drain::PodAction::wait_completed && *rule->limit > Duration::zero()),
       "only a wait has a limit, and it is positive");
  const auto again = drain::parse_pod_rule(rule->text);
  must(again && *again == *rule, "the text of a rule is the rule");
}

static const Target target("pod_rule", one);

}  // namespace haulout::fuzz
