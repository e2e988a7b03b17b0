// What the program runs in, as every command gets it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <string>

#include "agent/process/sink.hpp"
#include "k8s/credentials.hpp"
#include "retry/clock.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// Owned by main.
struct Process {
  boost::asio::any_io_executor executor;
  Clock& clock;
  Rng& rng;
  FdSink& out;
  FdSink& err;
  k8s::Environment environment;
  std::string program;  // as the user calls us
};

}  // namespace haulout::agent
