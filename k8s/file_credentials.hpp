// The credentials of a Connection as they stand in its files right now. Errors are Errc::unavailable and name the
// origin, the file, the cause and the way out.
#pragma once

#include "k8s/credentials.hpp"

namespace haulout::k8s {

bool token_is_in_file(const Connection& connection);
bool tls_is_in_files(const Connection& connection);

// Empty when the connection has no token.
Result<std::string> load_token(const Connection& connection);
// Not checked to be PEM or to fit together: http::Client does that.
Result<http::TlsOptions> load_tls(const Connection& connection);

// "client certificate /a with key /b, CA /c": what http::Client was given, for its complaints.
std::string describe_tls(const Connection& connection);

}  // namespace haulout::k8s
