// What AuthTransport does, over any Transport: identity on every request, files that rotate, plugins that expire.
// See auth_transport.hpp for the promises; this class exists so that they can be tested without a network.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <optional>

#include "http/transport.hpp"
#include "k8s/codec_exec_credential.hpp"
#include "k8s/credentials.hpp"

namespace haulout::k8s {

struct AuthHooks {
  // New TLS material for later connections; a failure (a pair half written) leaves the old in use.
  std::function<Result<>(http::TlsOptions)> set_tls;
  std::function<Task<ExecCredential>(ExecPlugin, std::string ca_pem)> run_plugin;
};

class AuthCore final : public http::Transport {
 public:
  // `token` and `tls` are what load_token() and load_tls() gave; `inner` already uses `tls` and must outlive this.
  AuthCore(boost::asio::any_io_executor executor, Clock& clock, http::Transport& inner, AuthHooks hooks,
           Connection connection, std::string user_agent, std::string token, http::TlsOptions tls);

  boost::asio::awaitable<void> log_in();
  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override;
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override;

  const Connection& connection() const { return connection_; }
  void on_request(std::function<void(const http::Request&)> observer) { observer_ = std::move(observer); }

 private:
  // Which credentials a request was sent with: whoever finds a newer one need not fetch it again.
  struct Generation {
    std::uint64_t files = 0;
    std::uint64_t tls = 0;
    std::uint64_t plugin = 0;
  };

  template <class T>
  Task<T> send(http::Request request, TimePoint deadline,
               Task<T> (http::Transport::*operation)(http::Request, TimePoint));
  http::Request addressed(http::Request request) const;
  void authenticate(http::Request& request) const;

  // Both put the deadline off by what the plugin takes.
  Task<> prepare(TimePoint& deadline);
  Task<> renew(Generation sent_with, TimePoint& deadline);
  bool reads_files() const;
  bool reload_files();
  Task<> reload_files_patiently(TimePoint deadline);
  Result<> use_tls(const http::TlsOptions& from_files, const std::optional<ExecCredential>& plugin);
  bool plugin_credential_holds() const;
  Task<> log_in_anew(std::uint64_t seen, TimePoint& deadline);
  Task<> fetch_plugin_credential(std::uint64_t seen);
  Task<> wait_for_plugin();

  Clock& clock_;
  http::Transport& inner_;
  AuthHooks hooks_;
  Connection connection_;
  std::string user_agent_;
  std::function<void(const http::Request&)> observer_;

  std::string token_;
  http::TlsOptions tls_;         // from files and data
  http::TlsOptions tls_in_use_;  // that, with a plugin's certificate on top
  TimePoint next_check_;
  std::optional<ExecCredential> plugin_credential_;
  std::optional<Error> plugin_failure_;  // of the last run
  std::optional<Error> login_failure_;   // of log_in(), until a request has told it
  bool plugin_runs_ = false;
  boost::asio::steady_timer gate_;  // never expires; cancelled when a run of the plugin has ended
  Generation now_;
};

}  // namespace haulout::k8s
