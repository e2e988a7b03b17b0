// What happened to each pod in the course of one or several drains, as an observer collects it, and as a picture.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "drain/observer.hpp"

namespace haulout::rehearse {

class Timeline final : public drain::DrainObserver {
 public:
  struct Wait {
    WallTime from;
    std::optional<WallTime> until;  // unset: still
    std::string reason;
    std::string message;
  };
  struct Row {
    std::string node;
    std::string pod;  // namespace/name
    std::string controller;
    std::vector<Wait> waits;  // parked, in order of time
    std::optional<WallTime> sent;
    std::optional<WallTime> leaving;  // since when it terminates, evicted or not
    std::optional<WallTime> vanished;
    std::optional<WallTime> left;  // since when nobody waits for it, though it is still there
  };
  struct Node {
    std::string name;
    WallTime began;
    std::optional<WallTime> cordoned;
    std::optional<WallTime> ended;
    std::string outcome;
  };

  void on_event(const drain::Event& event) override;

  // Pods that were evicted or waited, in order of their first event.
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  WallTime last() const { return last_; }

 private:
  Node& node_of(const drain::Event& event);
  Row& row_of(const drain::Event& event);
  void end_waits(const drain::Event& event);

  std::vector<Node> nodes_;
  std::vector<Row> rows_;
  std::map<std::string, std::size_t> by_uid_;
  WallTime last_{};
};

Duration waited(const Timeline::Row& row, WallTime now);

// One self-contained SVG file: a bar per pod, time from left to right. `title` stands above it. Pure.
std::string timeline_svg(const Timeline& timeline, const std::string& title);

}  // namespace haulout::rehearse
