#include "placement/quantity.hpp"

#include <charconv>
#include <cmath>

namespace haulout::placement {
namespace {

struct Suffix {
  std::string_view text;
  long double factor;
};

// The suffixes of apimachinery's resource.Quantity: binary, then decimal.
constexpr Suffix suffixes[] = {
    {"Ki", 1024.0L},
    {"Mi", 1048576.0L},
    {"Gi", 1073741824.0L},
    {"Ti", 1099511627776.0L},
    {"Pi", 1125899906842624.0L},
    {"Ei", 1152921504606846976.0L},
    {"n", 1e-9L},
    {"u", 1e-6L},
    {"m", 1e-3L},
    {"", 1.0L},
    {"k", 1e3L},
    {"M", 1e6L},
    {"G", 1e9L},
    {"T", 1e12L},
    {"P", 1e15L},
    {"E", 1e18L},
};

}  // namespace

std::optional<std::int64_t> thousandths(std::string_view quantity) {
  long double value = 0;
  const auto [stop, failure] = std::from_chars(quantity.data(), quantity.data() + quantity.size(), value);
  if (failure != std::errc()) return std::nullopt;
  const std::string_view rest = quantity.substr(static_cast<std::size_t>(stop - quantity.data()));
  for (const Suffix& suffix : suffixes) {
    if (suffix.text != rest) continue;
    // Decimal fractions are not exact in binary, so up to a billionth above a whole number counts as that number.
    const long double result = std::ceil(value * suffix.factor * 1000.0L - 1e-9L);
    if (!(std::fabs(result) < 9.2e18L)) return std::nullopt;
    return static_cast<std::int64_t>(result);
  }
  return std::nullopt;
}

}  // namespace haulout::placement
