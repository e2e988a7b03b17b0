// Phrases that both the lines for events and the final summary use. Pure.
#pragma once

#include <string>

#include "drain/options.hpp"
#include "drain/report.hpp"

namespace haulout::cli {

// Returns the suffix of a line in a dry run: " (dry run)" or " (server dry run)"; empty if it is no dry run.
std::string dry_run_suffix(drain::DryRunMode mode);
// Returns why a pod is not deleted yet: its message with the reason in brackets, or the reason alone.
std::string because(const drain::PodReport& pod);
// Returns the line about a detached volume that another node is expected to attach.
std::string reattach_line(const drain::VolumeReport& volume);

}  // namespace haulout::cli
