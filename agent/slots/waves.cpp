#include "agent/slots/waves.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "agent/node/node_status.hpp"
#include "base/text.hpp"

namespace haulout::agent {

namespace {

std::string degraded_words(const std::string& node, const std::string& reason) {
  return fmt::format("{} is degraded{}", node, reason.empty() ? "" : " (" + reason + ")");
}

// Returns true if no part of an update is left in this state, except perhaps the release of the slot.
bool is_settled(State state) {
  return state == State::unknown || state == State::idle || state == State::pending || state == State::waiting;
}

// Returns why the node is down; an empty text if it is Ready, or if it may be about to come back from its update.
std::string why_down(const k8s::Node& node, const Record& record, WallTime now) {
  if (node.ready) return {};
  if (is_settled(record.state)) return node.name + " is not Ready";
  // In these states an update may make the node not Ready. Its agent acts at the deadline, so one that has passed shows
  // that no agent runs.
  const bool may_go_down =
      record.state == State::updating || record.state == State::rebooting || record.state == State::verifying;
  if (may_go_down && record.deadline && now <= *record.deadline) return {};
  return fmt::format("{} is not Ready ({} since {:%F %H:%M} UTC)", node.name, to_string(record.state),
                     std::chrono::floor<std::chrono::minutes>(record.since));
}

// Returns why the node is not well; an empty text if it is well, or if its update is under way.
std::string why_not_well(const k8s::Node& node, const Record& record, const RollOut& roll_out) {
  if (record.state == State::degraded)
    return degraded_words(node.name, printable(k8s::value_at(node.labels, reason_label).value_or("")));
  if (const auto down = roll_out.down.find(node.name); down != roll_out.down.end()) return down->second;
  if (record.failed_to == roll_out.version)
    return node.name + " has failed with this version, and has not run well with it since";
  return {};
}

// Returns true if the slot that this record names cannot lead to `version` any more. Until an update is verified, or
// has failed, its target may still change to this version.
bool is_elsewhere(const Record& record, const std::string& version) {
  if (record.slot.empty()) return false;
  if (record.state == State::uncordoning || record.state == State::soaking)
    return !record.updated_to.empty() && record.updated_to != version;
  const std::string& failed = attempted_version(record);
  return record.state == State::degraded && !failed.empty() && failed != version;
}

}  // namespace

RollOut roll_out_of(std::string version, const std::vector<MaxUnavailable>& ramp, std::size_t nodes,
                    const std::vector<const k8s::Node*>& members, WallTime now) {
  RollOut roll_out{std::move(version)};
  for (const MaxUnavailable& size : ramp) roll_out.waves.push_back(std::max<std::size_t>(1, size.of(nodes)));
  for (const k8s::Node* node : members) note_node(roll_out, *node, now);
  return roll_out;
}

void note_node(RollOut& roll_out, const k8s::Node& node, WallTime now) {
  const std::optional<Record> record = record_of(node);
  if (!record) return;
  if (std::string why = why_down(node, *record, now); !why.empty()) roll_out.down[node.name] = std::move(why);
  const bool updated = record->updated_to == roll_out.version;
  if (updated || record->failed_to == roll_out.version) {
    std::string why = why_not_well(node, *record, roll_out);
    const bool well = why.empty() && node.ready && is_settled(record->state);
    roll_out.returned[node.name] = {well, std::move(why)};
  }
  if (is_elsewhere(*record, roll_out.version)) roll_out.elsewhere.insert(node.name);
}

void note_released(RollOut& roll_out, const std::set<std::string>& before, const std::set<std::string>& now,
                   bool well) {
  for (const std::string& node : before)
    if (!node.empty() && !now.contains(node) && !roll_out.elsewhere.contains(node)) {
      if (well)
        roll_out.returned[node] = {};
      else
        roll_out.returned.try_emplace(node, RollOut::Return{false});
    }
}

bool has_failed(const RollOut& roll_out, const std::string& node) {
  const auto returned = roll_out.returned.find(node);
  return returned != roll_out.returned.end() && !returned->second.why.empty();
}

Wave wave_of(const RollOut& roll_out, const std::vector<SlotHolder>& holders,
             const std::map<std::string, std::string>& degraded, const std::string& own) {
  Wave wave;
  std::set<std::string> holding;
  for (const SlotHolder& holder : holders) {
    holding.insert(holder.name);
    if (holder.name == own || roll_out.elsewhere.contains(holder.name)) continue;
    ++wave.taken;
    const auto ill = degraded.find(holder.name);
    const auto down = roll_out.down.find(holder.name);
    wave.down |= down != roll_out.down.end();
    if (ill != degraded.end())
      wave.troubled.push_back(degraded_words(holder.name, ill->second));
    else if (down != roll_out.down.end())
      wave.troubled.push_back(down->second);
    else
      wave.updating.push_back(holder.words);
    const bool tries_again = ill == degraded.end() && down == roll_out.down.end() && has_failed(roll_out, holder.name);
    if (tries_again) wave.failed.push_back(roll_out.returned.at(holder.name).why);
  }
  std::size_t unfinished = 0;
  for (const auto& [node, its] : roll_out.returned) {
    if (node == own || holding.contains(node)) continue;
    if (its.well) {
      wave.well.push_back(node);
      continue;
    }
    ++unfinished;
    wave.down |= roll_out.down.contains(node);
    wave.soon_over |= its.why.empty();
    (its.why.empty() ? wave.updating : wave.troubled).push_back(its.why.empty() ? node : its.why);
  }
  wave.failed.insert(wave.failed.end(), wave.troubled.begin(), wave.troubled.end());
  const std::size_t done = wave.well.size() + (roll_out.halt_after > 0 ? wave.failed.size() : 0);
  for (std::size_t i = 0; i < roll_out.waves.size() && wave.number == 0; ++i) {
    wave.end += roll_out.waves[i];
    if (done < wave.end) wave.number = i + 1;
  }
  // A node that has failed itself may try again, or nothing could end the halt if several have failed.
  wave.halted = roll_out.halt_after > 0 && wave.failed.size() >= roll_out.halt_after && !has_failed(roll_out, own);
  const std::size_t gone = wave.well.size() + unfinished;
  wave.places = wave.number == 0 ? std::numeric_limits<std::size_t>::max() : wave.end > gone ? wave.end - gone : 0;
  return wave;
}

namespace {

std::string halt_words(const Wave& wave, const RollOut& roll_out) {
  const bool is_one = wave.failed.size() == 1;
  return fmt::format(
      "the roll-out of version {} is halted, because {} {} not well (halt-after {}): {}; repair {}, or withdraw the "
      "version",
      printable(roll_out.version), count_of(wave.failed.size(), "node"),
      is_one ? "has failed with it or is" : "have failed with it or are", roll_out.halt_after, some_of(wave.failed),
      is_one ? "it and request its reboot" : "them and request their reboot");
}

std::string wave_words(const Wave& wave, const RollOut& roll_out) {
  std::string text = fmt::format("wave {} of {} of version {}: {} of {} {} come back well", wave.number,
                                 roll_out.waves.size(), printable(roll_out.version), wave.well.size(),
                                 count_of(wave.end, "node"), wave.end == 1 ? "has" : "have");
  if (!wave.updating.empty())
    text += fmt::format(", {} {} being updated ({})", wave.updating.size(), wave.updating.size() == 1 ? "is" : "are",
                        some_of(wave.updating));
  if (!wave.troubled.empty() && roll_out.halt_after > 0)
    text += fmt::format(", {}: the roll-out halts at {}", some_of(wave.troubled),
                        count_of(roll_out.halt_after, "failed node"));
  else if (!wave.troubled.empty())
    text += fmt::format(", {}: the roll-out waits until {} well", some_of(wave.troubled),
                        wave.troubled.size() == 1 ? "it is" : "they are");
  return text;
}

}  // namespace

std::string words_of(const Wave& wave, const RollOut& roll_out) {
  std::string text = wave.halted ? halt_words(wave, roll_out) : wave_words(wave, roll_out);
  if (wave.down) text += "; if a machine is lost, delete its Node";
  return text;
}

}  // namespace haulout::agent
