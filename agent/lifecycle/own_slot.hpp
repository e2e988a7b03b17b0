// The slot of the agent's node: stores its name, detects its loss and releases it. Cancellable. Borrows the context.
#pragma once

#include <string>

#include "agent/lifecycle/context.hpp"

namespace haulout::agent {

class OwnSlot {
 public:
  explicit OwnSlot(const Context& context) : context_(context) {}

  // The name of the slot that was taken last, for the record.
  const std::string& taken() const { return taken_; }
  void take(std::string slot) { taken_ = std::move(slot); }

  // Runs as a child of an activity for which the node holds its slot: wakes the activity when slots change, and
  // interrupts it when the slot is lost. Ends only by cancellation.
  boost::asio::awaitable<void> follow();
  // Releases the slot, with retries until it succeeds or until the Node has to be read again.
  boost::asio::awaitable<void> release();

 private:
  const Context& context_;
  std::string taken_;
};

}  // namespace haulout::agent
