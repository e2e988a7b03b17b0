#include "placement/amounts.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "placement/quantity.hpp"

namespace haulout::placement {
namespace {

// Bound of all amounts; larger ones are clamped to it. The sum of two cannot overflow.
constexpr std::int64_t most_amount = std::numeric_limits<std::int64_t>::max() / 4;

std::int64_t saturated(std::int64_t amount) {
  return std::clamp(amount, -most_amount, most_amount);
}

std::optional<std::int64_t> read(const Json& quantity) {
  if (quantity.is_null()) return 0;
  if (quantity.is_string()) return thousandths(quantity.get<std::string>());
  return quantity.is_number() ? thousandths(quantity.dump()) : std::nullopt;
}

// An amount that cannot be parsed or is too large counts as `most_amount`, which is more than any node has.
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
