// Shared state of all TLS connections of one client or server: trusted CAs, own certificate, last session. Immutable
// except for the session. New credentials need a new context. Also converts OpenSSL's errors to messages. No I/O,
// except that it may read the system's CA store. Does not verify by itself: the wire that uses native() must do what
// verifies() and server_name() say (http/wire.cpp), and must hold a shared_ptr to the context.
#pragma once

#include <boost/system/error_code.hpp>
#include <memory>
#include <string>
#include <vector>

#include "http/client.hpp"

// OpenSSL's types, declared here so that only files that use them include its headers.
struct ssl_st;
struct ssl_ctx_st;
struct ssl_session_st;
struct x509_store_ctx_st;

namespace haulout::http {

class TlsContext {
 public:
  // for_client() and for_server() fail with Errc::tls if the PEM data cannot be parsed, or if key and certificate do
  // not match.
  static Result<std::shared_ptr<TlsContext>> for_client(const TlsOptions& options);
  static Result<std::shared_ptr<TlsContext>> for_server(const TlsOptions& options);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  ssl_ctx_st* native() const { return context_; }
  bool verifies() const { return verify_; }
  bool has_own_ca() const { return has_own_ca_; }
  const std::string& server_name() const { return server_name_; }

  // offer_session() lets the next handshake resume the last session. Call forget_session() after a failed handshake.
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

// Why a certificate was rejected. note() fills it in while OpenSSL verifies the certificate.
struct CertificateVerdict {
  int error = 0;  // 0 or X509_V_ERR_…
  int depth = 0;  // 0: the peer's own certificate; otherwise a CA certificate above it
  // The host names and addresses for which the peer's certificate is valid.
  std::vector<std::string> names;
  std::string not_before;
  std::string not_after;

  void note(x509_store_ctx_st* store);
};

// What the message of a failed handshake says about the peer and this side.
struct HandshakeSubject {
  std::string peer;  // "10.0.0.1:6443"
  std::string host;  // the name that the certificate should have
  bool own_ca = false;
  bool we_are_client = true;
};

// Returns the error of a failed handshake. Its message is one sentence that names the peer, the cause and, if there is
// one, the remedy. Pure.
Error handshake_error(const HandshakeSubject& subject, const CertificateVerdict& verdict,
                      const boost::system::error_code& failure);
// Returns the message for a TLS alert by which the peer rejected this side's certificate or ended the connection.
// Returns an empty string if `failure` is not an alert. Pure.
std::string refused_by_alert(const std::string& peer, const boost::system::error_code& failure);

}  // namespace haulout::http
