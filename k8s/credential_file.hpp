// Reads small files that contain configuration or secrets, and loads the credentials of a Connection from its files as
// they are now. Errors are Errc::unavailable. They name the origin, the file, the cause and the remedy, never the
// content.
#pragma once

#include <string>

#include "k8s/credentials.hpp"
#include "retry/task.hpp"

namespace haulout::k8s {

// `what` names the role of the file: "kubeconfig", "token file". Reads at most 16 MiB. Blocks while it reads.
Result<std::string> read_credential_file(const std::string& what, const std::string& path);
// True if no file has this name. A file that exists and cannot be read is not missing.
bool is_missing(const std::string& path);

bool token_is_in_file(const Connection& connection);
bool tls_is_in_files(const Connection& connection);

// Returns an empty string if the connection has no token.
Result<std::string> load_token(const Connection& connection);
// Does not check that the parts are PEM or fit together; http::Client does.
Result<http::TlsOptions> load_tls(const Connection& connection);

// Describes the sources of the TLS material, for errors of http::Client: "client certificate /a with key /b, CA /c".
std::string describe_tls(const Connection& connection);

}  // namespace haulout::k8s
