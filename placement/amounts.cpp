#include "placement/amounts.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

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

namespace {

// The bound of all amounts; larger ones are clamped to it. It is so small that the sum of two cannot overflow.
constexpr std::int64_t most_amount = std::numeric_limits<std::int64_t>::max() / 4;

std::int64_t saturated(std::int64_t amount) {
  return std::clamp(amount, -most_amount, most_amount);
}

std::optional<std::int64_t> read(const Json& quantity) {
  if (quantity.is_null()) return 0;
  if (quantity.is_string()) return thousandths(quantity.get<std::string>());
  return quantity.is_number() ? thousandths(quantity.dump()) : std::nullopt;
}

// Parses the requests of a container. An amount that cannot be parsed or is too large counts as `most_amount`, which is
// more than any node has.
Amounts requests(const Json& quantities) {
  Amounts result;
  if (!quantities.is_object()) return result;
  for (const auto& [resource, quantity] : quantities.items())
    result[resource] = saturated(read(quantity).value_or(most_amount));
  return result;
}

}  // namespace

void add(Amounts& to, const Amounts& more) {
  for (const auto& [resource, amount] : more) to[resource] = saturated(to[resource] + amount);
}

void subtract(Amounts& from, const Amounts& less) {
  for (const auto& [resource, amount] : less) from[resource] = saturated(from[resource] - amount);
}

std::int64_t amount(const Amounts& of, const std::string& resource) {
  const auto found = of.find(resource);
  return found == of.end() ? 0 : found->second;
}

Amounts limits_of(const Json& node) {
  const Json& allocatable = at(node, "/status/allocatable");
  const Json& stated = allocatable.is_object() ? allocatable : at(node, "/status/capacity");
  Amounts result;
  if (!stated.is_object()) return result;
  // Leaves out amounts that cannot be parsed. Clamps the others below `most_amount`, which no node has.
  for (const auto& [resource, quantity] : stated.items())
    if (const auto value = read(quantity)) result[resource] = std::min(*value, most_amount - 1);
  return result;
}

Amounts requests_of(const Json& pod) {
  Amounts running;    // sum of the containers and the sidecars
  Amounts sidecars;   // sum of the init containers that keep running
  Amounts beginning;  // the largest request of an init container together with the sidecars before it
  for (const Json& container : at(pod, "/spec/containers"))
    add(running, requests(at(container, "/resources/requests")));
  for (const Json& container : at(pod, "/spec/initContainers")) {
    Amounts need = requests(at(container, "/resources/requests"));
    if (text(container, "/restartPolicy") == "Always") {
      add(sidecars, need);
      continue;
    }
    add(need, sidecars);
    for (const auto& [resource, most] : need) beginning[resource] = std::max(beginning[resource], most);
  }
  add(running, sidecars);
  for (const auto& [resource, need] : beginning) running[resource] = std::max(running[resource], need);
  for (const auto& [resource, need] : requests(at(pod, "/spec/resources/requests"))) running[resource] = need;
  add(running, requests(at(pod, "/spec/overhead")));
  for (const std::string& claimed : claimed_resources(pod)) running.erase(claimed);
  running["pods"] = 1000;
  return running;
}

}  // namespace haulout::placement
