// Reads small files that contain configuration or secrets. Errors are Errc::unavailable. They name the file, the cause
// and the remedy, never the content.
#pragma once

#include <string>

#include "retry/task.hpp"

namespace haulout::k8s {

// `what` names the role of the file: "kubeconfig", "token file". Reads at most 16 MiB. Blocks while it reads.
Result<std::string> read_credential_file(const std::string& what, const std::string& path);
// True if no file has this name. A file that exists and cannot be read is not missing.
bool is_missing(const std::string& path);

}  // namespace haulout::k8s
