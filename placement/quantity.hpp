// Parses quantities as the API writes them: "500m", "2", "1.5", "128Mi", "1e3". Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace haulout::placement {

// Returns the quantity in thousandths of its unit, rounded up as the API does. Returns nothing if it is not a quantity
// or the result is beyond ±9.2e18.
std::optional<std::int64_t> thousandths(std::string_view quantity);

}  // namespace haulout::placement
