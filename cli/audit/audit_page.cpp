#include "audit_page_html.hpp"
#include "cli/audit/audit_report.hpp"

namespace haulout::cli {

std::string audit_page(const audit::Report& report) {
  constexpr std::string_view placeholder = "/*AUDIT-JSON*/null";
  std::string json;
  // A "<" in a script could end it, for example in "</script>". In JSON it may be written as an escape.
  for (const char c : audit_json(report))
    if (c == '<')
      json += "\\u003c";
    else
      json += c;
  std::string page(audit_page_html);
  return page.replace(page.find(placeholder), placeholder.size(), json);
}

}  // namespace haulout::cli
