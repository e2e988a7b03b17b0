#include "cli/audit/audit_report.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  const auto keys = cli::baseline_keys(std::string(input));
  if (!keys) must(!keys.error().message().empty(), "an error says what it is");
}

static const Target target("baseline", one);

}  // namespace haulout::fuzz
