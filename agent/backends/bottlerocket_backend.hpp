// Bottlerocket: image updates by its API on /run/api.sock. It finds updates only when told to, so pending() refreshes
// its list now and then; apply() has the image written to the other partition and marked for the next boot.
//
// The transport speaks to the API (see bottlerocket_client). Transport, clock and Rng must outlive the back end.
#pragma once

#include "agent/backends/bottlerocket_api.hpp"
#include "agent/ports/backend.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// Pure. Ready: yes, to what the other partition holds. Available and Staged: yes, to the chosen version. Idle: no,
// unless the last look for updates failed. What contradicts itself is unknown.
Pending bottlerocket_answer(const BottlerocketStatus& status);

class BottlerocketBackend final : public Backend {
 public:
  BottlerocketBackend(http::Transport& transport, Clock& clock, Rng& rng)
      : api_(transport, clock), clock_(clock), rng_(rng) {}

  std::string name() const override { return "bottlerocket"; }
  boost::asio::awaitable<Pending> pending(TimePoint deadline) override;
  Task<std::string> booted(TimePoint deadline) override;
  // An empty target is whatever is chosen. Errc::invalid when another version is offered or in place by now: ask again.
  Task<> apply(std::string target, TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;

 private:
  Task<BottlerocketStatus> current(TimePoint deadline);
  bool refresh_is_due(const BottlerocketStatus& status) const;

  BottlerocketApi api_;
  Clock& clock_;
  Rng& rng_;
  TimePoint next_refresh_ = TimePoint::min();
  // The API tells of the last command alone: one of ours must not end while another is waited for.
  bool refreshing_ = false, applying_ = false;
};

}  // namespace haulout::agent
