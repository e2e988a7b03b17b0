// Resource use of this process, from /proc, for the process_ metrics that all Prometheus clients have. Reads are short
// and do not access a disk, because /proc is in the kernel's memory.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace haulout::agent {

struct ProcessFigures {
  double cpu_seconds = 0;
  double resident_bytes = 0;
  double virtual_bytes = 0;
  double open_fds = 0;
  double max_fds = 0;
  double start_time_seconds = 0;  // Unix time
};

// Units in which the kernel counts.
struct KernelUnits {
  double ticks_per_second = 100;
  double page_bytes = 4096;
};

// Parses the text of /proc/self/stat and /proc/stat. std::nullopt if their format is not as expected. Leaves open_fds
// and max_fds 0, because the texts do not contain them. Pure.
std::optional<ProcessFigures> parse_process_stat(std::string_view self_stat, std::string_view stat, KernelUnits units);

// std::nullopt if /proc cannot be read.
std::optional<ProcessFigures> read_process_figures();

}  // namespace haulout::agent
