#include "agent/process/exit_code.hpp"

namespace haulout::agent {

int exit_code(const drain::Report& report) {
  if (report.outcome == drain::Outcome::drained) return exit_done;
  return report.outcome == drain::Outcome::failed && report.connection_failed ? exit_connection : exit_not_done;
}

int exit_code(const std::vector<drain::Report>& reports) {
  int largest = exit_done;
  for (const drain::Report& report : reports) largest = std::max(largest, exit_code(report));
  return largest;
}

int exit_code(const Error& error) {
  switch (error.code()) {
    case Errc::invalid: return exit_usage;
    case Errc::status:
      // A response without a Status object does not come from the API server.
      return (error.peer && !error.peer->structured) || error.is_status(401) || error.is_status(403) ? exit_connection
                                                                                                     : exit_not_done;
    case Errc::timeout:
    case Errc::dns:
    case Errc::unreachable:
    case Errc::tls:
    case Errc::reset:
    case Errc::protocol:
    case Errc::decode:
    case Errc::unavailable: return exit_connection;
  }
  return exit_connection;
}

int exit_code_of_service(const Error& error) {
  const int code = exit_code(error);
  return code == exit_usage ? exit_not_done : code;
}

int exit_code_of_signal(int signal) {
  return 128 + signal;
}

}  // namespace haulout::agent
