#include "agent/hooks/hook_point.hpp"

#include <exception>

namespace haulout::agent {

std::string_view to_string(HookPoint point) {
  switch (point) {
    case HookPoint::before_drain: return "before-drain";
    case HookPoint::after_drain: return "after-drain";
    case HookPoint::after_boot: return "after-boot";
    case HookPoint::before_release: return "before-release";
  }
  std::terminate();
}

std::optional<HookPoint> hook_point_of(std::string_view name) {
  for (const HookPoint point : all_hook_points)
    if (to_string(point) == name) return point;
  return std::nullopt;
}

std::string_view hook_point_names() {
  return "before-drain, after-drain, after-boot, before-release";
}

}  // namespace haulout::agent
