#include "http/tls_context.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address_v6.hpp>
#include <boost/asio/ssl/error.hpp>

#include "http/wire.hpp"

namespace haulout::http {
namespace {

template <auto free_function>
struct Freer {
  template <class T>
  void operator()(T* object) const {
    free_function(object);
  }
};
using Bio = std::unique_ptr<BIO, Freer<BIO_free>>;
using X509Ptr = std::unique_ptr<X509, Freer<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;

Bio bio_of(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Returns OpenSSL's reason for the last failure, and empties its error queue.
std::string openssl_reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(code);
  ERR_clear_error();
  return reason != nullptr ? reason : "unknown error";
}

std::vector<X509Ptr> certificates_of(const std::string& pem) {
  std::vector<X509Ptr> all;
  const Bio bio = bio_of(pem);
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) all.emplace_back(one);
  return all;
}

int refuse_passphrase(char*, int, int, void*) {
  return 0;  // otherwise OpenSSL would prompt on the terminal
}

// Returns 1 if `issuer` has issued `subject`, otherwise 0. Replaces OpenSSL's own check, and also checks the signature,
// as Go does. Without that, OpenSSL takes the first certificate with the issuer's name and does not look further if its
// key does not match. Verification then fails if a CA was replaced by another CA of the same name and neither has a key
// identifier. (Go's CAs had none before 1.15.)
int has_issued(X509_STORE_CTX*, X509* subject, X509* issuer) {
  if (X509_check_issued(issuer, subject) != X509_V_OK) return 0;
  ERR_set_mark();
  const bool signed_it = X509_verify(subject, X509_get0_pubkey(issuer)) == 1;
  ERR_pop_to_mark();
  return signed_it ? 1 : 0;
}

Result<> load_ca(SSL_CTX* context, const std::string& pem) {
  const auto certificates = certificates_of(pem);
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string reason = openssl_reason();
  if (certificates.empty() || !at_end)
    return Error(Errc::tls, "the CA data is not a list of PEM certificates (" + reason + ")");
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  for (const auto& certificate : certificates) X509_STORE_add_cert(store, certificate.get());
  // As in Go, every certificate of the bundle is trusted, including intermediates and the server's own certificate.
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  ERR_clear_error();
  return {};
}

Result<> load_identity(SSL_CTX* context, const TlsOptions& options) {
  const auto chain = certificates_of(options.client_cert_pem);
  ERR_clear_error();
  if (chain.empty()) return Error(Errc::tls, "the client certificate is not a PEM certificate");
  const Bio bio = bio_of(options.client_key_pem);
  const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, refuse_passphrase, nullptr));
  if (!key)
    return Error(Errc::tls, "the client key is not a PEM private key without a passphrase (" + openssl_reason() + ")");
  if (SSL_CTX_use_certificate(context, chain.front().get()) != 1)
    return Error(Errc::tls, "the client certificate cannot be used (" + openssl_reason() + ")");
  for (std::size_t i = 1; i < chain.size(); ++i) SSL_CTX_add1_chain_cert(context, chain[i].get());
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1)
    return Error(Errc::tls, "the client key does not belong to the client certificate (" + openssl_reason() + ")");
  return {};
}

constexpr std::array<unsigned char, 9> http11 = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

int select_http11(SSL*, const unsigned char** chosen, unsigned char* size, const unsigned char* offered,
                  unsigned offered_size, void*) {
  unsigned char* selected = nullptr;
  const int found = SSL_select_next_proto(&selected, size, http11.data(), static_cast<unsigned>(http11.size()), offered,
                                          offered_size);
  *chosen = selected;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

int owner_index() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

std::string printed(const ASN1_TIME* time) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (ASN1_TIME_print_ex(bio.get(), time, ASN1_DTFLGS_ISO8601) != 1) return "an unreadable date";
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

std::vector<std::string> names_of(X509* certificate) {
  std::vector<std::string> names;
  using Names = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>>;
  const Names all(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all.get(), i);
    if (name->type == GEN_DNS) {
      names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                         static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName)));
    } else if (name->type == GEN_IPADD) {
      const ASN1_OCTET_STRING* address = name->d.iPAddress;
      const unsigned char* bytes = ASN1_STRING_get0_data(address);
      if (ASN1_STRING_length(address) == 4) {
        names.push_back(fmt::format("{}.{}.{}.{}", bytes[0], bytes[1], bytes[2], bytes[3]));
      } else if (ASN1_STRING_length(address) == 16) {
        boost::asio::ip::address_v6::bytes_type raw{};
        std::copy_n(bytes, raw.size(), raw.begin());
        names.push_back(boost::asio::ip::address_v6(raw).to_string());
      }
    }
  }
  return names;
}

}  // namespace

TlsContext::~TlsContext() {
  SSL_SESSION_free(session_);
  SSL_CTX_free(context_);
}

Result<std::shared_ptr<TlsContext>> TlsContext::make(const TlsOptions& options, bool server) {
  ERR_clear_error();
  SSL_CTX* native = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
  if (native == nullptr) return Error(Errc::tls, "OpenSSL cannot make a context (" + openssl_reason() + ")");
  std::shared_ptr<TlsContext> context(new TlsContext(native));
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  X509_STORE_set_check_issued(SSL_CTX_get_cert_store(native), has_issued);
  context->server_name_ = options.server_name;
  context->has_own_ca_ = !options.ca_pem.empty();
  if (context->has_own_ca_) {
    if (auto loaded = load_ca(native, options.ca_pem); !loaded) return std::move(loaded).error();
  } else if (!server) {
    SSL_CTX_set_default_verify_paths(native);
  }
  if (server || !options.client_cert_pem.empty()) {
    if (auto loaded = load_identity(native, options); !loaded) return std::move(loaded).error();
  }
  return context;
}

Result<std::shared_ptr<TlsContext>> TlsContext::for_client(const TlsOptions& options) {
  auto made = make(options, false);
  if (!made) return made;
  auto& context = **made;
  context.verify_ = options.verify;
  SSL_CTX_set_alpn_protos(context.native(), http11.data(), static_cast<unsigned>(http11.size()));
  context.keep_sessions();
  return made;
}

Result<std::shared_ptr<TlsContext>> TlsContext::for_server(const TlsOptions& options) {
  auto made = make(options, true);
  if (!made) return made;
  auto& context = **made;
  SSL_CTX_set_alpn_select_cb(context.native(), select_http11, nullptr);
  context.verify_ = context.has_own_ca_;
  // The context gets a session ID context, because without one OpenSSL refuses to resume a session with a client
  // certificate.
  constexpr std::array<unsigned char, 7> application = {'h', 'a', 'u', 'l', 'o', 'u', 't'};
  SSL_CTX_set_session_id_context(context.native(), application.data(), static_cast<unsigned>(application.size()));
  return made;
}

void TlsContext::keep_sessions() {
  SSL_CTX_set_ex_data(context_, owner_index(), this);
  SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context_, [](SSL* ssl, SSL_SESSION* session) {
    auto* owner = static_cast<TlsContext*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), owner_index()));
    SSL_SESSION_free(owner->session_);
    owner->session_ = session;
    return 1;  // this callback takes over the reference to the session
  });
}

void TlsContext::offer_session(SSL* ssl) const {
  if (session_ == nullptr || SSL_SESSION_is_resumable(session_) != 1) return;
  // The certificate of a resumed session is not verified again. So the session is not offered if its certificate has
  // expired.
  X509* certificate = SSL_SESSION_get0_peer(session_);
  if (certificate == nullptr || X509_cmp_current_time(X509_get0_notAfter(certificate)) <= 0) return;
  SSL_set_session(ssl, session_);
}

void TlsContext::forget_session() {
  SSL_SESSION_free(session_);
  session_ = nullptr;
}

void CertificateVerdict::note(X509_STORE_CTX* store) {
  error = X509_STORE_CTX_get_error(store);
  depth = X509_STORE_CTX_get_error_depth(store);
  if (X509* current = X509_STORE_CTX_get_current_cert(store)) {
    not_before = printed(X509_get0_notBefore(current));
    not_after = printed(X509_get0_notAfter(current));
  }
  if (X509* leaf = X509_STORE_CTX_get0_cert(store)) names = names_of(leaf);
}

std::string certificate_common_name(const std::string& pem) {
  const auto certificates = certificates_of(pem);
  ERR_clear_error();
  if (certificates.empty()) return "";
  const X509_NAME* subject = X509_get_subject_name(certificates.front().get());
  const int index = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (index < 0) return "";
  unsigned char* text = nullptr;
  const int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, index)));
  if (size < 0) return "";
  std::string name(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
  OPENSSL_free(text);
  return name;
}

// The messages for OpenSSL's verification results and errors.

namespace {

using Ec = boost::system::error_code;

bool is_openssl(const Ec& failure) {
  return failure.category() == boost::asio::error::get_ssl_category();
}

int reason_of(const Ec& failure) {
  return ERR_GET_REASON(static_cast<unsigned long>(static_cast<unsigned>(failure.value())));
}

std::string reason_text(const Ec& failure) {
  const char* reason = ERR_reason_error_string(static_cast<unsigned long>(static_cast<unsigned>(failure.value())));
  return reason != nullptr ? reason : failure.message();
}

// Returns the number of the peer's alert (RFC 8446 6), or nullopt if `failure` is not an alert.
std::optional<int> alert_of(const Ec& failure) {
  if (!is_openssl(failure) || reason_of(failure) < SSL_AD_REASON_OFFSET) return std::nullopt;
  return reason_of(failure) - SSL_AD_REASON_OFFSET;
}

bool is_about_certificate(int alert) {
  switch (alert) {
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_CERTIFICATE_REQUIRED: return true;
    default: return false;
  }
}

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const auto& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

std::string wrong_name(const HandshakeSubject& subject, const CertificateVerdict& verdict) {
  if (verdict.names.empty())
    return fmt::format(
        "the certificate of {} is not valid for host {}, because its subject alternative names name no host; renew it "
        "with that name",
        subject.peer, subject.host);
  return fmt::format(
      "the certificate of {} is not valid for host {}; it names {}; if this is the right server, use one of these "
      "names in its address (or, in a kubeconfig, as tls-server-name)",
      subject.peer, subject.host, joined(verdict.names));
}

std::string untrusted(const HandshakeSubject& subject, const CertificateVerdict& verdict) {
  const char* cause = X509_verify_cert_error_string(verdict.error);
  if (subject.own_ca)
    return fmt::format(
        "the certificate of {} is not signed by the given CA ({}); check the CA (in a kubeconfig: "
        "certificate-authority)",
        subject.peer, cause);
  return fmt::format(
      "the certificate of {} is not signed by a CA that this machine trusts ({}); configure the server's CA (in a "
      "kubeconfig: certificate-authority)",
      subject.peer, cause);
}

std::string certificate_problem(const HandshakeSubject& subject, const CertificateVerdict& verdict) {
  const std::string whose = verdict.depth == 0 ? fmt::format("the certificate of {}", subject.peer)
                                               : fmt::format("a CA certificate above that of {}", subject.peer);
  switch (verdict.error) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return wrong_name(subject, verdict);
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return fmt::format("{} expired on {}; renew it, or correct the clock of this machine if that is wrong", whose,
                         verdict.not_after);
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format("{} is not valid before {}; is the clock of this machine right?", whose, verdict.not_before);
    case X509_V_ERR_INVALID_PURPOSE:
      return fmt::format(
          "{} is not for servers (its extended key usage names neither serverAuth nor any); renew it with serverAuth",
          whose);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_CERT_UNTRUSTED: return untrusted(subject, verdict);
    default:
      return fmt::format("the certificate of {} was refused ({})", subject.peer,
                         X509_verify_cert_error_string(verdict.error));
  }
}

}  // namespace

std::string refused_by_alert(const std::string& peer, const Ec& failure) {
  const auto alert = alert_of(failure);
  if (!alert) return "";
  if (*alert == SSL_AD_CERTIFICATE_REQUIRED)
    return fmt::format("{} requires a client certificate, but none was sent ({})", peer, reason_text(failure));
  if (is_about_certificate(*alert))
    return fmt::format("{} refused the client certificate ({})", peer, reason_text(failure));
  return fmt::format("{} ended the TLS connection ({})", peer, reason_text(failure));
}

Error handshake_error(const HandshakeSubject& subject, const CertificateVerdict& verdict, const Ec& failure) {
  if (verdict.error != X509_V_OK) return Error(Errc::tls, certificate_problem(subject, verdict));
  if (!is_openssl(failure)) return lost_connection(subject.peer, "during the TLS handshake", failure);
  if (const std::string alert = refused_by_alert(subject.peer, failure); !alert.empty()) return Error(Errc::tls, alert);
  const int reason = reason_of(failure);
  if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST || reason == SSL_R_PACKET_LENGTH_TOO_LONG) {
    const std::string way_out =
        subject.we_are_client ? "; is it a plain HTTP server (http:// instead of https://)?" : "";
    return Error(Errc::tls, fmt::format("{} does not use TLS ({}){}", subject.peer, reason_text(failure), way_out));
  }
  return Error(Errc::tls, fmt::format("the TLS handshake with {} failed ({})", subject.peer, reason_text(failure)));
}

}  // namespace haulout::http
