// The live view of a terminal: a progress bar, counts, and the pods that hold the drain up, with reasons and durations.
//
// LiveState follows the events, render() is pure, LiveView draws: at most ten times a second, and once a second while
// nothing happens, so that durations move.
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
  bool elsewhere = false;  // it is detached, and waited for until another node has it
};

struct LiveState {
  std::string node;
  WallTime started{};
  drain::Progress progress;
  std::map<std::string, LivePod> held;  // by UID: parked pods (also while they are tried again) and terminating ones
  std::map<std::string, LiveVolume> attached;  // by VolumeAttachment: volumes that are waited for
  std::vector<drain::Diagnosis> diagnoses;
  std::string connection;  // why there is none
  std::string throttle;    // why no eviction is sent
  bool settling = false;

  // Another node starts afresh.
  void apply(const drain::Event& event);
};

struct Terminal {
  std::size_t width = 80;
  std::size_t height = 24;
  bool utf8 = true;
  bool color = true;
};

// Never more than height - 1 lines, none wider than width - 1 columns.
std::vector<std::string> render(const LiveState& state, const Terminal& terminal, WallTime now);

class LiveView final : public drain::DrainObserver {
 public:
  static constexpr Duration shortest_gap = std::chrono::milliseconds(100);
  static constexpr Duration tick = std::chrono::seconds(1);

  // `measure` is asked before each drawing: terminals change their size. Borrows console and clock.
  LiveView(boost::asio::any_io_executor executor, Clock& clock, Console& console, std::function<Terminal()> measure);

  void on_event(const drain::Event& event) override;
  // Draws until cancelled.
  boost::asio::awaitable<void> run();
  // Takes the block away; later events bring it back.
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
