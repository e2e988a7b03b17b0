// Exit codes: a pure function of what happened. Documented in docs/cli.md; scripts rely on them.
#pragma once

#include <vector>

#include "drain/report.hpp"

namespace haulout::agent {

inline constexpr int exit_done = 0;
inline constexpr int exit_not_done = 1;  // blocked, refused, node unknown or gone, failed
inline constexpr int exit_usage = 2;
inline constexpr int exit_connection = 3;  // kubeconfig, connection or permission

int exit_code(const drain::Report& report);
// The largest of several.
int exit_code(const std::vector<drain::Report>& reports);
// Of a request outside a drain (cordon, resolving a selector).
int exit_code(const Error& error);
// Of an agent whose configuration was accepted: never exit_usage, after which a service manager does not start it
// again. What has been found out by asking, such as a label that is missing, may heal.
int exit_code_of_service(const Error& error);
// As a shell counts it: 129 SIGHUP, 130 SIGINT, 143 SIGTERM.
int exit_code_of_signal(int signal);

}  // namespace haulout::agent
