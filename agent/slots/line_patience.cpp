#include "agent/slots/line_patience.hpp"

#include <algorithm>
#include <utility>

namespace haulout::agent {

std::set<std::string> LinePatience::passed_over(const std::set<std::string>& waiting, TimePoint now) {
  stop(now);
  std::map<std::string, Measured> alive;
  for (const auto& [name, its] : measured_)
    if (!waiting.contains(name) && !its.passed_over()) alive.emplace(name, its);
  std::erase_if(measured_, [&](const auto& each) { return !waiting.contains(each.first); });
  for (auto& [name, its] : measured_) {
    if (its.passed_over()) continue;
    Duration for_others{};
    for (const auto& [other, of_it] : alive)
      if (of_it.place <= its.place) for_others = std::max(for_others, of_it.left_free);
    its.left_free = std::max(Duration(0), its.left_free - for_others);
  }
  std::set<std::string> passed;
  for (const auto& [name, its] : measured_)
    if (its.passed_over()) passed.insert(name);
  return passed;
}

void LinePatience::watch(const std::vector<EarlierNode>& before, TimePoint now) {
  stop(now);
  next_ = TimePoint::max();
  for (const EarlierNode& node : before) {
    if (!node.first) {
      measured_.erase(node.name);  // it is alive, or one before it is
      continue;
    }
    Measured& its = measured_[node.name];
    its.since = now;
    its.place = node.place;
    next_ = std::min(next_, now + std::max(Duration(0), order_patience - its.left_free));
  }
}

void LinePatience::stop(TimePoint now) {
  for (auto& [name, its] : measured_)
    if (const auto since = std::exchange(its.since, {})) its.left_free += now - *since;
}

}  // namespace haulout::agent
