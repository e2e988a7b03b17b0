// The live view on a terminal: a progress bar, counts, and the pods that hold the drain up, with reasons and durations.
//
// LiveState follows the events, render() is pure, and LiveView draws. It draws at most ten times a second. While
// nothing happens, it draws once a second, so that durations advance.
#pragma once

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
  bool elsewhere = false;  // detached from this node; the drain waits until another node has it
};

struct LiveState {
  std::string node;
  WallTime started{};
  drain::Progress progress;
  std::map<std::string, LivePod> held;         // parked pods (also during a retry) and terminating pods, by UID
  std::map<std::string, LiveVolume> attached;  // volumes for which the drain waits, by VolumeAttachment
  std::vector<drain::Diagnosis> diagnoses;
  std::string connection;  // why the drain waits for the API server; empty: it does not
  std::string throttle;    // why evictions are not sent for now; empty: they are sent
  bool settling = false;

  // Applies an event. If it is about another node than before, resets the state first.
  void apply(const drain::Event& event);
};

struct Terminal {
  std::size_t width = 80;
  std::size_t height = 24;
  bool utf8 = true;
  bool color = true;
};

// Returns at most height - 1 lines, none wider than width - 1 columns.
std::vector<std::string> render(const LiveState& state, const Terminal& terminal, WallTime now);

class LiveView final : public drain::DrainObserver {
 public:
  static constexpr Duration shortest_gap = std::chrono::milliseconds(100);
  static constexpr Duration tick = std::chrono::seconds(1);

  // Calls `measure` before each drawing, because terminals change their size. Borrows the console and the clock.
  LiveView(boost::asio::any_io_executor executor, Clock& clock, Console& console, std::function<Terminal()> measure);

  void on_event(const drain::Event& event) override;
  // Draws until cancelled.
  boost::asio::awaitable<void> run();
  // Removes the block. A later event, except `finished`, shows it again.
  void clear();

 private:
  void draw();

  Clock& clock_;
  Console& console_;
  std::function<Terminal()> measure_;
  Notifier changed_;
  LiveState state_;
  bool shown_ = false;
};

}  // namespace haulout::cli
