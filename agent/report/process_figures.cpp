#include "agent/report/process_figures.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace haulout::agent {
namespace {

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (;;) {
    const std::size_t begin = text.find_first_not_of(" \n");
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::optional<double> number(std::string_view word) {
  double value = 0;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failure != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::string slurp(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::optional<ProcessFigures> parse_process_stat(std::string_view self_stat, std::string_view stat, KernelUnits units) {
  // The second field is the program's name in parentheses, which can contain blanks and parentheses itself; see
  // proc(5).
  const std::size_t name_end = self_stat.rfind(')');
  const std::size_t boot_line = stat.find("\nbtime ");
  if (name_end == std::string_view::npos || boot_line == std::string_view::npos) return std::nullopt;
  const auto fields = words_of(self_stat.substr(name_end + 1));
  const auto boot = words_of(stat.substr(boot_line));
  constexpr std::size_t first = 3;  // number in proc(5) of the field after the name
  if (fields.size() <= 24 - first || boot.size() < 2) return std::nullopt;
  const auto user = number(fields[14 - first]);
  const auto system = number(fields[15 - first]);
  const auto started = number(fields[22 - first]);
  const auto size = number(fields[23 - first]);
  const auto pages = number(fields[24 - first]);
  const auto booted = number(boot[1]);
  if (!user || !system || !started || !size || !pages || !booted) return std::nullopt;
  ProcessFigures figures;
  figures.cpu_seconds = (*user + *system) / units.ticks_per_second;
  figures.start_time_seconds = *booted + *started / units.ticks_per_second;
  figures.virtual_bytes = *size;
  figures.resident_bytes = *pages * units.page_bytes;
  return figures;
}

std::optional<ProcessFigures> read_process_figures() {
  const KernelUnits units{static_cast<double>(sysconf(_SC_CLK_TCK)), static_cast<double>(sysconf(_SC_PAGESIZE))};
  auto figures = parse_process_stat(slurp("/proc/self/stat"), slurp("/proc/stat"), units);
  if (!figures) return std::nullopt;
  std::error_code failure;
  std::filesystem::directory_iterator files("/proc/self/fd", failure);
  if (!failure) figures->open_fds = static_cast<double>(std::distance(files, {}));
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) figures->max_fds = static_cast<double>(limit.rlim_cur);
  return figures;
}

}  // namespace haulout::agent
