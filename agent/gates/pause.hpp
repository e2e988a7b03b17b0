// Pauses: a person stops updates by an annotation of the Node, or by a key of the ConfigMap `haulout` for a pool or for
// the whole cluster. Pure. A pause that cannot be parsed has no end, and its reason says what is wrong with it: its
// author wanted no updates.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "retry/clock.hpp"

namespace haulout::agent {

// Annotation of the Node. Its value is `<RFC 3339 or empty>; reason`.
inline constexpr std::string_view pause_annotation = "haulout.dev/pause";

struct Pause {
  std::string reason;               // as its author wrote it, or what is wrong with the pause
  std::optional<WallTime> until{};  // end of the pause; without it the pause lasts until a person removes it
  bool operator==(const Pause&) const = default;
};

// Key in the ConfigMap: "pause" for the cluster, or "pause.<pool>" for one pool.
std::string pause_key(std::string_view pool = {});

// Parses the value of the annotation. An empty value is a pause without reason and end; a time alone is a pause without
// a reason.
Pause parse_pause_annotation(std::string_view value);
// Parses the value of a key in the ConfigMap: JSON {"reason", "until"}, both optional. Messages about errors name
// `key`.
Pause parse_pause_json(std::string_view key, std::string_view value);

// The values that `haulout pause` writes. Times have whole seconds; fractions are cut off.
std::string format_pause_annotation(const Pause& pause);
std::string format_pause_json(const Pause& pause);

// Whether the pause is in force at `now`. At the time `until` it is over.
bool in_force(const Pause& pause, WallTime now);

// Text for people: "paused until 2026-11-28T06:00:00Z: new storage", "paused: new storage".
std::string describe(const Pause& pause);

}  // namespace haulout::agent
