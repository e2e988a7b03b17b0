// One run of an exec credential plugin, within 60 s, or five minutes where it can ask a person. Errors are
// Errc::unavailable and name the program, what went wrong (with the end of its stderr) and the installHint.
// Cancellable: the plugin is killed.
#pragma once

#include "k8s/codec_exec_credential.hpp"
#include "k8s/credentials.hpp"

namespace haulout::k8s {

Task<ExecCredential> run_exec_plugin(Clock& clock, ExecPlugin plugin, std::string ca_pem);

}  // namespace haulout::k8s
