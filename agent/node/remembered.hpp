// The history of a node that its record keeps: at most the last ten entries of a kind, so that the record stays small.
// Pure.
#pragma once

#include <utility>
#include <vector>

namespace haulout::agent {

inline constexpr std::size_t remembered_updates = 10;

// Appends `latest` to the history, which has the newest entry last. Removes the oldest entries if there are too many.
template <class T>
std::vector<T> remembered(std::vector<T> history, T latest) {
  history.push_back(std::move(latest));
  if (history.size() > remembered_updates)
    history.erase(history.begin(), history.end() - static_cast<std::ptrdiff_t>(remembered_updates));
  return history;
}

}  // namespace haulout::agent
