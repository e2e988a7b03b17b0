#include "agent/lifecycle/own_slot.hpp"

#include <fmt/format.h>

#include "agent/lifecycle/node_writer.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

asio::awaitable<void> OwnSlot::follow() {
  Backoff backoff(eager_patience);
  for (;;) {
    co_await context_.parts.slots.changed();
    Duration pause = std::chrono::milliseconds(200);
    auto turn = co_await context_.parts.slots.confirm(context_.within(request_timeout));
    if (turn && !turn->ours) context_.activity.interrupt({Event::turn_lost});
    if (turn)
      backoff.reset();
    else
      pause = backoff.next(context_.rng, turn.error().retry_after);
    context_.activity.wake();
    co_await context_.pause(pause);
  }
}

asio::awaitable<void> OwnSlot::release() {
  Backoff backoff(patience);
  while (!context_.activity.must_reload()) {
    const std::string& slot = context_.record.slot;
    const std::string configured = context_.parts.slots.name();
    if (const auto keeper = keeper_of(slot); !keeper.empty() && keeper != configured) {
      co_await context_.writer.show(
          reason::cannot_release,
          fmt::format("slot {} was taken with --slots={}, which is {} now: set it back until the slot is released, or "
                      "release the slot by hand and remove the annotation {} of the Node",
                      slot, keeper, configured, record_annotation));
      co_await context_.activity.wait(TimePoint::max());
      continue;
    }
    auto released = co_await context_.parts.slots.release(context_.within(request_timeout));
    if (released) {
      context_.record.slot.clear();
      co_return;
    }
    co_await context_.writer.show(reason::cannot_release,
                                  "the slot cannot be released yet: " + released.error().message());
    co_await context_.pause(backoff.next(context_.rng, released.error().retry_after));
  }
}

}  // namespace haulout::agent
