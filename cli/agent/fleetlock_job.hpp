// `haulout fleetlock-serve`: serves the FleetLock protocol over HTTP (agent/slots/fleetlock_service.hpp) until a signal
// arrives. It then answers no further request; a client that gets no answer asks again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "agent/process/logging.hpp"
#include "agent/process/process.hpp"
#include "agent/slots/fleetlock_service.hpp"
#include "cli/program/program.hpp"
#include "http/server.hpp"

namespace haulout::cli {

class FleetLockJob final : public Job {
 public:
  // Borrows `process` and the tools.
  FleetLockJob(agent::Process& process, Tools tools, const Settings& settings);

  // Returns only if the address cannot be used.
  boost::asio::awaitable<void> run() override;
  int finish(std::optional<int> signal) override;
  // Returns the port on which run() listens; 0 before.
  std::uint16_t port() const { return server_ ? server_->port() : 0; }

 private:
  boost::asio::awaitable<void> serve(http::Exchange& exchange);
  void note(const agent::FleetLockAnswer& answer);

  agent::Process& process_;
  Tools tools_;
  agent::FleetLockServiceOptions options_;
  std::string listen_;
  agent::FleetLockService service_;
  agent::Log log_;
  std::unique_ptr<http::Server> server_;
  int exit_code_ = agent::exit_done;
};

}  // namespace haulout::cli
