// The pauses of the pool and of the cluster: keys `pause.<pool>` and `pause` of the ConfigMap `haulout` in the agent's
// namespace. Without the permission to read the ConfigMap these gates are off, and their rows say so. If the ConfigMap
// was readable before and is forbidden now, the pauses are unknown and the gate is closed. Borrows client and rng.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/gates/gate_keeper.hpp"
#include "agent/gates/respite.hpp"
#include "k8s/client.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

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
