// What every part that accesses the host needs. The members are borrowed and must outlive the parts made from them.
#pragma once

#include <boost/asio/any_io_executor.hpp>

#include "agent/dbus/bus.hpp"
#include "agent/hosts/host_root.hpp"
#include "retry/clock.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

struct HostAccess {
  boost::asio::any_io_executor executor;
  Clock& clock;
  Rng& rng;
  const HostRoot& root;
  Bus& bus;  // the caller runs it if uses_bus() is true
};

}  // namespace haulout::agent
