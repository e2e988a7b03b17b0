// Audits a cluster: which of its nodes cannot be drained, why, and whose pods it is. First it looks for what the
// objects alone tell (findings.hpp), then it rehearses the drain of each node by itself (node_rehearsals.hpp). Blocks
// until that is done. No I/O.
#pragma once

#include <string>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "audit/report.hpp"
#include "rehearse/rehearsal.hpp"

namespace haulout::audit {

struct AuditInput {
  rehearse::Snapshot snapshot;
  std::string source;         // for the report: where the snapshot comes from
  agent::AgentConfig config;  // how agents drain
  rehearse::Assumptions assumptions;
  // The labels that name a team. The first one that an owner, its pods or their namespace have counts.
  std::vector<std::string> team_labels;
  // How many nodes are rehearsed at most, those with the worst findings first. 0: none.
  std::size_t rehearse_at_most = 0;
};

// Fails with Errc::decode if the snapshot is unusable.
Result<Report> audit(AuditInput input);

// Removes the findings that the baseline has, and counts them in Report::known. A finding stays if it is worse than in
// the baseline. The verdicts of nodes stay.
void forget_known(Report& report, const Baseline& baseline);

}  // namespace haulout::audit
