// Runs programs of the host as transient units of systemd.
#pragma once

#include "agent/dbus/bus.hpp"
#include "agent/hosts/host_programs.hpp"

namespace haulout::agent {

// Runs each program as a transient unit of the host's systemd. The agent's sandbox or container does not restrict it.
// The program continues if the agent ends, or if run() is cancelled. Fails as HostPrograms::run() says, otherwise as
// Bus::exchange() does.
class UnitPrograms final : public HostPrograms {
 public:
  // Borrows `bus`.
  explicit UnitPrograms(Bus& bus) : bus_(bus) {}
  Task<ProgramEnd> run(HostProgram program, TimePoint deadline) override;
  Task<bool> runs(std::string unit, TimePoint deadline) override;

 private:
  Bus& bus_;
};

}  // namespace haulout::agent
