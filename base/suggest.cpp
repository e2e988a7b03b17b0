#include "base/suggest.hpp"

#include <numeric>

namespace haulout {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, substituted});
    }
  }
  return row.back();
}

std::optional<std::string> nearest(std::string_view typed, const std::vector<std::string>& known) {
  std::optional<std::string> best;
  // Of a word of three letters, only one may differ: with two differences it is a different word.
  const std::size_t furthest = typed.size() <= 3 ? 1 : std::max<std::size_t>(2, typed.size() / 3);
  std::size_t best_distance = furthest + 1;
  for (const std::string& word : known) {
    const std::size_t distance = edit_distance(typed, word);
    if (distance >= best_distance || distance >= word.size()) continue;
    best = word;
    best_distance = distance;
  }
  return best;
}

}  // namespace haulout
