// Encodes and decodes the two messages of the exec plugin protocol (client.authentication.k8s.io v1 and v1beta1). Pure.
// Errors are Errc::unavailable and quote nothing of the plugin's output.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "k8s/credentials.hpp"
#include "retry/clock.hpp"

namespace haulout::k8s {

struct ExecCredential {
  std::string token;
  std::string client_cert_pem;
  std::string client_key_pem;
  std::optional<WallTime> expiration;
};

// Returns the value of the environment variable KUBERNETES_EXEC_INFO.
std::string encode_exec_info(const ExecPlugin& plugin, bool interactive, const std::string& ca_pem);
Result<ExecCredential> decode_exec_credential(std::string_view output, const std::string& api_version);

}  // namespace haulout::k8s
