#include "k8s/exec_plugin.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  const auto credential = k8s::decode_exec_credential(input, "client.authentication.k8s.io/v1");
  if (!credential) return must(!credential.error().message().empty(), "an error says what it is");
  must(!credential->token.empty() || !credential->client_cert_pem.empty(), "a credential is something to show");
  must(credential->client_cert_pem.empty() == credential->client_key_pem.empty(), "a certificate comes with its key");
}

static const Target target("exec_credential", one);

}  // namespace haulout::fuzz
