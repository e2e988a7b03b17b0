// The command with which people make a snapshot. Messages have it from here. docs and the help of the program have the
// same one, and it has all kinds that read_snapshot() and the audit list; tests/lint/pages_test.py compares them.
#pragma once

#include <string_view>

namespace haulout::rehearse {

inline constexpr std::string_view snapshot_command =
    "kubectl get nodes,pods,pdb,deploy,rs,sts,ds,jobs,pv,pvc,volumeattachments,quota,svc,ns,"
    "validatingwebhookconfigurations,mutatingwebhookconfigurations -A -o json";

}  // namespace haulout::rehearse
