#include "http/pool.hpp"

namespace haulout::http {

std::unique_ptr<Wire> Pool::take(TimePoint now) {
  drop_old(now);
  while (!idle_.empty()) {
    auto wire = std::move(idle_.back().wire);
    idle_.pop_back();
    if (wire->quiet()) return wire;
  }
  return nullptr;
}

void Pool::put(std::unique_ptr<Wire> wire, std::uint64_t generation, TimePoint now) {
  drop_old(now);
  if (generation != generation_ || max_idle_ == 0) return;
  if (idle_.size() >= max_idle_) idle_.erase(idle_.begin());
  idle_.push_back({std::move(wire), now});
}

void Pool::clear() {
  idle_.clear();
  ++generation_;
}

void Pool::drop_idle_since(TimePoint then) {
  std::erase_if(idle_, [&](const Idle& one) { return one.since <= then; });
}

void Pool::drop_old(TimePoint now) {
  drop_idle_since(now - idle_timeout_);
}

}  // namespace haulout::http
