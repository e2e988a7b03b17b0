// Reports and events as JSON, fields in a fixed order, as docs/output.md promises. Times are RFC 3339 in UTC with
// microseconds, or null. Pure.
#pragma once

#include <string>
#include <vector>

#include "drain/observer.hpp"
#include "drain/report.hpp"

namespace haulout::cli {

// kind DrainReport, indented, ends with a line break.
std::string report_json(const drain::Report& report);
// kind DrainReportList.
std::string report_list_json(const std::vector<drain::Report>& reports);
// One event on one line, without a line break.
std::string event_json(const drain::Event& event);

}  // namespace haulout::cli
