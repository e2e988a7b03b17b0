#include "agent/slots/line_patience.hpp"

#include <algorithm>

namespace haulout::agent {

std::set<std::string> LinePatience::passed_over(const std::set<std::string>& waiting) {
  std::erase_if(first_, [&](const auto& each) { return !waiting.contains(each.first); });
  std::set<std::string> passed;
  for (const auto& [name, first] : first_)
    if (first.passed_over) passed.insert(name);
  return passed;
}

void LinePatience::watch(const std::vector<EarlierNode>& before, TimePoint now) {
  std::set<std::string> first;
  for (const EarlierNode& node : before)
    if (node.first) first.insert(node.name);
  std::erase_if(first_, [&](const auto& each) { return !each.second.passed_over && !first.contains(each.first); });
  next_ = TimePoint::max();
  for (const std::string& name : first) {
    First& its = first_.try_emplace(name, First{now}).first->second;
    its.passed_over = now - its.since >= order_patience;
    next_ = std::min(next_, its.since + order_patience);  // at once if it has just been passed over
  }
}

}  // namespace haulout::agent
