#include "drain/left_over.hpp"

#include <fmt/format.h>

namespace haulout::drain {

std::string words_of(const std::vector<LeftOver>& left) {
  std::string text;
  for (const LeftOver& one : left) text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", one.pod, one.why);
  return text;
}

}  // namespace haulout::drain
