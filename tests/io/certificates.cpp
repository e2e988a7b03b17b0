#include "certificates.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <stdexcept>

namespace haulout::testing {
namespace {

using Key = std::shared_ptr<EVP_PKEY>;
using Certificate = std::shared_ptr<X509>;

void require(bool good) {
  if (!good) throw std::runtime_error("a test certificate cannot be made");
}

template <class Write>
std::string to_pem(Write write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), BIO_free);
  require(write(bio.get()) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  require(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

Certificate blank(const CertificateSpec& spec, EVP_PKEY* key) {
  static long serial = 1;
  Certificate certificate(X509_new(), X509_free);
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), spec.valid_from);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), spec.valid_until);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(spec.common_name.c_str()), -1, -1, 0);
  return certificate;
}

Key new_key() {
  return Key(EVP_EC_gen("P-256"), EVP_PKEY_free);
}

std::string pem_of(X509* certificate) {
  return to_pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

// Returns a certificate that `issuer` has signed. If `issuer` is null, the certificate is self-signed.
Certificate signed_by(X509* issuer, EVP_PKEY* issuer_key, const CertificateSpec& spec, EVP_PKEY* key) {
  Certificate certificate = blank(spec, key);
  X509* self = certificate.get();
  X509* above = issuer ? issuer : self;
  X509_set_issuer_name(self, X509_get_subject_name(above));
  std::string names;
  for (const auto& name : spec.dns_names) names += (names.empty() ? "DNS:" : ",DNS:") + name;
  for (const auto& address : spec.addresses) names += (names.empty() ? "IP:" : ",IP:") + address;
  const std::pair<int, std::string> extensions[] = {{NID_subject_alt_name, names},
                                                    {NID_basic_constraints, spec.basic_constraints},
                                                    {NID_key_usage, spec.key_usage},
                                                    {NID_ext_key_usage, spec.extended_key_usage}};
  for (const auto& [nid, value] : extensions)
    if (!value.empty()) add_extension(self, above, nid, value);
  require(X509_sign(self, issuer_key, EVP_sha256()) > 0);
  return certificate;
}

std::string pem_of(EVP_PKEY* key) {
  return to_pem([&](BIO* bio) { return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); });
}

}  // namespace

Identity self_signed(const CertificateSpec& spec) {
  const Key key = new_key();
  return {pem_of(signed_by(nullptr, key.get(), spec, key.get()).get()), pem_of(key.get())};
}

CertificateAuthority::CertificateAuthority(const std::string& common_name) : key_(new_key()) {
  CertificateSpec spec;
  spec.common_name = common_name;
  spec.basic_constraints = "critical,CA:TRUE";
  spec.key_usage = "critical,keyCertSign,cRLSign";
  certificate_ = signed_by(nullptr, key_.get(), spec, key_.get());
  pem_ = pem_of(certificate_.get());
}

Identity CertificateAuthority::issue(const CertificateSpec& spec) const {
  const Key key = new_key();
  return {pem_of(signed_by(certificate_.get(), key_.get(), spec, key.get()).get()), pem_of(key.get())};
}

CertificateAuthority CertificateAuthority::issue_authority(const CertificateSpec& spec) const {
  CertificateAuthority below;
  below.key_ = new_key();
  below.certificate_ = signed_by(certificate_.get(), key_.get(), spec, below.key_.get());
  below.pem_ = pem_of(below.certificate_.get());
  return below;
}

}  // namespace haulout::testing
