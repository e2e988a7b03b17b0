// Events and reports as sentences, in kubectl's words where kubectl has some. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drain/observer.hpp"
#include "drain/options.hpp"

namespace haulout::cli {

struct Wording {
  drain::DryRunMode dry_run = drain::DryRunMode::none;
  bool deleting = false;  // --disable-eviction
  std::string program = "haulout";
};

// The line for one event; nothing when it is not worth one.
std::optional<std::string> line_of(const drain::Event& event, const Wording& wording);
// kubectl has that line, too, and prints it on stdout, where scripts read it. All others belong on stderr.
bool is_line_of_kubectl(drain::EventType type);

// After the preflight: which pods stay, grouped by reason.
std::vector<std::string> skip_warnings(const drain::Report& report);
// Pods that would find no room elsewhere, or may find none, as clauses: "pod shop/web-0 …".
std::vector<std::string> fit_findings(const drain::Report& report);
// The same as warnings.
std::vector<std::string> fit_warnings(const drain::Report& report);

// "node/n1 cordoned", "node/n1 already cordoned".
std::string cordon_line(const std::string& node, bool changed, bool on, drain::DryRunMode dry_run);

struct Summary {
  std::vector<std::string> out;     // kubectl's lines
  std::vector<std::string> errors;  // how it went; what is wrong, each pod that is left with its cause and the way out
};
Summary summary(const drain::Report& report, const Wording& wording);

// What kubectl says about pods that policy refuses, with the flag that allows them. Empty for reasons it does not know.
std::string refusal_of(const std::string& reason);

}  // namespace haulout::cli
