// What a process costs, from /proc, under the names that every Prometheus client gives it. Quick reads of the kernel's
// memory, no disk.
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

// What the kernel counts in.
struct KernelUnits {
  double ticks_per_second = 100;
  double page_bytes = 4096;
};

// From the text of /proc/self/stat and /proc/stat; nothing when they do not look like themselves. Pure. File
// descriptors are not in there.
std::optional<ProcessFigures> parse_process_stat(std::string_view self_stat, std::string_view stat, KernelUnits units);

// Nothing where /proc is not to be had.
std::optional<ProcessFigures> read_process_figures();

}  // namespace haulout::agent
