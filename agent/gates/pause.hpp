// Pauses: how people write them, and the gates that read them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/gates/gate_keeper.hpp"
#include "agent/gates/waiting.hpp"
#include "k8s/client.hpp"
#include "retry/clock.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// Pauses: a person stops updates by an annotation of the Node, or by a key of the ConfigMap `haulout` for a pool or for
// the whole cluster. Pure. A pause that cannot be parsed has no end, and its reason says what is wrong with it: its
// author wanted no updates.

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

// The pauses of the pool and of the cluster: keys `pause.<pool>` and `pause` of the ConfigMap `haulout` in the agent's
// namespace. Without the permission to read the ConfigMap these gates are off, and their rows say so. If the ConfigMap
// was readable before and is forbidden now, the pauses are unknown and the gate is closed. Borrows client and rng.

inline constexpr std::string_view pause_config_map = "haulout";

class PauseSource {
 public:
  PauseSource(k8s::Client& client, Rng& rng, std::string ns)
      : client_(client), rng_(rng), ns_(std::move(ns)), respite_(client.clock(), rng) {}

  // Sets the pool. The caller calls it before the first judge() and when the pool changes, and then changed() anew.
  void belong_to(std::string pool);

  // Returns the rows pause-pool and pause-cluster. If the ConfigMap cannot be read, pause-cluster is closed with the
  // reason PauseUnknown and pause-pool is not asked. With `view_will_do`, the view of a running changed() is used
  // without a request while its watch is connected. Cancellable.
  boost::asio::awaitable<std::vector<Gate>> judge(bool view_will_do, TimePoint deadline);
  // Returns when the pauses differ from those that the last judge() saw; may return without cause. Cancellable.
  boost::asio::awaitable<void> changed();

 private:
  struct Texts {
    std::optional<std::string> pool, cluster;
    bool operator==(const Texts&) const = default;
  };
  Texts texts_in(const std::map<std::string, std::string>& data) const;
  Task<Texts> read(TimePoint deadline);
  Task<Texts> get(TimePoint deadline);
  Task<Texts> read_once(TimePoint deadline);
  std::vector<Gate> rows_of(const Texts& texts) const;
  std::vector<Gate> rows_when_off() const;
  std::vector<Gate> rows_when_unknown(const Error& error);

  k8s::Client& client_;
  Rng& rng_;
  std::string ns_;
  std::string pool_;
  std::optional<Texts> seen_;  // as the last judge() saw them
  std::optional<Texts> view_;  // as the watch of changed() shows them; empty unless it is connected
  bool was_readable_ = false;
  bool is_off_ = false;
  TimePoint off_until_{};
  Respite respite_;
};

}  // namespace haulout::agent
