// What a node remembers of its past: the last ten of a kind, so that its record stays small. Pure.
#pragma once

#include <utility>
#include <vector>

namespace haulout::agent {

inline constexpr std::size_t remembered_updates = 10;

// The history with one more, the newest last; the oldest ones give way.
template <class T>
std::vector<T> remembered(std::vector<T> history, T latest) {
  history.push_back(std::move(latest));
  if (history.size() > remembered_updates)
    history.erase(history.begin(), history.end() - static_cast<std::ptrdiff_t>(remembered_updates));
  return history;
}

}  // namespace haulout::agent
