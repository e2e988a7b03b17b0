#include "k8s/auth_transport.hpp"

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/ascii.hpp"
#include "base/scope_exit.hpp"
#include "http/base64.hpp"
#include "k8s/codec.hpp"
#include "k8s/credential_file.hpp"
#include "k8s/list_budget.hpp"

namespace haulout::k8s {

namespace asio = boost::asio;

namespace {

// Interval at which the files of credentials are read again. The lifetime of a bound token is at least ten minutes, and
// the kubelet replaces the token after 80 % of it. So a new token is read long before the old one expires. client-go
// checks every minute, too.
constexpr std::chrono::seconds check_interval{60};
// Interval after a check that failed: a file could not be read, or certificate and key did not fit together, as in the
// middle of a rotation.
constexpr std::chrono::seconds recheck_interval{1};
// Pause between the attempts to read files that are being replaced. A rotation takes only moments.
constexpr std::chrono::milliseconds rotation_pause{100};
constexpr int rotation_looks = 3;

int status_of(const http::Response& response) {
  return response.status;
}
int status_of(const std::unique_ptr<http::BodyStream>& stream) {
  return stream->head().status;
}

// Returns the part <key> of the header name Impersonate-Extra-<key>. Percent-encodes characters that a header name must
// not contain, as client-go does.
std::string header_key(std::string_view key) {
  constexpr std::string_view legal = "!#$&'*+-.^_`|~";
  std::string out;
  for (const char c : key) {
    if (is_alphanumeric(c) || legal.find(c) != std::string_view::npos)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return out;
}

}  // namespace

AuthCore::AuthCore(asio::any_io_executor executor, Clock& clock, http::Transport& inner, AuthHooks hooks,
                   Connection connection, std::string user_agent, std::string token, http::TlsOptions tls)
    : clock_(clock),
      inner_(inner),
      hooks_(std::move(hooks)),
      connection_(std::move(connection)),
      user_agent_(std::move(user_agent)),
      token_(std::move(token)),
      tls_(std::move(tls)),
      tls_in_use_(tls_),
      next_check_(clock.now() + check_interval),
      wake_(executor) {
  // Drops the inline token if the connection also has a token file. Otherwise a later read of the file that fails would
  // make load_token() return the inline token again, although `token_` may be newer.
  if (token_is_in_file(connection_)) connection_.token.data.clear();
}

Task<http::Response> AuthCore::round_trip(http::Request request, TimePoint deadline) {
  return send<http::Response>(std::move(request), deadline, &http::Transport::round_trip);
}

Task<std::unique_ptr<http::BodyStream>> AuthCore::open(http::Request request, TimePoint deadline) {
  return send<std::unique_ptr<http::BodyStream>>(std::move(request), deadline, &http::Transport::open);
}

template <class T>
Task<T> AuthCore::send(http::Request request, TimePoint deadline,
                       Task<T> (http::Transport::*operation)(http::Request, TimePoint)) {
  request = addressed(std::move(request));
  bool renewed = false;
  bool reloaded_tls = false;
  for (;;) {
    CO_CHECK(co_await prepare(deadline));
    const Generation sent_with = now_;
    http::Request authenticated = request;
    authenticate(authenticated);
    auto answer = co_await (inner_.*operation)(std::move(authenticated), deadline);
    if (!answer) {
      if (answer.error().code() != Errc::tls || reloaded_tls || !tls_is_in_files(connection_))
        co_return std::move(answer);
      reloaded_tls = true;
      if (now_.tls == sent_with.tls) CO_CHECK(co_await reload_files_patiently(deadline));
      if (now_.tls == sent_with.tls) co_return std::move(answer);
      continue;
    }
    const bool can_renew = connection_.exec || reads_files();
    if (status_of(*answer) != 401 || renewed || !can_renew) co_return std::move(answer);
    renewed = true;
    CO_CHECK(co_await renew(sent_with, deadline));
  }
}

http::Request AuthCore::addressed(http::Request request) const {
  request.target = connection_.path_prefix + request.target;
  request.headers.set("User-Agent", user_agent_);
  if (connection_.impersonate_user.empty()) return request;
  request.headers.set("Impersonate-User", connection_.impersonate_user);
  if (!connection_.impersonate_uid.empty()) request.headers.set("Impersonate-Uid", connection_.impersonate_uid);
  for (const auto& group : connection_.impersonate_groups) request.headers.add("Impersonate-Group", group);
  for (const auto& [key, value] : connection_.impersonate_extra)
    request.headers.add("Impersonate-Extra-" + header_key(key), value);
  return request;
}

void AuthCore::authenticate(http::Request& request) const {
  const std::string& token =
      plugin_credential_ && !plugin_credential_->token.empty() ? plugin_credential_->token : token_;
  if (!token.empty()) {
    request.headers.set("Authorization", "Bearer " + token);
  } else if (!connection_.username.empty() || !connection_.password.empty()) {
    request.headers.set("Authorization", http::basic_credentials(connection_.username, connection_.password));
  }
}

asio::awaitable<void> AuthCore::log_in() {
  TimePoint none = TimePoint::max();
  const auto prepared = co_await prepare(none);
  if (!prepared) login_failure_ = prepared.error();
}

Task<> AuthCore::prepare(TimePoint& deadline) {
  if (login_failure_) co_return *std::exchange(login_failure_, std::nullopt);
  if (connection_.token_expires && clock_.wall_now() >= *connection_.token_expires)
    co_return Error(Errc::unavailable,
                    fmt::format("{}: the id-token of its auth-provider oidc expired at {}, and only kubectl renews it: "
                                "run any kubectl command with this kubeconfig, then try again",
                                connection_.origin, format_time(*connection_.token_expires)));
  if (reads_files() && clock_.now() >= next_check_) reload_files();
  if (connection_.exec && !plugin_credential_holds()) CO_CHECK(co_await log_in_anew(now_.plugin, deadline));
  co_return Result<>();
}

Task<> AuthCore::renew(Generation sent_with, TimePoint& deadline) {
  if (reads_files() && now_.files == sent_with.files) CO_CHECK(co_await reload_files_patiently(deadline));
  if (!connection_.exec || now_.plugin != sent_with.plugin) co_return Result<>();
  plugin_credential_.reset();
  co_return co_await log_in_anew(sent_with.plugin, deadline);
}

// Runs the plugin, and adds the time of the run to the deadline: a login by a person in a browser takes longer than the
// time limit of a request.
Task<> AuthCore::log_in_anew(std::uint64_t seen, TimePoint& deadline) {
  const TimePoint began = clock_.now();
  CO_CHECK(co_await fetch_plugin_credential(seen));
  deadline = saturating_add(deadline, clock_.now() - began);
  co_return Result<>();
}

bool AuthCore::reads_files() const {
  return token_is_in_file(connection_) || tls_is_in_files(connection_);
}

// Reads the files of credentials again. Returns false if a file cannot be read or certificate and key do not fit
// together. The previous content then stays in use.
bool AuthCore::reload_files() {
  bool good = true;
  bool changed = false;
  if (token_is_in_file(connection_)) {
    auto token = load_token(connection_);
    good = token.has_value();
    if (token && *token != token_) {
      token_ = std::move(*token);
      changed = true;
    }
  }
  if (tls_is_in_files(connection_)) {
    auto tls = load_tls(connection_);
    if (!tls) {
      good = false;
    } else if (*tls != tls_) {
      const auto used = use_tls(*tls, plugin_credential_);
      good = good && used.has_value();
      changed = changed || used.has_value();
      if (used) tls_ = std::move(*tls);
    }
  }
  if (changed) ++now_.files;
  next_check_ = clock_.now() + (good ? check_interval : recheck_interval);
  return good;
}

Task<> AuthCore::reload_files_patiently(TimePoint deadline) {
  for (int look = 1;; ++look) {
    if (reload_files() || look == rotation_looks) co_return Result<>();
    const TimePoint next = clock_.now() + rotation_pause;
    if (next >= deadline) co_return Result<>();
    co_await clock_.sleep_until(next);
  }
}

Result<> AuthCore::use_tls(const http::TlsOptions& from_files, const std::optional<ExecCredential>& plugin) {
  http::TlsOptions tls = from_files;
  if (plugin && !plugin->client_cert_pem.empty()) {
    tls.client_cert_pem = plugin->client_cert_pem;
    tls.client_key_pem = plugin->client_key_pem;
  }
  if (tls == tls_in_use_) return {};
  auto used = hooks_.set_tls(tls);
  if (used) {
    tls_in_use_ = std::move(tls);
    ++now_.tls;
  }
  return used;
}

bool AuthCore::plugin_credential_holds() const {
  if (!plugin_credential_) return false;
  return !plugin_credential_->expiration || clock_.wall_now() < *plugin_credential_->expiration;
}

// Runs the plugin, unless a run has ended since the caller read `now_.plugin` as `seen`: then it returns the result of
// that run. There is only one run at a time: callers that arrive during a run share its result. If a run is cancelled
// together with its caller, the next waiting caller starts another one.
Task<> AuthCore::fetch_plugin_credential(std::uint64_t seen) {
  while (plugin_runs_) CO_CHECK(co_await wait_for_plugin());
  if (now_.plugin != seen) {
    if (plugin_failure_) co_return *plugin_failure_;
    co_return Result<>();
  }
  plugin_runs_ = true;
  const ScopeExit ended([this] {
    plugin_runs_ = false;
    wake_.cancel();
  });
  auto credential = co_await hooks_.run_plugin(*connection_.exec, tls_.ca_pem);
  ++now_.plugin;
  plugin_failure_.reset();
  if (!credential) {
    plugin_failure_ = Error(credential.error()).with_context(connection_.origin);
    co_return *plugin_failure_;
  }
  if (auto used = use_tls(tls_, *credential); !used) {
    plugin_failure_ =
        Error(Errc::unavailable, fmt::format("{}: the certificate from credential plugin {} cannot be used: {}",
                                             connection_.origin, connection_.exec->command, used.error().message()));
    co_return *plugin_failure_;
  }
  plugin_credential_ = std::move(*credential);
  co_return Result<>();
}

Task<> AuthCore::wait_for_plugin() {
  co_await wake_.async_receive(asio::as_tuple(asio::use_awaitable));
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none)
    throw boost::system::system_error(asio::error::operation_aborted);
  co_return Result<>();
}

class AuthTransport::Impl {
 public:
  Impl(boost::asio::any_io_executor executor, Clock& clock, std::unique_ptr<http::Client> client, Connection connection,
       std::string user_agent, std::string token, http::TlsOptions tls)
      : client_(std::move(client)),
        core(std::move(executor), clock, *client_, hooks(clock), std::move(connection), std::move(user_agent),
             std::move(token), std::move(tls)) {}

 private:
  AuthHooks hooks(Clock& clock) {
    return {[client = client_.get()](http::TlsOptions tls) { return client->set_tls(std::move(tls)); },
            [&clock, this](ExecPlugin plugin, std::string ca_pem) {
              return run_exec_plugin(clock, std::move(plugin), std::move(ca_pem), stage);
            }};
  }

  std::unique_ptr<http::Client> client_;

 public:
  PluginStage stage;
  AuthCore core;
};

AuthTransport::AuthTransport(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AuthTransport::~AuthTransport() = default;

Result<std::unique_ptr<AuthTransport>> AuthTransport::create(boost::asio::any_io_executor executor, Clock& clock,
                                                             Connection connection, std::string user_agent) {
  auto token = load_token(connection);
  if (!token) return std::move(token).error();
  auto tls = load_tls(connection);
  if (!tls) return std::move(tls).error();
  http::ClientOptions options;
  options.body_limit = longest_answer;
  options.proxy = connection.proxy;
  auto client = http::Client::create(executor, clock, connection.endpoint, *tls, std::move(options));
  if (!client)
    return Error(Errc::unavailable,
                 fmt::format("{}: {}: {}{}", connection.origin, describe_tls(connection), client.error().message(),
                             connection.client_cert.empty()
                                 ? ""
                                 : "; check that the certificate and the key are PEM and belong together"));
  auto impl = std::make_unique<Impl>(std::move(executor), clock, std::move(*client), std::move(connection),
                                     std::move(user_agent), std::move(*token), std::move(*tls));
  return std::unique_ptr<AuthTransport>(new AuthTransport(std::move(impl)));
}

boost::asio::awaitable<void> AuthTransport::log_in() {
  return impl_->core.log_in();
}

Task<http::Response> AuthTransport::round_trip(http::Request request, TimePoint deadline) {
  return impl_->core.round_trip(std::move(request), deadline);
}

Task<std::unique_ptr<http::BodyStream>> AuthTransport::open(http::Request request, TimePoint deadline) {
  return impl_->core.open(std::move(request), deadline);
}

const Connection& AuthTransport::connection() const {
  return impl_->core.connection();
}

void AuthTransport::on_plugin(PluginStage stage) {
  impl_->stage = std::move(stage);
}

}  // namespace haulout::k8s
