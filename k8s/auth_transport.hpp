// Transport decorator that adds the identity to each request: the bearer token or basic authentication,
// impersonation headers, the path prefix and the User-Agent. Reads the files of credentials again, because they rotate:
// before a request if the last read is older than 60 s, and at once after a 401 or a TLS failure. Runs exec plugins as
// child processes without blocking the io_context.
//
// After a 401 it reloads the credentials and sends the request once more, unless all credentials are constants. If a
// file cannot be read, or certificate and key do not fit together, the old content stays in use. Concurrent requests
// share one run of a plugin. The plugin has its own time limit, and the deadline of a request is extended by the time
// that it waits for the plugin. No message contains credentials.
// Fails with the errors of Transport, and with Errc::unavailable if no credentials can be obtained. Cancellable. Owns
// its http::Client; borrows the clock.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>

#include "http/client.hpp"
#include "http/transport.hpp"
#include "k8s/credentials.hpp"
#include "k8s/exec_plugin.hpp"

namespace haulout::k8s {

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
  // Sets an observer. It is called once per HTTP request that is sent, including repetitions. The request that the
  // observer receives has no Authorization header.
  void on_request(std::function<void(const http::Request&)> observer);
  // Sets the callbacks for the time in which a plugin uses the terminal (exec_plugin.hpp). Without them, the plugin's
  // stderr is not shown.
  void on_plugin(PluginStage stage);

 private:
  class Impl;
  explicit AuthTransport(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace haulout::k8s
