// What people write to hold updates: an annotation on the Node, or a key of the ConfigMap `haulout` for a pool or for
// the whole cluster. Pure. A pause that cannot be read holds without an end and says what is wrong with it: who wrote
// one wanted no update.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "retry/clock.hpp"

namespace haulout::agent {

// On the Node: `<RFC 3339 or empty>; reason`.
inline constexpr std::string_view pause_annotation = "haulout.dev/pause";

struct Pause {
  std::string reason;               // of the person who paused, or what is wrong with the pause
  std::optional<WallTime> until{};  // nothing: until somebody takes it away
  bool operator==(const Pause&) const = default;
};

// "pause", or "pause.<pool>" for one pool.
std::string pause_key(std::string_view pool = {});

// The value of the annotation. An empty one is a pause without a reason, and so is a time alone.
Pause parse_pause_annotation(std::string_view value);
// The value of a key in the ConfigMap: JSON {"reason", "until"}, both optional; `key` is named in what is wrong.
Pause parse_pause_json(std::string_view key, std::string_view value);

// What `haulout pause` writes. Whole seconds; a fraction is dropped.
std::string format_pause_annotation(const Pause& pause);
std::string format_pause_json(const Pause& pause);

// The end itself is no longer in it.
bool in_force(const Pause& pause, WallTime now);

// "paused until 2026-11-28T06:00:00Z: new storage", "paused: new storage".
std::string describe(const Pause& pause);

}  // namespace haulout::agent
