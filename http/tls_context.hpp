// What all TLS connections of one client or server share: trust, own certificate, the last session. Immutable but for
// the session; a change of credentials makes a new one. Also OpenSSL's verdicts in words.
#pragma once

#include <boost/system/error_code.hpp>
#include <memory>
#include <string>
#include <vector>

#include "http/client.hpp"

// OpenSSL's own types, so that only the files that use them include its headers.
struct ssl_st;
struct ssl_ctx_st;
struct ssl_session_st;
struct x509_store_ctx_st;

namespace haulout::http {

class TlsContext {
 public:
  // Errc::tls when the PEM data does not parse, or key and certificate do not belong together.
  static Result<std::shared_ptr<TlsContext>> for_client(const TlsOptions& options);
  static Result<std::shared_ptr<TlsContext>> for_server(const TlsOptions& options);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  ssl_ctx_st* native() const { return context_; }
  bool verifies() const { return verify_; }
  bool has_own_ca() const { return has_own_ca_; }
  const std::string& server_name() const { return server_name_; }

  // The next handshake of this client may resume the last session; forget_session() after one that failed.
  void offer_session(ssl_st* ssl) const;
  void forget_session();

 private:
  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}
  static Result<std::shared_ptr<TlsContext>> make(const TlsOptions& options, bool server);
  void keep_sessions();

  ssl_ctx_st* context_;
  ssl_session_st* session_ = nullptr;
  std::string server_name_;
  bool verify_ = true;
  bool has_own_ca_ = false;
};

// Why a certificate was refused, noted while OpenSSL verifies it.
struct CertificateVerdict {
  int error = 0;  // X509_V_ERR_…
  int depth = 0;  // 0: the server's own certificate
  std::vector<std::string> names;
  std::string not_before;
  std::string not_after;

  void note(x509_store_ctx_st* store);
};

struct HandshakeSubject {
  std::string peer;  // "10.0.0.1:6443"
  std::string host;  // the name that was expected
  bool own_ca = false;
  bool we_are_client = true;
};

// One sentence that names the peer, the cause and, where there is one, the way out.
Error handshake_error(const HandshakeSubject& subject, const CertificateVerdict& verdict,
                      const boost::system::error_code& failure);
// A TLS alert about our certificate, in words; empty when `failure` is something else.
std::string refused_by_alert(const std::string& peer, const boost::system::error_code& failure);

}  // namespace haulout::http
