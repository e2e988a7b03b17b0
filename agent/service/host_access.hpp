// What the parts that touch the host are built upon. Borrowed; must outlive whatever is made of it.
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
  Bus& bus;  // somebody runs it where uses_bus() says so
};

}  // namespace haulout::agent
