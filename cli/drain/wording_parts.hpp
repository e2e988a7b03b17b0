// What the lines for events and those at the end have in common. Pure.
#pragma once

#include <string>

#include "drain/options.hpp"
#include "drain/report.hpp"

namespace haulout::cli {

// " (dry run)"; nothing when it is none.
std::string dry_run_suffix(drain::DryRunMode mode);
// Why a pod has not gone, with the reason's name.
std::string because(const drain::PodReport& pod);
// What became of a volume that is to be attached elsewhere.
std::string reattach_line(const drain::VolumeReport& volume);

}  // namespace haulout::cli
