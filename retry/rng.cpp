#include "retry/rng.hpp"

namespace haulout {

std::uint64_t Rng::between(std::uint64_t low, std::uint64_t high) {
  const std::uint64_t span = high - low;
  if (span == ~std::uint64_t{0}) return next();
  // Draws that would make some numbers more likely are rejected. On average, at most two draws are needed.
  const std::uint64_t limit = ~std::uint64_t{0} - ~std::uint64_t{0} % (span + 1);
  std::uint64_t draw = next();
  while (draw >= limit) draw = next();
  return low + draw % (span + 1);
}

Duration Rng::between(Duration low, Duration high) {
  if (high <= low) return low;
  return low + Duration(static_cast<Duration::rep>(
                   between(std::uint64_t{0}, static_cast<std::uint64_t>((high - low).count()))));
}

}  // namespace haulout
