// Reads small files that contain configuration or secrets, and loads the credentials of a Connection from its files as
// they are now. Fails with Errc::unavailable. The message names the origin, the file, the cause and the remedy, never
// the content.
#pragma once

#include <string>

#include "k8s/credentials.hpp"
#include "retry/task.hpp"

namespace haulout::k8s {

// `what` names the role of the file: "kubeconfig", "token file". Reads at most 16 MiB. Blocks while it reads.
Result<std::string> read_credential_file(const std::string& what, const std::string& path);
// Returns true if no file has this name. A file that exists and cannot be read is not missing.
bool is_missing(const std::string& path);

bool token_is_in_file(const Connection& connection);
bool tls_is_in_files(const Connection& connection);

// Returns the bearer token, or an empty string if the connection has none.
Result<std::string> load_token(const Connection& connection);
// Returns the CA, the client certificate and its key. Does not check that they are PEM or fit together; http::Client
// does.
Result<http::TlsOptions> load_tls(const Connection& connection);

// Describes the sources of the TLS material, for errors of http::Client: "client certificate /a with key /b, CA /c".
std::string describe_tls(const Connection& connection);

}  // namespace haulout::k8s
