// Formats the events and reports of a drain as sentences for people. If kubectl prints a line for the same event, the
// line is kubectl's. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drain/eviction_request_feed.hpp"
#include "drain/observer.hpp"
#include "drain/options.hpp"
#include "drain/surge_feed.hpp"

namespace haulout::cli {

// What the lines of a drain depend on besides its events and reports.
struct Wording {
  drain::DryRunMode dry_run = drain::DryRunMode::none;
  bool deleting = false;            // --disable-eviction is given: the drain deletes pods instead of evicting them
  std::string program = "haulout";  // the program's name in remedies: "haulout" or "kubectl haulout"
};

// Returns the line to print for one event of a drain. Returns nullopt if no line is printed for it, or if
// cordon_line(), fit_warnings() or summary() return the line.
std::optional<std::string> line_of(const drain::Event& event, const Wording& wording);
// Returns true if the line that line_of() returns for events of this type is kubectl's. Such lines belong on stdout,
// where scripts read them; all others belong on stderr.
bool is_line_of_kubectl(drain::EventType type);

// Returns the lines to print after the preflight of a drain, each with "Warning: " in front: the skipped pods, grouped
// by reason (without mirror pods), and the pods to evict that no controller will replace (without finished pods, whose
// deletion loses nothing).
std::vector<std::string> skip_warnings(const drain::Report& report);
// Returns one clause for each pod that does not fit on another node, or for which that is unknown: "pod shop/web-0 …".
std::vector<std::string> fit_findings(const drain::Report& report);
// Returns the clauses of fit_findings(), each with "Warning: " in front.
std::vector<std::string> fit_warnings(const drain::Report& report);

// Returns the line about a cordon (`on` is true) or an uncordon: "node/n1 cordoned", or "node/n1 already cordoned" if
// `changed` is false.
std::string cordon_line(const std::string& node, bool changed, bool on, drain::DryRunMode dry_run);

struct Summary {
  std::vector<std::string> out;  // lines that kubectl prints, too; they belong on stdout
  // Lines for stderr: the outcome, the diagnoses, and each pod that is not deleted, with its cause and remedy.
  std::vector<std::string> errors;
};
// Returns the lines to print when the drain of a node has ended.
Summary summary(const drain::Report& report, const Wording& wording);

// Returns the line about a deleted Node: that of `kubectl delete node`.
std::string deletion_line(const std::string& node, drain::DryRunMode dry_run);
// Returns the lines to print when the retirement of a node has ended (drain/retirement.hpp). Unless it is a dry run,
// deletion_line() is printed before them, when the Node is deleted.
Summary retirement_summary(const std::string& node, const drain::RetirementReport& retirement,
                           drain::DryRunMode dry_run);

// Returns a phrase for the pods because of which policy refuses the drain for this reason, in kubectl's wording, with
// the flag that allows them. Returns an empty string if such pods are never refused, or if the reason is not known
// here.
std::string refusal_of(const std::string& reason);

// Returns one line for each pod that was given back to its ReplicaSet (drain/surge_feed.hpp), and one for what could
// not be given back.
std::vector<std::string> given_back_lines(const std::string& node, const Result<drain::GivenBack>& given,
                                          const std::string& program);
// Returns one line for each pod whose EvictionRequest was withdrawn, and one for those that could not be withdrawn.
std::vector<std::string> withdrawn_lines(const std::string& node, const Result<drain::Withdrawn>& withdrawn,
                                         const std::string& program);

}  // namespace haulout::cli
