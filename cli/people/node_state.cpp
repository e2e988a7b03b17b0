#include "cli/people/node_state.hpp"

#include "agent/node/node_status.hpp"
#include "cli/people/change.hpp"
#include "k8s/objects.hpp"

namespace haulout::cli {

std::string state_shown(const k8s::Node& node) {
  return k8s::value_at(node.labels, agent::state_label).value_or("");
}

bool is_under_way(std::string_view state) {
  const auto known = agent::state_of(state);
  return known && duties_of(*known).turn == agent::Duty::yes;
}

}  // namespace haulout::cli
