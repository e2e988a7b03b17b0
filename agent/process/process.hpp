// The program's environment, which each command receives: executor, clock, output, environment variables.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <string>

#include "agent/process/sink.hpp"
#include "k8s/credentials.hpp"
#include "retry/clock.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// `main` owns this object and everything that it refers to.
struct Process {
  boost::asio::any_io_executor executor;
  Clock& clock;
  Rng& rng;
  FdSink& out;
  FdSink& err;
  k8s::Environment environment;
  std::string program;  // the program's name as the user called it
};

}  // namespace haulout::agent
