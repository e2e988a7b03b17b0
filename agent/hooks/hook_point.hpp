// The four points of an update at which others may have their say.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace haulout::agent {

enum class HookPoint {
  before_drain,    // the turn is taken, nothing has been touched
  after_drain,     // the node is empty; before `ready`
  after_boot,      // the node is well again; before pods come back
  before_release,  // it has run well for the soak time; before the next node's turn
};
inline constexpr std::array all_hook_points{HookPoint::before_drain, HookPoint::after_drain, HookPoint::after_boot,
                                            HookPoint::before_release};

// As directories, annotations and HAULOUT_POINT have it: "before-drain".
std::string_view to_string(HookPoint point);
std::optional<HookPoint> hook_point_of(std::string_view name);
// "before-drain, after-drain, …", for messages.
std::string_view hook_point_names();

}  // namespace haulout::agent
