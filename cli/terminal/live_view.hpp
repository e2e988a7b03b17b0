// Shows the progress of drains on a terminal, redrawn in place: for each node a progress bar, counts, and the pods for
// which its drain waits, with reasons and durations.
//
// LiveState collects the content of one drain's events, render() (pure) formats it as lines, and LiveView draws these
// lines at most ten times a second. Without events it draws about once a second, so that durations advance.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/terminal/console.hpp"
#include "drain/observer.hpp"
#include "retry/clock.hpp"
#include "retry/notifier.hpp"

namespace haulout::cli {

struct LivePod {
  std::string key;
  drain::PodOutcome outcome = drain::PodOutcome::planned;
  std::string reason;
  std::string message;
  WallTime since{};
};

struct LiveVolume {
  std::string name;
  std::string message;
  WallTime since{};
  bool elsewhere = false;  // detached from this node; the drain waits until another node has attached it
};

struct LiveState {
  std::string node;
  WallTime started{};
  drain::Progress progress;
  // Pods for which the drain waits: parked pods (also while their eviction is retried) and terminating pods. Key: UID.
  std::map<std::string, LivePod> held;
  // Volumes for which the drain waits: those that are still attached to this node, and those that another node is
  // expected to attach. Key: name of the VolumeAttachment.
  std::map<std::string, LiveVolume> attached;
  std::vector<drain::Diagnosis> diagnoses;
  std::string connection;  // why the drain waits for the API server; empty: it is connected
  std::string throttle;    // why the drain sends no evictions at present; empty: it sends them
  bool settling = false;

  // Updates the state by an event of the node's drain.
  void apply(const drain::Event& event);
};

// Formats the live view of the nodes, in their order. Returns at most height - 1 lines, none wider than width - 1
// columns. Each node has its head line, if there is room for all of them. The nodes share the other lines evenly; what
// one does not need is left to those after it.
std::vector<std::string> render(const std::vector<LiveState>& nodes, const Terminal& terminal, WallTime now);

class LiveView final : public drain::DrainObserver {
 public:
  static constexpr Duration shortest_gap = std::chrono::milliseconds(100);
  static constexpr Duration tick = std::chrono::seconds(1);

  // Calls `measure` before each drawing, because the size of a terminal can change. Shows at most `most_nodes` nodes:
  // those whose drains have reported something last. Borrows the console and the clock.
  LiveView(boost::asio::any_io_executor executor, Clock& clock, Console& console, std::function<Terminal()> measure,
           std::size_t most_nodes = 1);

  void on_event(const drain::Event& event) override;
  // Redraws the block of the live view until cancelled.
  boost::asio::awaitable<void> run();
  // Removes the node from the live view. A later event about it, except `finished`, shows it again.
  void clear(const std::string& node);

 private:
  void draw();

  Clock& clock_;
  Console& console_;
  std::function<Terminal()> measure_;
  Notifier changed_;
  std::size_t most_nodes_;
  // In the order in which they are shown, and the number of the last event of each.
  std::vector<LiveState> nodes_;
  std::map<std::string, std::uint64_t> last_event_;
  std::uint64_t events_ = 0;
};

}  // namespace haulout::cli
