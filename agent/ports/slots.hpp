// Port: a node's turn in its fleet. A turn is never lost by time alone: it ends by release(), or with its Node.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <string_view>

#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

struct Turn {
  bool ours = false;
  std::string slot{};  // its name, when ours
  std::string why{};   // when not ours: who holds the turns, or what counts against the limit, for people
  bool operator==(const Turn&) const = default;
};

// By which slots the turn of this name was taken, as --slots spells them; empty: nothing of it is left behind anywhere.
inline std::string_view keeper_of(std::string_view slot) {
  const std::size_t slash = slot.find('/');
  return slash == std::string_view::npos ? std::string_view() : slot.substr(0, slash);
}

class Slots {
 public:
  virtual ~Slots() = default;
  // As --slots spells it.
  virtual std::string name() const = 0;
  // What the record says of a turn: Turn::slot as it was when the turn was taken; empty: it knows of none. Told before
  // anything is asked, for slots whose keeper cannot be asked which turn is ours. What was taken since counts more.
  virtual void remember(const std::string& /*slot*/) {}
  // Takes a turn if one is free and has it confirmed. Idempotent: a turn that is ours stays ours. An error: nobody
  // knows, ask again. Cancellable; what was taken by then is found by the next take() or release().
  virtual Task<Turn> take(TimePoint deadline) = 0;
  // Whether the turn is ours, by a most-recent view. Cancellable.
  virtual Task<Turn> confirm(TimePoint deadline) = 0;
  // Idempotent. Cancellable.
  virtual Task<> release(TimePoint deadline) = 0;
  // Returns when take() may have another answer; may return without cause. Cancellable.
  virtual boost::asio::awaitable<void> changed() = 0;
};

}  // namespace haulout::agent
