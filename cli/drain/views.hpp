// Observers that show the user the progress of a drain: one line per change, or one JSON object per event. The live
// view for terminals is in live_view.hpp.
#pragma once

#include <string>
#include <vector>

#include "cli/drain/wording.hpp"
#include "cli/terminal/console.hpp"
#include "drain/observer.hpp"

namespace haulout::cli {

// Prints one line of text per change in a drain: lines that kubectl prints, too, as results (Console::say), all others
// as warnings (Console::warn). Borrows the console.
class LineView final : public drain::DrainObserver {
 public:
  LineView(Console& console, Wording wording) : console_(console), wording_(std::move(wording)) {}
  void on_event(const drain::Event& event) override;

 private:
  Console& console_;
  Wording wording_;
};

// Writes one JSON object per event of a drain, each on its own line (docs/output.md). Borrows the sink.
class JsonlView final : public drain::DrainObserver {
 public:
  explicit JsonlView(agent::Sink& sink) : sink_(sink) {}
  void on_event(const drain::Event& event) override;

 private:
  agent::Sink& sink_;
};

// Passes every event to its observers, in the order in which they were added. Borrows the observers.
class Observers final : public drain::DrainObserver {
 public:
  void add(drain::DrainObserver& observer) { observers_.push_back(&observer); }
  void on_event(const drain::Event& event) override;

 private:
  std::vector<drain::DrainObserver*> observers_;
};

}  // namespace haulout::cli
