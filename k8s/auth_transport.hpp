// Transport decorator that adds the identity to each request: the bearer token or basic authentication,
// impersonation headers, the path prefix and the User-Agent. Reads the files of credentials again, because they rotate:
// before a request if the last read is older than 60 s, and at once after a 401 or a TLS failure. Runs exec plugins as
// child processes without blocking the io_context.
//
// After a 401 it reloads the credentials and sends the request once more, unless no credential comes from a file or a
// plugin. After a TLS failure it sends the request once more if the TLS files have changed. If a file cannot be read,
// or certificate and key do not fit together, the old content stays in use. Concurrent requests share one run of a
// plugin. The plugin has its own time limit, and the deadline of a request is extended by the time that the request
// waits for the plugin. No message contains credentials.
// Fails with the errors of Transport, and with Errc::unavailable if no credentials can be obtained. Cancellable. Owns
// its http::Client; borrows the clock.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "http/client.hpp"
#include "http/transport.hpp"
#include "k8s/credentials.hpp"
#include "k8s/exec_plugin.hpp"
#include "retry/wake_channel.hpp"

namespace haulout::k8s {

// What AuthCore needs of the network and of exec plugins.
struct AuthHooks {
  // Sets the certificates and the key for later connections. On failure (for example a certificate that does not fit
  // its key) the old ones stay in use.
  std::function<Result<>(http::TlsOptions)> set_tls;
  // Runs the plugin once (run_exec_plugin()).
  std::function<Task<ExecCredential>(ExecPlugin, std::string ca_pem)> run_plugin;
};

// The logic of AuthTransport over any Transport: adds the identity to every request, reloads files that rotate, and
// renews credentials of plugins when they expire. It is a class of its own so that tests need no network. It has the
// contract of AuthTransport (errors, cancellation).
class AuthCore final : public http::Transport {
 public:
  // `token` and `tls` are the results of load_token() and load_tls(). `inner` already uses `tls`. Borrows `clock` and
  // `inner`.
  AuthCore(boost::asio::any_io_executor executor, Clock& clock, http::Transport& inner, AuthHooks hooks,
           Connection connection, std::string user_agent, std::string token, http::TlsOptions tls);

  boost::asio::awaitable<void> log_in();
  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override;
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override;

  const Connection& connection() const { return connection_; }

 private:
  // Version numbers of the credentials with which a request was sent. If a number has grown since, another request has
  // renewed these credentials, and they are not fetched again.
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

  // prepare() obtains the credentials for a request; renew() replaces those that the server has rejected. Both extend
  // the deadline by the time that a run of the plugin takes.
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

  std::string token_;
  http::TlsOptions tls_;         // the TLS options from the files and data of the connection
  http::TlsOptions tls_in_use_;  // `tls_`, with the client certificate of the plugin if it has one
  TimePoint next_check_;
  std::optional<ExecCredential> plugin_credential_;
  std::optional<Error> plugin_failure_;  // failure of the plugin's last run, if it failed
  std::optional<Error> login_failure_;   // failure of log_in(); the next request returns and clears it
  bool plugin_runs_ = false;
  WakeChannel wake_;  // wakes the waiters when a run of the plugin ends
  Generation now_;
};

class AuthTransport final : public http::Transport {
 public:
  // Reads the files of the connection; sends nothing. Fails with Errc::unavailable if they cannot be read or used.
  static Result<std::unique_ptr<AuthTransport>> create(boost::asio::any_io_executor executor, Clock& clock,
                                                       Connection connection, std::string user_agent);
  ~AuthTransport() override;

  // Runs the plugin, if there is one, before the deadline of any request starts. Does not report a failure itself: the
  // next request returns it. Cancellable.
  boost::asio::awaitable<void> log_in();
  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override;
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override;

  const Connection& connection() const;
  // Sets the callbacks for the time in which a plugin uses the terminal (exec_plugin.hpp). Without them, the plugin's
  // stderr is not shown.
  void on_plugin(PluginStage stage);

 private:
  class Impl;
  explicit AuthTransport(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace haulout::k8s
