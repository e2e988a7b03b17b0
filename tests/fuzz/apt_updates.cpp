#include "agent/backends/apt_updates.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static bool is_safe(std::string_view word) {
  return !word.empty() && word.front() != '-' && word.find_first_of(" \t\n\r;$&|<>()[]{}'\"\\/*?") == word.npos;
}

static void one(std::string_view input) {
  const auto plan = agent::parse_simulation(input);
  if (!plan) return must(!plan.error().message().empty(), "an error says why");
  for (const agent::AptUpdate& update : plan->updates)
    must(is_safe(update.package) && is_safe(update.to), "a name and a version are safe as arguments");
  must(agent::still_waiting(*plan, {}).empty(), "what does not wait is installed");
  const agent::Updates updates = agent::updates_of(*plan);
  must(updates.first.size() <= agent::named_updates, "a message names only the first updates");
  must((updates.need == agent::Need::yes) == (updates.count > 0), "what waits is a need");
  std::ignore = agent::automatic(agent::only_security(*plan), input);
}

static const Target target("apt_updates", one);

}  // namespace haulout::fuzz
