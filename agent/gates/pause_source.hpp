// The pauses of the pool and of the cluster: keys `pause.<pool>` and `pause` of the ConfigMap `haulout` in the agent's
// namespace. Without the right to read it they are switched off, and the rows say so; a right that was there once and
// fails now is a pause that nobody can judge. Borrows client and rng.
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

  // Before the first question, and whenever the pool is another one; changed() is to be called anew after it.
  void belong_to(std::string pool);

  // Rows pause-pool and pause-cluster. Closed with the reason PauseUnknown when the server cannot be asked.
  // `view_will_do`: what changed() sees is good enough while its watch is connected. Cancellable.
  boost::asio::awaitable<std::vector<Gate>> judge(bool view_will_do, TimePoint deadline);
  // Returns when the pauses are no longer what judge() saw last; may return without cause. Cancellable.
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
  std::optional<Texts> seen_;  // by judge()
  std::optional<Texts> view_;  // by the watch of changed(), while it is connected
  bool was_readable_ = false;
  bool is_off_ = false;
  TimePoint off_until_{};
  Respite respite_;
};

}  // namespace haulout::agent
