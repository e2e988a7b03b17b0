#include "agent/gates/duration_history.hpp"

namespace haulout::agent {
namespace {

using std::chrono::seconds;

constexpr std::chrono::minutes without_history(30);
constexpr std::chrono::days longest_believable(7);

// The last ones only.
std::vector<seconds> latest(std::vector<seconds> history) {
  if (history.size() > remembered_updates)
    history.erase(history.begin(), history.end() - static_cast<std::ptrdiff_t>(remembered_updates));
  return history;
}

}  // namespace

std::vector<seconds> remembered(std::vector<seconds> history, seconds took) {
  history.push_back(took);
  return latest(std::move(history));
}

Duration estimated_update(const std::vector<seconds>& history) {
  seconds longest(0);
  for (const seconds took : latest(history)) longest = std::max(longest, took);
  if (longest <= seconds(0)) return without_history;
  longest = std::min<seconds>(longest, longest_believable);
  return longest + seconds((longest.count() + 4) / 5);
}

}  // namespace haulout::agent
