// Transport decorator that knows who we are: adds the bearer token, basic authentication or impersonation headers, the
// path prefix and the User-Agent; re-reads files that rotate (before a request when older than 60 s, and at once after
// a 401 or a TLS verification failure); runs exec plugins as child processes without blocking the io_context.
//
// A 401 is answered once by reloading the credentials and sending the request again, unless they are constants. A file
// that cannot be read or does not fit its pair leaves the old content in use. Concurrent requests share one run of a
// plugin, which has limits of its own: a request's deadline is put off by what it waits for one. Credentials appear in
// no message.
// Failures: those of Transport; Errc::unavailable when credentials cannot be had. Cancellable. Owns its http::Client.
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
  static Result<std::unique_ptr<AuthTransport>> create(boost::asio::any_io_executor executor, Clock& clock,
                                                       Connection connection, std::string user_agent);
  ~AuthTransport() override;

  // Runs the plugin, if there is one, before any clock of a request starts. Says nothing of a failure: that is the next
  // request's. Cancellable.
  boost::asio::awaitable<void> log_in();
  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override;
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override;

  const Connection& connection() const;
  // Called once per HTTP request that goes to the wire, repetitions included; the request is shown without its
  // Authorization.
  void on_request(std::function<void(const http::Request&)> observer);
  // Where a plugin and the person at the terminal meet; without it the person does not hear the plugin.
  void on_plugin(PluginStage stage);

 private:
  class Impl;
  explicit AuthTransport(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace haulout::k8s
