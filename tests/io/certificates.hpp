// Certificates that tests make in memory: a CA and the certificates that it signs. Throws if OpenSSL fails. No I/O.
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
  // Extensions in the format of OpenSSL's configuration. If a string is empty, the certificate lacks the extension.
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
  // Returns a CA whose certificate this CA has signed. `spec` decides whether that certificate may be a CA.
  CertificateAuthority issue_authority(const CertificateSpec& spec) const;

 private:
  CertificateAuthority() = default;

  std::shared_ptr<evp_pkey_st> key_;
  std::shared_ptr<x509_st> certificate_;
  std::string pem_;
};

}  // namespace haulout::testing
