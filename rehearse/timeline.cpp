#include "rehearse/timeline.hpp"

#include <algorithm>

#include "drain/reasons.hpp"

namespace haulout::rehearse {

using drain::EventType;

Timeline::Node& Timeline::node_of(const drain::Event& event) {
  const auto [entry, first] = by_name_.try_emplace(event.node, nodes_.size());
  if (first) nodes_.push_back({event.node, event.at, {}, {}, {}});
  return nodes_[entry->second];
}

Timeline::Row& Timeline::row_of(const drain::Event& event) {
  const auto [entry, first] = by_uid_.try_emplace(event.pod->uid, rows_.size());
  if (first) {
    Row row;
    row.node = event.node;
    of_node_[event.node].push_back(rows_.size());
    row.pod = event.pod->key();
    row.controller = event.pod->controller;
    rows_.push_back(std::move(row));
  }
  return rows_[entry->second];
}

// Ends the open waits of the pods of the event's node, because the drain of that node is over.
void Timeline::end_waits(const drain::Event& event) {
  for (const std::size_t index : of_node_[event.node]) {
    Row& row = rows_[index];
    if (!row.waits.empty() && !row.waits.back().until) row.waits.back().until = event.at;
  }
}

void Timeline::note_gang(const drain::Event& event) {
  const drain::Diagnosis& told = *event.diagnosis;
  const auto known = std::ranges::find_if(broken_gangs_, [&](const BrokenGang& broken) {
    return broken.node == event.node && broken.gang == told.subject;
  });
  BrokenGang& broken =
      known == broken_gangs_.end() ? broken_gangs_.emplace_back(BrokenGang{event.node, told.subject, {}}) : *known;
  broken.message = told.message;
}

void Timeline::on_event(const drain::Event& event) {
  last_ = std::max(last_, event.at);
  Node& node = node_of(event);
  if (event.type == EventType::cordoned) node.cordoned = event.at;
  if (event.type == EventType::finished) {
    node.ended = event.at;
    node.outcome = event.message;
    end_waits(event);
  }
  if (event.type == EventType::diagnosis_raised && event.diagnosis->code == reason::gang_broken) note_gang(event);
  // signal_sent and throttled do not end a wait: a pod for which an eviction is only a signal stays parked.
  if (event.pod == nullptr || event.type == EventType::signal_sent || event.type == EventType::throttled) return;
  Row& row = row_of(event);
  const bool waits = event.type == EventType::parked;
  if (!row.waits.empty() && !row.waits.back().until) {
    Wait& open = row.waits.back();
    // A new message with the same reason belongs to the same wait.
    if (waits && open.reason == event.pod->reason) {
      open.message = event.pod->message;
      return;
    }
    open.until = event.at;
  }
  if (waits) row.waits.push_back({event.at, std::nullopt, event.pod->reason, event.pod->message});
  if (event.type == EventType::eviction_sent && !row.sent) row.sent = event.at;
  if (event.type == EventType::evicted || event.type == EventType::terminating) row.leaving = event.at;
  if (event.type == EventType::vanished) row.vanished = event.at;
  if (event.type == EventType::left) row.left = event.at;
}

Duration waited(const Timeline::Row& row, WallTime now) {
  Duration sum{};
  for (const Timeline::Wait& wait : row.waits) sum += wait.until.value_or(now) - wait.from;
  return sum;
}

}  // namespace haulout::rehearse
