#include "cli/audit/audit_report.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  const auto baseline = cli::read_baseline(std::string(input));
  if (!baseline) must(!baseline.error().message().empty(), "an error says what it is");
}

static const Target target("baseline", one);

}  // namespace haulout::fuzz
