#include "agent/node/pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "agent/node/node_status.hpp"
#include "base/text.hpp"
#include "k8s/objects.hpp"

namespace haulout::agent {
namespace {

std::set<std::string> pools_of_turns(const k8s::Node& node, const std::vector<k8s::Lease>& turns) {
  const std::string holder = OwnNode{node.name, node.uid}.holder();
  std::set<std::string> pools;
  for (const k8s::Lease& turn : turns)
    if (const auto pool = k8s::value_at(turn.labels, pool_label); pool && turn.holder == holder) pools.insert(*pool);
  return pools;
}

Membership membership_by_name(const k8s::Node& node, const std::optional<std::string>& told, const OwnPool& pool,
                              const std::vector<k8s::Lease>& turns) {
  if (told) return *told == pool.name ? Membership::member : Membership::stranger;
  const auto held = pools_of_turns(node, turns);
  if (!held.empty()) return held.contains(pool.name) ? Membership::member : Membership::stranger;
  return pool.by_role && pool_of_role(node.labels) != pool.name ? Membership::stranger : Membership::unknown;
}

}  // namespace

bool is_control_plane(const OwnPool& pool) {
  return pool.by_role && pool.name == control_plane_pool;
}

std::string pool_of_role(const std::map<std::string, std::string>& node_labels) {
  return std::string(node_labels.contains(std::string(control_plane_label)) ? control_plane_pool : default_pool);
}

std::optional<std::string> told_pool(const k8s::Node& node) {
  if (const auto record = record_of(node); record && !record->pool.empty()) return record->pool;
  const auto label = k8s::value_at(node.labels, pool_label);
  return label && !label->empty() ? label : std::nullopt;
}

ListedNode listed(k8s::Node node) {
  auto told = told_pool(node);
  const auto state = state_of(k8s::value_at(node.labels, state_label).value_or(""));
  return {std::make_shared<const k8s::Node>(std::move(node)), std::move(told), state};
}

Membership membership_of(const k8s::Node& node, const OwnPool& pool, const std::vector<k8s::Lease>& turns) {
  // The caller has listed the nodes with this selector.
  return pool.node_selector.empty() ? membership_by_name(node, told_pool(node), pool, turns) : Membership::member;
}

Membership membership_of(const ListedNode& listed, const OwnPool& pool, const std::vector<k8s::Lease>& turns) {
  return pool.node_selector.empty() ? membership_by_name(*listed.node, listed.told, pool, turns) : Membership::member;
}

namespace {

constexpr std::size_t most_digits = 6;

using Unit = MaxUnavailable::Unit;

}  // namespace

std::size_t MaxUnavailable::of(std::size_t nodes) const {
  if (unit == Unit::nodes) return value;
  if (value == 0 || nodes == 0) return 0;
  // Computed in two parts, so that no product overflows.
  const std::size_t share = nodes / 100 * value + nodes % 100 * value / 100;
  return std::max<std::size_t>(share, 1);
}

Result<MaxUnavailable> parse_max_unavailable(std::string_view text) {
  const auto wrong = [&](std::string_view cause) {
    return Error(Errc::invalid,
                 fmt::format("{}; write a number of nodes like 1, or a percentage of the pool like 25%", cause));
  };
  if (text.empty()) return wrong("it is empty");
  if (text.starts_with('-')) return wrong("it cannot be negative");
  const bool percent = text.ends_with('%');
  const std::string_view digits = percent ? text.substr(0, text.size() - 1) : text;
  if (digits.empty()) return wrong("the number is missing");
  if (digits.find_first_not_of("0123456789") != std::string_view::npos) return wrong("it is not a whole number");
  if (digits.size() > most_digits) return wrong("it is too large");
  const std::size_t value = parse_number<std::size_t>(digits).value_or(0);
  if (percent && value > 100) return wrong("a percentage is at most 100%");
  return MaxUnavailable{value, percent ? Unit::percent : Unit::nodes};
}

Result<std::vector<MaxUnavailable>> parse_ramp(std::string_view text) {
  std::vector<MaxUnavailable> waves;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    auto size = parse_max_unavailable(part);
    if (!size) return std::move(size).error().with_context(fmt::format("wave \"{}\"", part));
    if (size->value == 0)
      return Error(Errc::invalid,
                   fmt::format("wave \"{}\" has no node, so the roll-out would never begin or go on; write waves like "
                               "1,2,5%,25%",
                               part));
    if (comma + 1 == text.size()) return Error(Errc::invalid, "it ends with a comma; write waves like 1,2,5%,25%");
    waves.push_back(*size);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return waves;
}

std::string to_string(const MaxUnavailable& limit) {
  return fmt::format("{}{}", limit.value, limit.unit == Unit::percent ? "%" : "");
}

}  // namespace haulout::agent
