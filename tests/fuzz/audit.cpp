#include "audit/audit.hpp"
#include "cli/audit/audit_report.hpp"
#include "sim/loader.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

// Returns true if no object demands more than 20 pods. More pods would only make the target slow.
static bool few_pods(const std::vector<sim::Json>& objects) {
  constexpr std::int64_t most = 20;
  return std::all_of(objects.begin(), objects.end(), [](const sim::Json& object) {
    return sim::number(object, "/spec/replicas") <= most && sim::number(object, "/spec/parallelism") <= most;
  });
}

static void one(std::string_view input) {
  const auto objects = sim::read_objects(input);
  if (!objects || !few_pods(*objects)) return;
  audit::AuditInput question;
  question.snapshot = {.documents = {{std::string(input)}}, .stored = true};
  question.team_labels = {"team"};
  question.assumptions.give_up = std::chrono::minutes(10);
  question.rehearse_at_most = 1;
  auto report = audit::audit(question);
  if (!report) return must(!report.error().message().empty(), "an error says what it is");
  must(!cli::audit_lines(*report).empty() && !cli::audit_page(*report).empty(), "an audit has a report");
  must(!cli::audit_sarif(*report).empty() && !cli::audit_junit(*report, audit::Severity::risk).empty(),
       "an audit has a report for other tools");
  const auto baseline = cli::read_baseline(cli::audit_json(*report));
  must(baseline.has_value(), "a report can be the baseline of the next one");
  audit::forget_known(*report, *baseline);
  must(report->owners.empty(), "nothing is new if nothing has changed");
}

static const Target target("audit", one);

}  // namespace haulout::fuzz
