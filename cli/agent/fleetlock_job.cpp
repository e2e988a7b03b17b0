#include "cli/agent/fleetlock_job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "agent/process/logging.hpp"
#include "agent/report/status_pages.hpp"
#include "agent/slots/fleetlock_service.hpp"
#include "base/text.hpp"
#include "http/server.hpp"

namespace haulout::cli {
namespace {

using boost::asio::awaitable;

// Limits of the server. A request has some hundred bytes. Machines ask each few minutes, so few connections are open at
// a time; idle ones must not keep others out.
http::ServerOptions limits() {
  http::ServerOptions options;
  options.head_limit = std::size_t{16} * 1024;
  options.body_limit = std::size_t{16} * 1024;
  options.idle_timeout = std::chrono::seconds(30);
  options.request_timeout = std::chrono::seconds(10);
  options.send_timeout = std::chrono::seconds(10);
  options.max_connections = 256;
  return options;
}

agent::FleetLockServiceOptions service_options(const Settings& settings) {
  agent::FleetLockServiceOptions options;
  options.ns = settings.haulout_namespace();
  if (!settings.fleetlock.pools.empty()) options.pools = settings.fleetlock.pools;
  options.limit = static_cast<std::size_t>(settings.fleetlock.max_unavailable);
  return options;
}

}  // namespace

FleetLockJob::FleetLockJob(agent::Process& process, Tools tools, const Settings& settings)
    : process_(process),
      tools_(std::move(tools)),
      options_(service_options(settings)),
      listen_(settings.fleetlock.listen),
      service_(tools_.client, options_),
      log_({settings.log_format, settings.verbosity,
            agent::is_journal(process.environment.get("JOURNAL_STREAM"), STDERR_FILENO)},
           process.clock, [this](const std::string& line) { tools_.console.warn(line); }) {}

awaitable<void> FleetLockJob::run() {
  auto server = agent::listen_on(process_.executor, process_.clock, listen_, limits(),
                                 [this](http::Exchange& exchange) { return serve(exchange); });
  if (!server) {
    exit_code_ = report_failure(tools_, std::move(server).error().with_context("--listen"));
    co_return;
  }
  server_ = *std::move(server);
  log_.write(agent::Severity::notice, "Serving FleetLock",
             {{"address", listen_},
              {"port", std::to_string(server_->port())},
              {"namespace", options_.ns},
              {"pools", joined(options_.pools, ", ")},
              {"max-unavailable", std::to_string(options_.limit)}});
  co_await server_->run();
}

int FleetLockJob::finish(std::optional<int> signal) {
  return signal ? agent::exit_code_of_signal(*signal) : exit_code_;
}

awaitable<void> FleetLockJob::serve(http::Exchange& exchange) {
  const http::Request& request = exchange.request();
  // A client that disconnects before the reply asks again, so its error is ignored.
  if (request.method == "GET" && request.target == "/healthz") {
    http::Response healthy{200, {}, "ok\n"};
    healthy.headers.set("Content-Type", "text/plain; charset=utf-8");
    static_cast<void>(co_await exchange.reply(std::move(healthy)));
    co_return;
  }
  const agent::FleetLockAnswer answer = co_await service_.answer(request);
  note(answer);
  static_cast<void>(co_await exchange.reply(agent::response_of(answer)));
}

void FleetLockJob::note(const agent::FleetLockAnswer& answer) {
  using agent::Severity;
  const Severity severity = answer.status >= 500 ? Severity::warning
                            : answer.changed     ? Severity::notice
                                                 : Severity::info;
  log_.write(severity, fmt::format("FleetLock: {}", answer.value),
             {{"kind", answer.kind}, {"machine", answer.id}, {"pool", answer.pool}});
}

}  // namespace haulout::cli
