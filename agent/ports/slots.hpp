// Port: takes, confirms and releases the slot of this node in its pool. The code also calls a slot a turn. A slot never
// expires. It ends by release(), or when its Node is deleted. The agent borrows the object. Which Errc the errors have:
// see the implementations in agent/slots.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <string_view>

#include "drain/reasons.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// Whether this node holds a slot.
struct Turn {
  bool ours = false;
  std::string slot{};  // the name of the slot, if `ours`
  std::string why{};   // for messages, if not `ours`: the holders of the slots, or the nodes that use up the limit
  std::string reason = reason::waiting_for_slot;  // for the label, if not `ours`
  // Of confirm(), if not `ours`: the server has answered, but it has neither confirmed the slot nor denied it. The node
  // may still hold it.
  bool uncertain = false;
  bool operator==(const Turn&) const = default;
};

// Returns the value of --slots with which the slot named `slot` was taken: the part of the name before the slash.
// Returns an empty string if the name has no slash, because such a slot needs no release (--slots=none).
inline std::string_view keeper_of(std::string_view slot) {
  const std::size_t slash = slot.find('/');
  return slash == std::string_view::npos ? std::string_view() : slot.substr(0, slash);
}

class Slots {
 public:
  virtual ~Slots() = default;
  // Returns the value of --slots that selects this implementation.
  virtual std::string name() const = 0;
  // Passes the slot that the Node's record names (Turn::slot when it was taken), or an empty string if the record names
  // none. The agent calls it before any request, because some slot servers cannot report which slot this node holds. A
  // slot that this object has taken itself takes precedence.
  virtual void remember(const std::string& /*slot*/) {}
  // Passes the version to which the update leads for which take() asks; empty if it has none. The agent calls it before
  // take(). Some slots depend on the version, see agent/slots/waves.hpp.
  virtual void aim_at(const std::string& /*version*/) {}
  // Takes a slot if one is free, and confirms it. Idempotent: a node that holds a slot keeps it. After an error the
  // result is unknown, and the caller calls again. Cancellable; the next take() or release() finds a slot that was
  // taken before the cancellation.
  virtual Task<Turn> take(TimePoint deadline) = 0;
  // Returns whether this node holds a slot, by a most-recent read. Cancellable.
  virtual Task<Turn> confirm(TimePoint deadline) = 0;
  // Releases the slot. Idempotent. Cancellable.
  virtual Task<> release(TimePoint deadline) = 0;
  // Returns when take() may have a different answer; may also return without cause. Cancellable.
  virtual boost::asio::awaitable<void> changed() = 0;
};

}  // namespace haulout::agent
