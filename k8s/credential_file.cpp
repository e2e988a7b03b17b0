#include "k8s/credential_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/descriptor.hpp"

namespace haulout::k8s {

namespace {

constexpr std::size_t size_limit = std::size_t{16} << 20;

Error file_error(const std::string& what, const std::string& path, int cause) {
  const char* way_out = "";
  if (cause == ENOENT) way_out = "; check the path";
  if (cause == EACCES || cause == EPERM) way_out = "; make it readable for this user, or run as a user who may read it";
  if (cause == EISDIR) way_out = "; name the file itself";
  return Error(Errc::unavailable,
               fmt::format("cannot read {} {}: {}{}", what, path, std::generic_category().message(cause), way_out));
}

}  // namespace

Result<std::string> read_credential_file(const std::string& what, const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return file_error(what, path, errno);
  std::string content;
  char chunk[16 * 1024];
  for (;;) {
    const ssize_t count = ::read(file.get(), chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error(what, path, errno);
    if (count == 0) return content;
    content.append(chunk, static_cast<std::size_t>(count));
    if (content.size() > size_limit)
      return Error(Errc::unavailable, fmt::format("{} {} is larger than 16 MiB; is it the right file?", what, path));
  }
}

bool is_missing(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

namespace {

Result<std::string> read_of(const Connection& connection, const char* what, const std::string& file) {
  auto content = read_credential_file(what, file);
  if (!content) return std::move(content).error().with_context(connection.origin);
  return content;
}

Result<std::string> load(const Connection& connection, const char* what, const Material& material) {
  if (material.file.empty()) return material.data;
  auto content = read_of(connection, what, material.file);
  if (content && content->empty())
    return Error(Errc::unavailable, fmt::format("{}: {} {} is empty", connection.origin, what, material.file));
  if (!content && !material.data.empty()) return material.data;
  return content;
}

std::string describe(const char* what, const Material& material) {
  return fmt::format("{} {}", what, material.file.empty() ? "from its data" : material.file);
}

}  // namespace

bool token_is_in_file(const Connection& connection) {
  return !connection.token.file.empty();
}

bool tls_is_in_files(const Connection& connection) {
  return !(connection.ca.file.empty() && connection.client_cert.file.empty() && connection.client_key.file.empty());
}

Result<std::string> load_token(const Connection& connection) {
  auto token = load(connection, "token file", connection.token);
  if (!token || connection.token.file.empty()) return token;
  constexpr std::string_view space = " \t\r\n";
  const std::size_t last = token->find_last_not_of(space);
  token->erase(last == std::string::npos ? 0 : last + 1);
  token->erase(0, token->find_first_not_of(space));
  for (const char c : *token) {
    // A control character, such as a line break, could end the header and begin another.
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return Error(Errc::unavailable, fmt::format("{}: token file {} contains a control character; expected one line",
                                                  connection.origin, connection.token.file));
  }
  if (token->empty())
    return Error(Errc::unavailable,
                 fmt::format("{}: token file {} is empty", connection.origin, connection.token.file));
  return token;
}

Result<http::TlsOptions> load_tls(const Connection& connection) {
  http::TlsOptions tls;
  tls.server_name = connection.tls_server_name;
  tls.verify = connection.verify;
  if (connection.endpoint.kind != http::Endpoint::Kind::tls) return tls;
  auto ca = load(connection, "certificate authority", connection.ca);
  if (!ca) return std::move(ca).error();
  auto certificate = load(connection, "client certificate", connection.client_cert);
  if (!certificate) return std::move(certificate).error();
  auto key = load(connection, "client key", connection.client_key);
  if (!key) return std::move(key).error();
  tls.ca_pem = std::move(*ca);
  tls.client_cert_pem = std::move(*certificate);
  tls.client_key_pem = std::move(*key);
  return tls;
}

std::string describe_tls(const Connection& connection) {
  std::string out;
  if (!connection.client_cert.empty())
    out = describe("client certificate", connection.client_cert) + " with " + describe("key", connection.client_key);
  if (!connection.ca.empty()) out += (out.empty() ? "" : ", ") + describe("CA", connection.ca);
  return out.empty() ? "TLS settings" : out;
}

}  // namespace haulout::k8s
