#include "agent/gates/duration_history.hpp"

#include <algorithm>

#include "agent/node/remembered.hpp"

namespace haulout::agent {
namespace {

using std::chrono::seconds;

constexpr std::chrono::minutes without_history(30);
constexpr seconds longest_believable = std::chrono::days(7);

// The last `remembered_updates` durations without the impossible ones, the shortest first.
std::vector<seconds> by_length(const std::vector<seconds>& history) {
  const std::size_t forgotten = history.size() - std::min(history.size(), remembered_updates);
  std::vector<seconds> lengths;
  for (std::size_t i = forgotten; i < history.size(); ++i)
    if (history[i] > seconds(0)) lengths.push_back(std::min(history[i], longest_believable));
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

seconds and_a_fifth(seconds length) {
  return length + seconds((length.count() + 4) / 5);
}

}  // namespace

Duration estimated_update(const std::vector<seconds>& history) {
  const auto lengths = by_length(history);
  return lengths.empty() ? Duration(without_history) : and_a_fifth(lengths.back());
}

Duration ordinary_update(const std::vector<seconds>& history) {
  const auto lengths = by_length(history);
  return lengths.empty() ? Duration::zero() : and_a_fifth(lengths[(lengths.size() - 1) / 2]);
}

}  // namespace haulout::agent
