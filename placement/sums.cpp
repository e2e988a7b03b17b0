#include "placement/sums.hpp"

#include <algorithm>

namespace haulout::placement {
namespace {

bool within(const Sites& some, const Sites& others) {
  for (std::size_t i = 0; i < some.size(); ++i)
    if (some[i] && !others[i]) return false;
  return true;
}

}  // namespace

// Pods of one controller share a group. There may be thousands of pods, but there are few controllers.
Sums::Alike& Sums::alike(const Json& pod) {
  std::string key;
  for (const char* what : {"/spec/nodeSelector", "/spec/affinity/nodeAffinity", "/spec/tolerations"})
    key += at(pod, what).dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
  const auto [found, is_new] = groups_.try_emplace(std::move(key));
  if (is_new) found->second.admitting = room_.admitting(pod);
  return found->second;
}

void Sums::placed(const Json& pod, const std::string& node) {
  if (const auto site = room_.site_of(node)) alike(pod).pods.push_back({*site, requests_of(pod)});
}

bool Sums::too_many_with(const Json& pod) {
  const Sites& here = alike(pod).admitting;
  Amounts free = room_.free_for(pod, here);
  for (const auto& [key, group] : groups_) {
    if (within(group.admitting, here)) continue;
    for (const Placed& one : group.pods)
      if (here[one.site]) add(free, one.requests);
  }
  const Amounts wanted = requests_of(pod);
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](const auto& want) { return want.second != 0 && amount(free, want.first) < want.second; });
}

}  // namespace haulout::placement
