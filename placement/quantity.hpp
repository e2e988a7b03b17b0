// Quantities as the API writes them: "500m", "2", "1.5", "128Mi", "1e3". Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace haulout::placement {

// In thousandths of the unit, rounded up as the API does; nothing when it is no quantity or beyond ±9.2e18.
std::optional<std::int64_t> thousandths(std::string_view quantity);

}  // namespace haulout::placement
