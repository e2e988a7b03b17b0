// Reads small files that contain configuration or secrets, and loads the credentials of a Connection from its files as
// they are now. All functions that read files block. They fail with Errc::unavailable; the message names the file, the
// cause and, if one is known, the remedy, never the content. load_token() and load_tls() also name the origin.
#pragma once

#include <string>

#include "k8s/credentials.hpp"
#include "retry/task.hpp"

namespace haulout::k8s {

// `what` names the role of the file in messages: "kubeconfig", "token file". Fails if the file is larger than
// 16 MiB.
Result<std::string> read_credential_file(const std::string& what, const std::string& path);
// Returns true if no file has this name. A file that exists and cannot be read is not missing.
bool is_missing(const std::string& path);

// Return true if load_token() or load_tls() would read a file, so that the result may change. tls_is_in_files() does
// not check whether the endpoint uses TLS; without TLS, load_tls() reads nothing.
bool token_is_in_file(const Connection& connection);
bool tls_is_in_files(const Connection& connection);

// Returns the bearer token, or an empty string if the connection has none (a plugin or a password does not count).
// Removes the blanks around the content of the token file, and fails if the file is empty or the token has control
// characters. If the file cannot be read, uses the inline token if there is one, with the same checks. Without a file,
// returns the inline token as it is: the functions of credentials.hpp have trimmed and checked it.
Result<std::string> load_token(const Connection& connection);
// Returns the TLS options of the connection; without CA, certificate and key if its endpoint does not use TLS. If a
// file cannot be read, inline data for the same purpose is used if there is some; an empty file is an error. Does not
// check that they are PEM or fit together; http::Client does.
Result<http::TlsOptions> load_tls(const Connection& connection);

// Describes the sources of the TLS material, for errors of http::Client: "client certificate /a with key /b, CA /c".
std::string describe_tls(const Connection& connection);

}  // namespace haulout::k8s
