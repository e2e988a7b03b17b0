// Reading small files that hold configuration or secrets. Errors are Errc::unavailable and name the file, the cause and
// the way out, never the content.
#pragma once

#include <string>

#include "retry/task.hpp"

namespace haulout::k8s {

// `what` names the file's role: "kubeconfig", "token file". At most 16 MiB. Blocks as files do.
Result<std::string> read_credential_file(const std::string& what, const std::string& path);
// Nothing is there under that name; a file that exists and cannot be read is not missing.
bool is_missing(const std::string& path);

}  // namespace haulout::k8s
