// Turns events and reports into sentences, in kubectl's words if kubectl prints a line for the same thing. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drain/observer.hpp"
#include "drain/options.hpp"

namespace haulout::cli {

struct Wording {
  drain::DryRunMode dry_run = drain::DryRunMode::none;
  bool deleting = false;  // --disable-eviction is given: the drain deletes pods instead of evicting them
  std::string program = "haulout";
};

// Returns the line for one event, or nothing if this event has no line.
std::optional<std::string> line_of(const drain::Event& event, const Wording& wording);
// Whether kubectl prints this line, too. Such lines belong on stdout, where scripts read them, all others on stderr.
bool is_line_of_kubectl(drain::EventType type);

// Warnings after the preflight: the skipped pods, grouped by reason, and the pods to evict that nothing will replace.
std::vector<std::string> skip_warnings(const drain::Report& report);
// One clause for each pod that fits on no other node, or is not known to fit: "pod shop/web-0 …".
std::vector<std::string> fit_findings(const drain::Report& report);
// The same clauses, each with "Warning: " in front.
std::vector<std::string> fit_warnings(const drain::Report& report);

// "node/n1 cordoned" or "node/n1 already cordoned"; "uncordoned" if `on` is false.
std::string cordon_line(const std::string& node, bool changed, bool on, drain::DryRunMode dry_run);

struct Summary {
  std::vector<std::string> out;     // lines that kubectl prints, too
  std::vector<std::string> errors;  // the outcome, what is wrong, and each pod that is left, with cause and remedy
};
Summary summary(const drain::Report& report, const Wording& wording);

// Words for the pods that policy refuses for this reason, like kubectl's, with the flag that allows them. Empty if the
// reason has none.
std::string refusal_of(const std::string& reason);

}  // namespace haulout::cli
