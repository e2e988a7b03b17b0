// Pauses: the syntax in which people write them, and the gates that read them.
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

// A person pauses updates by an annotation of the Node, or by a key of the ConfigMap `haulout` for a pool or for the
// whole cluster. The functions outside of PauseSource are pure. A pause that cannot be parsed has no end, because its
// author intended to stop updates; its reason says what is wrong with it.

// Annotation of the Node. Its value is `<RFC 3339 or empty>; reason`.
inline constexpr std::string_view pause_annotation = "haulout.dev/pause";

struct Pause {
  std::string reason;               // as its author wrote it, or what is wrong with the pause
  std::optional<WallTime> until{};  // end of the pause; without it the pause lasts until a person removes it
  bool operator==(const Pause&) const = default;
};

// Returns the key in the ConfigMap: "pause" for the cluster, or "pause.<pool>" for one pool.
std::string pause_key(std::string_view pool = {});

// Parses the value of the annotation. An empty value is a pause without reason and end; a time alone is a pause without
// a reason.
Pause parse_pause_annotation(std::string_view value);
// Parses the value of a key in the ConfigMap: JSON {"reason", "until"}, both optional. Error messages name `key`.
Pause parse_pause_json(std::string_view key, std::string_view value);

// Return the values that `haulout pause` writes. Times have whole seconds; fractions are cut off.
std::string format_pause_annotation(const Pause& pause);
std::string format_pause_json(const Pause& pause);

// Returns true if the pause is in force at `now`. It ends at `until`.
bool in_force(const Pause& pause, WallTime now);

// Returns the pause for messages: "paused until 2026-11-28T06:00:00Z: new storage", "paused: new storage".
std::string describe(const Pause& pause);

inline constexpr std::string_view pause_config_map = "haulout";

// Reads the pauses of the pool and of the cluster: keys `pause.<pool>` and `pause` of the ConfigMap `haulout` in the
// agent's namespace. Without the permission to read the ConfigMap these gates are off, and their rows say so. If the
// ConfigMap was readable before and is forbidden now, the pauses are unknown and the gate is closed. Borrows client and
// rng.
class PauseSource {
 public:
  PauseSource(k8s::Client& client, Rng& rng, std::string ns)
      : client_(client), rng_(rng), ns_(std::move(ns)), respite_(client.clock(), rng) {}

  // Sets the pool. The caller calls it before the first judge() and when the pool changes, and afterwards calls
  // changed() again.
  void belong_to(std::string pool);

  // Returns the rows pause-pool and pause-cluster. If the ConfigMap cannot be read, pause-cluster is closed with the
  // reason PauseUnknown and pause-pool is not evaluated. If `view_will_do` is true, judge() saves requests: it uses the
  // watch of a running changed() while that is connected; and after the permission was missing, it does not try again
  // for five minutes. Cancellable.
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
  std::optional<Texts> seen_;  // the values that the last judge() used
  std::optional<Texts> view_;  // the values that the watch of changed() shows; nothing unless that watch is connected
  bool was_readable_ = false;
  bool is_off_ = false;
  TimePoint off_until_{};
  Respite respite_;
};

}  // namespace haulout::agent
