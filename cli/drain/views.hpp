// The observers that tell a user what a drain does while it does it: a line per change, or one JSON object per event.
// The live view of a terminal is in live_view.hpp.
#pragma once

#include <string>
#include <vector>

#include "cli/drain/wording.hpp"
#include "cli/terminal/console.hpp"
#include "drain/observer.hpp"

namespace haulout::cli {

// One line per change: kubectl's own as results, all others beside them. Borrows the console.
class LineView final : public drain::DrainObserver {
 public:
  LineView(Console& console, Wording wording) : console_(console), wording_(std::move(wording)) {}
  void on_event(const drain::Event& event) override;

 private:
  Console& console_;
  Wording wording_;
};

// One JSON object per event and line (docs/output.md). Borrows the sink.
class JsonlView final : public drain::DrainObserver {
 public:
  explicit JsonlView(agent::Sink& sink) : sink_(sink) {}
  void on_event(const drain::Event& event) override;

 private:
  agent::Sink& sink_;
};

// Hands every event on, in order of addition. Borrows its observers.
class Observers final : public drain::DrainObserver {
 public:
  void add(drain::DrainObserver& observer) { observers_.push_back(&observer); }
  void on_event(const drain::Event& event) override;

 private:
  std::vector<drain::DrainObserver*> observers_;
};

}  // namespace haulout::cli
