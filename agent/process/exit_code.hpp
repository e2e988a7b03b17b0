// Exit codes of the program, computed from results. Pure. Documented in docs/cli.md; scripts rely on them.
#pragma once

#include <vector>

#include "drain/report.hpp"

namespace haulout::agent {

inline constexpr int exit_done = 0;
inline constexpr int exit_not_done = 1;  // blocked, refused, node unknown or deleted, failed
inline constexpr int exit_usage = 2;
inline constexpr int exit_connection = 3;  // kubeconfig, connection or permission

int exit_code(const drain::Report& report);
// Returns the largest exit code of several drains.
int exit_code(const std::vector<drain::Report>& reports);
// Returns the exit code for a failed request outside a drain (cordon, resolving a selector).
int exit_code(const Error& error);
// Returns the exit code of an agent whose configuration was accepted. Never returns exit_usage, because a service
// manager does not restart the agent after it, and an error that the agent finds by a request, such as a missing label,
// may be resolved later.
int exit_code_of_service(const Error& error);
// Returns the exit code as a shell does: 129 for SIGHUP, 130 for SIGINT, 143 for SIGTERM.
int exit_code_of_signal(int signal);

}  // namespace haulout::agent
