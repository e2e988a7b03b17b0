#include <fmt/format.h>

#include "agent/report/reasons.hpp"

namespace haulout::agent {
namespace {

constexpr std::string_view head = R"(# Why a node waits

This page is made from the table of reasons in `agent/report/`; a test compares the two.

Whenever the agent of a node waits, it shows a reason. The reason is the same in all of these places:

| where | how to see it |
|---|---|
| labels `haulout.dev/state` and `haulout.dev/reason` | `kubectl get nodes -L haulout.dev/state,haulout.dev/reason` |
| annotation `haulout.dev/message` | the sentence that explains the reason, in `kubectl describe node NAME` |
| condition `HauloutMaintenance` | true from cordon to uncordon, in `kubectl describe node NAME` |
| Events on the Node | `kubectl describe node NAME`, `kubectl events --for node/NAME` |
| metric `haulout_reason_info` | see [metrics.md](metrics.md) |
| the agent's log | one line per change, with the fields `state` and `reason` |
| on bare metal | `systemctl status haulout` |

If there is no reason, nothing blocks the node. The Event for a state without a reason uses the name of the state
instead: `Unknown`, `Idle`, `Pending`, `Waiting`, `Draining`, `Ready`, `Rebooting`, `Verifying`, `Uncordoning`,
`Soaking`, `Degraded`. A reason marked ● may not end without a person: look at the node. Such reasons are Warnings among
the Events and in the log.

A diagnosis is a condition that keeps a drain from ending. Diagnoses use the reasons of this page, too. They appear in
the reports of `haulout drain` and `haulout explain`, as Events on the Node, and in the metric `haulout_diagnosis`.
)";

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

}  // namespace

std::string reasons_page() {
  std::string page(head);
  std::string_view group;
  for (const Reason& reason : reasons()) {
    if (reason.group != group) {
      group = reason.group;
      page += fmt::format("\n## {}\n\n| reason | | what it means | what to do |\n|---|---|---|---|\n", group);
    }
    page += fmt::format("| `{}` | {} | {} | {} |\n", reason.name, reason.concern == Concern::trouble ? "●" : "",
                        escaped(reason.meaning), escaped(reason.remedy));
  }
  return page;
}

}  // namespace haulout::agent
