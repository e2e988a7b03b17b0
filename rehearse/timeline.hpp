// Records what happened to each pod, from the events of one or several drains. No I/O.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "drain/observer.hpp"

namespace haulout::rehearse {

class Timeline final : public drain::DrainObserver {
 public:
  struct Wait {
    WallTime from;
    std::optional<WallTime> until;  // end of the wait; unset: the pod still waits
    std::string reason;
    std::string message;
  };
  struct Row {
    std::string node;
    std::string pod;  // namespace/name
    std::string controller;
    std::vector<Wait> waits;  // times in which the drain had parked the pod, in order of time
    std::optional<WallTime> sent;
    std::optional<WallTime> leaving;  // when the pod began to terminate, because of this drain or not
    std::optional<WallTime> vanished;
    std::optional<WallTime> left;  // when the drain stopped waiting for the pod although it still existed
  };
  struct Node {
    std::string name;
    WallTime began;
    std::optional<WallTime> cordoned;
    std::optional<WallTime> ended;
    std::string outcome;
  };

  // A gang (drain/gangs.hpp) of which a drain was about to evict members.
  struct BrokenGang {
    std::string node;
    std::string gang;     // "JobSet ml/train"
    std::string message;  // the latest, because a gang may get more members on the node
  };

  void on_event(const drain::Event& event) override;

  // Returns a row for each pod with an event other than signal_sent and throttled, in the order of the first such
  // event.
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  // Returns one entry for each node and gang, in the order of the events.
  const std::vector<BrokenGang>& broken_gangs() const { return broken_gangs_; }
  // Returns the time of the latest event.
  WallTime last() const { return last_; }

 private:
  Node& node_of(const drain::Event& event);
  Row& row_of(const drain::Event& event);
  void end_waits(const drain::Event& event);
  void note_gang(const drain::Event& event);

  std::vector<Node> nodes_;
  std::vector<Row> rows_;
  std::vector<BrokenGang> broken_gangs_;
  std::unordered_map<std::string, std::size_t> by_uid_;                // rows
  std::unordered_map<std::string, std::size_t> by_name_;               // nodes
  std::unordered_map<std::string, std::vector<std::size_t>> of_node_;  // rows of each node
  WallTime last_{};
};

// Returns the total time that the pod has waited. An open wait counts until `now`.
Duration waited(const Timeline::Row& row, WallTime now);

}  // namespace haulout::rehearse
