#include "agent/node/roll_out_order.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "agent/node/node_status.hpp"
#include "base/text.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {
namespace {

using By = RollOutOrder::By;

constexpr std::string_view label_prefix = "label:";
// Each of the first 28 nodes of a line polls often enough (LeaseSlots::next_look()) to see within `order_patience` that
// a slot is free. Of those behind them nothing follows from what they show.
constexpr std::size_t most_silent = 16;

// A node's place in the order: compares like a number.
struct Place {
  int kind = 0;  // numbers before texts, and texts before nodes without the label
  std::uint64_t number = 0;
  std::string text{};
  WallTime since{};
  std::string words{};  // for messages

  bool before(const Place& other) const {
    return std::tie(kind, number, text, since) < std::tie(other.kind, other.number, other.text, other.since);
  }
};

Place place_of(const RollOutOrder& order, const k8s::Node& node, const std::optional<Record>& record) {
  if (order.by == By::asked) {
    // An older agent does not tell since when its node needs the update.
    const WallTime since = record ? record->needed_since.value_or(record->since) : WallTime::max();
    if (!record) return {.since = since, .words = "unknown"};
    return {.since = since,
            .words = fmt::format("since {:%F %H:%M} UTC", std::chrono::floor<std::chrono::minutes>(since))};
  }
  const std::string value = k8s::value_at(node.labels, order.label).value_or("");
  if (value.empty()) return {.kind = 2, .words = "no value"};
  if (const auto number = parse_number<std::uint64_t>(value)) return {.number = *number, .words = value};
  return {.kind = 1, .text = value, .words = printable(value)};
}

// Returns true if this node takes a slot as soon as one is free for it. Its label `reason` may be older than a change
// that lets it go on; it asks again then.
bool is_about_to_go(const k8s::Node& node, const std::optional<Record>& record, const std::string& version) {
  if (!node.ready || k8s::value_at(node.labels, state_label) != to_string(State::waiting)) return false;
  const std::string why = k8s::value_at(node.labels, reason_label).value_or("");
  if (why.empty() || why == reason::waiting_for_slot || why == reason::waiting_for_order) return true;
  const bool of_a_version = why == reason::waiting_for_wave || why == reason::roll_out_halted;
  return of_a_version && !version.empty() && record && record->waits_for == version;
}

// Returns true if this node shows that it has seen a free slot, and leaves it to others: its agent is alive.
bool shows_life(const k8s::Node& node) {
  return k8s::value_at(node.labels, reason_label) == reason::waiting_for_order;
}

}  // namespace

Result<RollOutOrder> parse_roll_out_order(std::string_view text) {
  if (text == "any") return RollOutOrder{};
  if (text == "zone") return RollOutOrder{By::label, std::string(standard_zone_label)};
  if (text == "asked") return RollOutOrder{By::asked};
  if (text.starts_with(label_prefix)) return RollOutOrder{By::label, std::string(text.substr(label_prefix.size()))};
  return Error(Errc::invalid, "it is none of any, zone, asked and label:KEY; write for example label:example.com/rank");
}

OrderedLine line_of(const RollOutOrder& order, const k8s::Node& own, const std::string& version,
                    const std::vector<const k8s::Node*>& members, const std::set<std::string>& passed_over) {
  OrderedLine line;
  if (order.by == By::any) return line;
  const Place ours = place_of(order, own, record_of(own));
  struct Earlier {
    Place place;
    const k8s::Node* node;
  };
  std::vector<Earlier> earlier;
  for (const k8s::Node* node : members) {
    if (node->uid == own.uid || passed_over.contains(node->name)) continue;
    const std::optional<Record> record = record_of(*node);
    if (!is_about_to_go(*node, record, version)) continue;
    Place place = place_of(order, *node, record);
    if (place.before(ours))
      earlier.push_back({std::move(place), node});
    else if (!ours.before(place))
      ++line.beside;
  }
  std::sort(earlier.begin(), earlier.end(), [](const Earlier& a, const Earlier& b) {
    return a.place.before(b.place) || (!b.place.before(a.place) && a.node->name < b.node->name);
  });
  std::size_t number = 0, silent = 0;  // silent: how many nodes from the beginning of the line show no life
  for (std::size_t i = 0; i < earlier.size(); ++i) {
    const auto& [place, node] = earlier[i];
    number += i > 0 && earlier[i - 1].place.before(place);
    silent += silent == i && !shows_life(*node);
    const bool first = number == 0 || (silent == i + 1 && silent <= most_silent);
    line.before.push_back({node->name, fmt::format("{} ({})", node->name, place.words), first, number});
  }
  return line;
}

std::string words_of(const RollOutOrder& order, const std::vector<EarlierNode>& before) {
  std::vector<std::string> names;
  names.reserve(before.size());
  for (const EarlierNode& node : before) names.push_back(node.words);
  return fmt::format("{} {} before this one in the roll-out, by {}: {}", count_of(before.size(), "node"),
                     before.size() == 1 ? "goes" : "go",
                     order.by == By::asked ? "the time since when it needs its update" : "the label " + order.label,
                     some_of(names));
}

}  // namespace haulout::agent
