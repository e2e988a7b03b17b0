// Certificates made on the spot, in memory: a CA, and what it signs.
#pragma once

#include <memory>
#include <string>
#include <vector>

struct evp_pkey_st;
struct x509_st;

namespace haulout::testing {

struct CertificateSpec {
  std::string common_name = "test";
  std::vector<std::string> dns_names;
  std::vector<std::string> addresses;
  long valid_from = -3600;  // seconds from now
  long valid_until = 3600;
  // Extensions, as OpenSSL's configuration has them; empty: without.
  std::string key_usage{};           // "critical,keyCertSign"
  std::string extended_key_usage{};  // "clientAuth,serverAuth"
  std::string basic_constraints{};   // "critical,CA:TRUE"
};

struct Identity {
  std::string certificate_pem;
  std::string key_pem;
};

Identity self_signed(const CertificateSpec& spec);

class CertificateAuthority {
 public:
  explicit CertificateAuthority(const std::string& common_name);
  const std::string& pem() const { return pem_; }
  Identity issue(const CertificateSpec& spec) const;
  // One below this, whether or not its certificate may be one.
  CertificateAuthority issue_authority(const CertificateSpec& spec) const;

 private:
  CertificateAuthority() = default;

  std::shared_ptr<evp_pkey_st> key_;
  std::shared_ptr<x509_st> certificate_;
  std::string pem_;
};

}  // namespace haulout::testing
