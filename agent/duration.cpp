#include "agent/duration.hpp"

namespace haulout::agent {

std::string format_duration(Duration duration) {
  using std::chrono::duration_cast, std::chrono::milliseconds, std::chrono::seconds;
  if (duration < Duration::zero()) return "-" + format_duration(-duration);
  if (duration < seconds(1)) return fmt::format("{}ms", duration_cast<milliseconds>(duration).count());
  const auto total = duration_cast<seconds>(duration).count();
  if (total < 60) return fmt::format("{}s", total);
  if (total < 3600) return fmt::format("{}m{:02}s", total / 60, total % 60);
  const auto hours = total / 3600;
  if (hours < 72) return fmt::format("{}h{:02}m", hours, total / 60 % 60);
  return fmt::format("{}d{:02}h", hours / 24, hours % 24);
}

}  // namespace haulout::agent
