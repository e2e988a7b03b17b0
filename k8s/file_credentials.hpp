// Loads the credentials of a Connection from its files as they are now. Errors are Errc::unavailable and name the
// origin, the file, the cause and the remedy.
#pragma once

#include "k8s/credentials.hpp"

namespace haulout::k8s {

bool token_is_in_file(const Connection& connection);
bool tls_is_in_files(const Connection& connection);

// Returns an empty string if the connection has no token.
Result<std::string> load_token(const Connection& connection);
// Does not check that the parts are PEM or fit together; http::Client does.
Result<http::TlsOptions> load_tls(const Connection& connection);

// Describes the sources of the TLS material, for errors of http::Client: "client certificate /a with key /b, CA /c".
std::string describe_tls(const Connection& connection);

}  // namespace haulout::k8s
