#include "agent/gates/window.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {
namespace {

void ask(const agent::Schedule& schedule, WallTime now) {
  const auto state = schedule.at(now);
  must(!state.until || *state.until > now, "what is open closes later");
  must(!state.next_open || *state.next_open > now, "what is closed opens later");
  must(!state.next_open || schedule.at(*state.next_open).open, "it is open when it is said to open");
  must(!state.open || !state.until || !schedule.at(*state.until).open, "it is closed when it is said to close");
  must(!schedule.fits(now, std::chrono::minutes(1)) || state.open, "nothing fits into what is closed");
  std::ignore = schedule.describe(now);
}

}  // namespace

// Reads the same text as a window and as a blackout.
static void one(std::string_view input) {
  const WallTime now = std::chrono::sys_days(std::chrono::year(2026) / 10 / 25) + std::chrono::minutes(30);
  auto window = agent::parse_window(input);
  if (window) {
    ask(agent::Schedule({*window}, {}), now);
  } else {
    must(!window.error().message().empty(), "an error says what it is");
  }
  const auto blackout = agent::parse_blackout(input);
  if (!blackout) return;
  ask(agent::Schedule({}, {*blackout}), now);
  if (window) ask(agent::Schedule({*window}, {*blackout}), now);
}

static const Target target("window", one);

}  // namespace haulout::fuzz
