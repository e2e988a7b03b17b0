#include "agent/gates/cordon_gate.hpp"

#include <fmt/format.h>

#include "agent/node/node_cordon.hpp"
#include "drain/cordon.hpp"
#include "drain/reasons.hpp"
#include "k8s/codec.hpp"

namespace haulout::agent {
namespace {

bool is_of_this_run(const k8s::Node& node, const Record& record) {
  const auto mark = drain::mark_of(node);
  return record.cordoned || (mark && !record.run.empty() && mark->run == record.run);
}

}  // namespace

Gate cordon_gate(const k8s::Node& node, const Record& record, CordonedNodes policy) {
  Gate gate{.name = "cordon", .message = "no person has cordoned this node", .effect = Gate::Effect::gives_up};
  if (policy == CordonedNodes::update) {
    gate.verdict = Gate::Verdict::off;
    gate.message = "cordoned-nodes is update: a person's cordon does not block updates";
    return gate;
  }
  const auto cordon = persons_cordon(node);
  // During the agent's own drain this gate is open. If a person removes that cordon, the drain itself ends.
  if (!cordon || is_of_this_run(node, record)) return gate;
  gate.verdict = Gate::Verdict::closed;
  gate.reason = reason::cordoned_by_person;
  gate.message =
      fmt::format("this node is {}{}: the agent leaves it alone until it is uncordoned (kubectl uncordon {})",
                  words_of(*cordon), cordon->since ? " since " + k8s::format_time(*cordon->since) : "", node.name);
  return gate;
}

}  // namespace haulout::agent
