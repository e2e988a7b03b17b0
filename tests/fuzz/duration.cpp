#include "base/duration.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  const auto duration = parse_duration(input);
  if (!duration) return must(!duration.error().message().empty(), "an error says what it is");
  must(!format_duration(*duration).empty(), "every duration can be written");
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(*duration).count();
  const auto again = parse_duration(std::to_string(nanoseconds) + "ns");
  must(again && *again == *duration, "a duration in nanoseconds is the same duration");
}

static const Target target("duration", one);

}  // namespace haulout::fuzz
