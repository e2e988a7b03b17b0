#include "agent/node/node_cordon.hpp"

#include <algorithm>

#include "agent/node/node_status.hpp"
#include "base/text.hpp"
#include "drain/cordon.hpp"

namespace haulout::agent {
namespace {

std::optional<WallTime> tainted_since(const k8s::Node& node) {
  const auto taint = std::find_if(node.taints.begin(), node.taints.end(),
                                  [](const k8s::Taint& each) { return each.key == drain::unschedulable_taint; });
  return taint == node.taints.end() ? std::nullopt : taint->time_added;
}

std::string cordon_words(const k8s::Node& node) {
  const auto cordon = persons_cordon(node);
  return cordon ? words_of(*cordon) : "cordoned by its agent";
}

}  // namespace

std::optional<PersonsCordon> persons_cordon(const k8s::Node& node) {
  switch (drain::cordon_owner(node)) {
    case drain::CordonOwner::nobody: return std::nullopt;
    case drain::CordonOwner::haulout: {
      const auto mark = drain::mark_of(node);
      if (mark->by == cordoned_by) return std::nullopt;
      return PersonsCordon{mark->by, {}, mark->at};
    }
    case drain::CordonOwner::other: break;
  }
  return PersonsCordon{{}, node.unschedulable_manager, tainted_since(node)};
}

std::string words_of(const PersonsCordon& cordon) {
  if (!cordon.by.empty()) return "cordoned by " + printable(cordon.by);
  return cordon.tool.empty() ? "cordoned" : "cordoned with " + printable(cordon.tool);
}

std::string out_of_service(const k8s::Node& node) {
  if (node.ready) return node.unschedulable ? cordon_words(node) : std::string();
  return node.unschedulable ? "NotReady, " + cordon_words(node) : "NotReady";
}

}  // namespace haulout::agent
