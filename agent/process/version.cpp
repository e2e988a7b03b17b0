#include "agent/process/version.hpp"

#include <fmt/format.h>

#ifndef HAULOUT_VERSION
#define HAULOUT_VERSION "0.0.0"
#endif

namespace haulout::agent {

std::string_view version() {
  return HAULOUT_VERSION;
}

std::string user_agent(std::string_view command) {
  return fmt::format("haulout/{} ({})", version(), command);
}

}  // namespace haulout::agent
