// Formats the report of `haulout audit`: text for people, JSON, and the formats of other tools. Pure.
#pragma once

#include <string>
#include <vector>

#include "audit/report.hpp"
#include "retry/task.hpp"

namespace haulout::cli {

// Returns the exit code of `haulout audit`: 0 if no finding has this severity or a worse one, else 1.
int exit_code(const audit::Report& report, audit::Severity fail_on);

std::vector<std::string> audit_lines(const audit::Report& report);

// Returns the report as one JSON object of kind Audit (docs/output.md).
std::string audit_json(const audit::Report& report);
// Returns the findings in an earlier audit_json(). One whose severity cannot be read counts as the worst. Fails with
// Errc::decode if the text is none.
Result<audit::Baseline> read_baseline(const std::string& text);

// Returns the report for GitHub and other readers of SARIF 2.1.0: each finding is a result.
std::string audit_sarif(const audit::Report& report);

// Returns the report for readers of JUnit's XML: each finding is a test case, which has failed if its severity is
// `fail_on` or worse. Each node without such a finding is a test case that has passed.
std::string audit_junit(const audit::Report& report, audit::Severity fail_on);

// Returns the report as one self-contained HTML page.
std::string audit_page(const audit::Report& report);

}  // namespace haulout::cli
