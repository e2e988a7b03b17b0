#include "audit/report.hpp"

#include <algorithm>

namespace haulout::audit {

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::note: return "note";
    case Severity::risk: return "risk";
    case Severity::blocks: return "blocks";
  }
  return "";
}

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::drains: return "drains";
    case Verdict::blocked: return "blocked";
    case Verdict::drains_without_room: return "drainsWithoutRoom";
    case Verdict::not_rehearsed: return "notRehearsed";
  }
  return "";
}

std::string OwnerName::text() const {
  if (name.empty()) return kind;
  return (ns.empty() ? "" : ns + "/") + kind + "/" + name;
}

Severity Owner::worst() const {
  Severity worst = Severity::note;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  return worst;
}

std::size_t Report::count(Severity severity) const {
  std::size_t n = 0;
  for (const Owner& owner : owners)
    n += static_cast<std::size_t>(std::ranges::count(owner.findings, severity, &Finding::severity));
  return n;
}

std::size_t Report::count(Verdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count(nodes, verdict, &NodeResult::verdict));
}

}  // namespace haulout::audit
