// Formats the reports and events of drains as JSON. The fields are in the fixed order that docs/output.md documents.
// Times are RFC 3339 in UTC with microseconds, or null. Pure.
#pragma once

#include <string>
#include <vector>

#include "drain/clean_up.hpp"
#include "drain/observer.hpp"
#include "drain/report.hpp"

namespace haulout::cli {

// The apiVersion of every JSON object that a command prints.
inline constexpr const char* api_version = "haulout.dev/v1alpha1";

// Returns one JSON object of kind DrainReport, indented, with a line break at its end.
std::string report_json(const drain::Report& report);
// The same, with the programs that clean up the machine in the object `retirement`, if the report has one.
std::string report_json(const drain::Report& report, const std::vector<drain::CleanUpProgram>& clean_up);
// Returns one JSON object of kind DrainReportList, indented, with a line break at its end.
std::string report_list_json(const std::vector<drain::Report>& reports);
// Returns one event as a JSON object on a single line, without a line break.
std::string event_json(const drain::Event& event);

}  // namespace haulout::cli
