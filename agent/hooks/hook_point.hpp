// The four points of an update at which hooks run. Pure.
#pragma once

#include <array>
#include <exception>
#include <optional>
#include <string_view>

namespace haulout::agent {

enum class HookPoint {
  before_drain,    // the node has its slot; nothing has been changed yet
  after_drain,     // the drain has ended; the state is not yet `ready`
  after_boot,      // the node has passed verification; it is not yet uncordoned
  before_release,  // the soak time has passed; the slot is not yet released
};
inline constexpr std::array all_hook_points{HookPoint::before_drain, HookPoint::after_drain, HookPoint::after_boot,
                                            HookPoint::before_release};

// Returns the name of the point in directories, annotations and HAULOUT_POINT, for example "before-drain".
inline std::string_view to_string(HookPoint point) {
  switch (point) {
    case HookPoint::before_drain: return "before-drain";
    case HookPoint::after_drain: return "after-drain";
    case HookPoint::after_boot: return "after-boot";
    case HookPoint::before_release: return "before-release";
  }
  std::terminate();
}
inline std::optional<HookPoint> hook_point_of(std::string_view name) {
  for (const HookPoint point : all_hook_points)
    if (to_string(point) == name) return point;
  return std::nullopt;
}
// Returns all names for messages: "before-drain, after-drain, …".
inline std::string_view hook_point_names() {
  return "before-drain, after-drain, after-boot, before-release";
}

}  // namespace haulout::agent
