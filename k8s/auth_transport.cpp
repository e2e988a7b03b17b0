#include "k8s/auth_transport.hpp"

#include "k8s/auth_core.hpp"
#include "k8s/credential_file.hpp"
#include "k8s/list_budget.hpp"

namespace haulout::k8s {

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
    return Error(Errc::unavailable, connection.origin + ": " + describe_tls(connection) + ": " +
                                        client.error().message() + "; check that they are PEM and belong together");
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

void AuthTransport::on_request(std::function<void(const http::Request&)> observer) {
  impl_->core.on_request(std::move(observer));
}

void AuthTransport::on_plugin(PluginStage stage) {
  impl_->stage = std::move(stage);
}

}  // namespace haulout::k8s
