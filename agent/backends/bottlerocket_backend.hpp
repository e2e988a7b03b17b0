// Bottlerocket: image updates by its API on /run/api.sock. Bottlerocket looks for updates only on request, so pending()
// refreshes the list of updates regularly. apply() has the image written to the other partition and marked for the next
// boot.
//
// The transport must reach the API (see bottlerocket_client). Transport, clock and Rng must outlive the back end.
#pragma once

#include "agent/backends/bottlerocket_api.hpp"
#include "agent/ports/backend.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// Pure. `ready`: yes, to the version on the other partition. `available` and `staged`: yes, to the chosen version;
// `staged` without a chosen version is no, because the update was withdrawn. `idle`: no, or unknown if the last refresh
// failed. A status that contradicts itself is unknown.
Pending bottlerocket_answer(const BottlerocketStatus& status);

class BottlerocketBackend final : public Backend {
 public:
  BottlerocketBackend(http::Transport& transport, Clock& clock, Rng& rng)
      : api_(transport, clock), clock_(clock), rng_(rng) {}

  std::string name() const override { return "bottlerocket"; }
  boost::asio::awaitable<Pending> pending(TimePoint deadline) override;
  Task<std::string> booted(TimePoint deadline) override;
  // An empty target means the version that is in place for the next boot, else the chosen one. Errc::invalid if another
  // version is offered or in place by now; then call pending() again.
  Task<> apply(std::string target, TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;

 private:
  Task<BottlerocketStatus> current(TimePoint deadline);
  bool refresh_is_due(const BottlerocketStatus& status) const;

  BottlerocketApi api_;
  Clock& clock_;
  Rng& rng_;
  TimePoint next_refresh_ = TimePoint::min();
  // The API reports only the last command. So a refresh and an apply() must not run commands at the same time.
  bool refreshing_ = false, applying_ = false;
};

}  // namespace haulout::agent
