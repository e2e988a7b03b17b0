// Converts OpenSSL's verification results and errors to messages.
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>

#include "http/tls_context.hpp"
#include "http/wire.hpp"

namespace haulout::http {
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
  return all.empty() ? "nothing" : all;
}

std::string wrong_name(const HandshakeSubject& subject, const CertificateVerdict& verdict) {
  const std::string way_out =
      verdict.names.empty() ? "" : "; if this is the right server, set tls-server-name to one of these";
  return fmt::format("the certificate of {} is not valid for host {}; it names {}{}", subject.peer, subject.host,
                     joined(verdict.names), way_out);
}

std::string untrusted(const HandshakeSubject& subject, const CertificateVerdict& verdict) {
  const char* cause = X509_verify_cert_error_string(verdict.error);
  if (subject.own_ca)
    return fmt::format("the certificate of {} is not signed by the given CA ({})", subject.peer, cause);
  return fmt::format(
      "the certificate of {} is not signed by a CA that this machine trusts ({}); give the server's CA "
      "(certificate-authority)",
      subject.peer, cause);
}

std::string certificate_problem(const HandshakeSubject& subject, const CertificateVerdict& verdict) {
  const std::string whose = verdict.depth == 0 ? fmt::format("the certificate of {}", subject.peer)
                                               : fmt::format("a CA certificate above that of {}", subject.peer);
  switch (verdict.error) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return wrong_name(subject, verdict);
    case X509_V_ERR_CERT_HAS_EXPIRED: return fmt::format("{} expired on {}", whose, verdict.not_after);
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format("{} is not valid before {}; is the clock of this machine right?", whose, verdict.not_before);
    case X509_V_ERR_INVALID_PURPOSE:
      return fmt::format("{} is not for servers (its extended key usage names neither serverAuth nor any)", whose);
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

bool is_orderly_end(const Ec& failure) {
  return failure == boost::asio::error::eof;
}

Error lost_connection(const std::string& peer, std::string_view when, const Ec& failure) {
  if (const std::string alert = refused_by_alert(peer, failure); !alert.empty()) return Error(Errc::tls, alert);
  if (is_orderly_end(failure) || failure == boost::asio::ssl::error::stream_truncated)
    return Error(Errc::reset, fmt::format("{} closed the connection {}", peer, when));
  return Error(Errc::reset, fmt::format("the connection to {} was lost {} ({})", peer, when, failure.message()));
}

}  // namespace haulout::http
