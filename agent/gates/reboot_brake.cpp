#include "agent/gates/reboot_brake.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "drain/reasons.hpp"
#include "k8s/codec.hpp"

namespace haulout::agent {
namespace {

constexpr std::chrono::hours a_day(24);

bool among(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string named(const Pending& wanted) {
  if (!wanted.target.empty()) return "to version " + printable(wanted.target);
  if (wanted.reasons.empty()) return "without giving reasons";
  return "for " + printable(joined(wanted.reasons, ", "));
}

std::optional<Brake> changes_nothing(const PastReboot& last, const Pending& wanted) {
  if (!same_need(last, wanted)) return std::nullopt;
  return Brake{reason::reboot_loop,
               fmt::format("the node was rebooted {}, but the operating system still requires a reboot, {}: another "
                           "one would change nothing; find out on the node why the update does not take effect",
                           k8s::format_time(last.at), named(wanted))};
}

std::optional<Brake> too_many(const std::vector<PastReboot>& past, WallTime now, std::size_t per_day) {
  std::vector<WallTime> recent;
  bool only_asked = false;
  for (const PastReboot& reboot : past) {
    // A time more than a day ahead comes from a clock that was wrong, so it says nothing about the last day.
    if (reboot.at <= now - a_day || reboot.at >= now + a_day) continue;
    recent.push_back(reboot.at);
    only_asked = only_asked || reboot.asked_only;
  }
  if (per_day == 0 || recent.size() < per_day) return std::nullopt;
  Brake brake{reason::too_many_reboots, fmt::format("the node was {} {} within 24 hours, and {} a day are allowed; "
                                                    "find out why it needs so many reboots, or wait",
                                                    only_asked ? "rebooted, or requested to reboot," : "rebooted",
                                                    count_of(recent.size(), "time"), per_day)};
  // When this reboot is a day old, `per_day` - 1 recent reboots are left, so one more is allowed.
  std::sort(recent.begin(), recent.end());
  brake.look_again = recent[recent.size() - per_day] + a_day;
  return brake;
}

}  // namespace

bool same_need(const PastReboot& last, const Pending& wanted) {
  if (last.cleared) return false;
  if (!last.target.empty() || !wanted.target.empty()) return last.target == wanted.target;
  return std::all_of(wanted.reasons.begin(), wanted.reasons.end(),
                     [&](const std::string& reason) { return among(last.reasons, reason); });
}

std::optional<Brake> reboot_brake(const std::vector<PastReboot>& past, const Pending& wanted, WallTime now,
                                  std::size_t per_day) {
  if (wanted.need != Need::yes) return std::nullopt;
  const auto seen =
      std::find_if(past.rbegin(), past.rend(), [](const PastReboot& reboot) { return !reboot.asked_only; });
  if (seen != past.rend()) {
    if (auto brake = changes_nothing(*seen, wanted)) return brake;
  }
  return too_many(past, now, per_day);
}

}  // namespace haulout::agent
