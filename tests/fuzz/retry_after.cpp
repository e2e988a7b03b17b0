#include "http/message.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

// The first line is a Date header. The rest is a Retry-After header.
static void one(std::string_view input) {
  http::Headers headers;
  headers.set("Date", take_line(input));
  headers.set("Retry-After", input);
  const auto date = http::date(headers);
  const auto now = date.value_or(std::chrono::sys_days(std::chrono::year(2026) / 1 / 1));
  if (const auto wait = http::retry_after(headers, now)) must(wait->count() >= 0, "nobody waits into the past");
}

static const Target target("retry_after", one);

}  // namespace haulout::fuzz
