#include "cli/program/program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>

#include "agent/process/exit_code.hpp"
#include "agent/process/process.hpp"
#include "agent/process/transports.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "cli/options/help.hpp"
#include "cli/terminal/console.hpp"
#include "k8s/auth_transport.hpp"

namespace haulout::cli {
namespace {

// Returns the data, or the content of the file. An unreadable file counts as empty, because the connection that uses it
// reports the error.
std::string contents_of(const k8s::Material& material) {
  constexpr std::size_t most = std::size_t{1} << 20;
  return material.data.empty() && !material.file.empty() ? file_text(material.file, most).text : material.data;
}

// Limit for the bytes of one list in memory. Larger than the agent's, which runs in a container with a memory limit.
constexpr std::size_t most_memory = std::size_t{128} * 1024 * 1024;

// Returns false for impersonated users and for users of kubelets, for which a SelfSubjectAccessReview gives wrong
// results.
bool may_review_access(const k8s::Connection& connection) {
  if (!connection.impersonate_user.empty()) return false;
  return !http::certificate_common_name(contents_of(connection.client_cert)).starts_with("system:node:");
}

// From this verbosity on, kubectl logs its requests. Haulout then logs them in the same format, which users of kubectl
// know.
constexpr unsigned verbosity_of_kubectl = 6;

// Returns the URL of the server, without the path of a request.
std::string url_of(const k8s::Connection& connection) {
  const bool tls = connection.endpoint.kind == http::Endpoint::Kind::tls;
  return (tls ? "https://" : "http://") + connection.endpoint.authority() + connection.path_prefix;
}

// Writes, every second, the output that a slow reader has not accepted yet.
boost::asio::awaitable<void> pump(agent::Process& process) {
  for (;;) {
    co_await process.clock.sleep_until(process.clock.now() + std::chrono::seconds(1));
    process.out.pump();
    process.err.pump();
  }
}

// Logs in before the job runs. A login may wait for a person, so its time must not count against the limits of the job.
boost::asio::awaitable<void> run_logged_in(k8s::AuthTransport& transport, Job& job) {
  co_await transport.log_in();
  co_await job.run();
}

bool is_for_machines(OutputFormat output) {
  return output == OutputFormat::json || output == OutputFormat::jsonl;
}

boost::asio::awaitable<int> run_job(agent::Process& process, const Settings& settings, k8s::AuthTransport& transport,
                                    agent::ServerWarnings& warnings, Console& console, Job& job) {
  std::optional<agent::Signals> signals(std::in_place, process.executor);
  std::vector<boost::asio::awaitable<void>> helpers = job.helpers();
  helpers.push_back(pump(process));
  const std::optional<int> signal = co_await until_signal(*signals, run_logged_in(transport, job), std::move(helpers));
  int code = job.finish(signal);
  if (code == agent::exit_done && settings.warnings_as_errors && warnings.count() > 0) {
    console.warn(fmt::format("error: {} received", count_of(warnings.count(), "warning")));
    code = agent::exit_not_done;
  }
  // finish_output() may wait for a reader that does not read. From here on a signal ends the process immediately, so
  // that a person can end that wait.
  signals.reset();
  co_return finish_output(process.out, process.err, is_run_for_its_output(settings), code,
                          signal ? agent::patience_after_signal_ms : -1);
}

}  // namespace

bool is_run_for_its_output(const Settings& settings) {
  switch (settings.command) {
    case Command::status:
    case Command::explain:
    case Command::rehearse: return true;
    default: return is_for_machines(settings.output);
  }
}

int finish_output(agent::FdSink& out, agent::FdSink& err, bool matters, int code, int patience_ms) {
  out.flush(patience_ms);
  const int failure = matters ? out.failure() : 0;
  if (failure != 0) err.write(fmt::format("error: the output could not be written: {}\n", std::strerror(failure)));
  err.flush(patience_ms);
  return failure != 0 && code == agent::exit_done ? agent::exit_not_done : code;
}

boost::asio::awaitable<int> run_program(agent::Process& process, Settings settings, MakeJob make_job) {
  agent::Sink& text = is_for_machines(settings.output) ? process.err : static_cast<agent::Sink&>(process.out);
  Console console(text, process.err);
  process.out.gather(process.executor);
  process.err.write_after(process.out);
  agent::Log log({settings.log_format, settings.verbosity}, process.clock,
                 [&console](const std::string& line) { console.warn(line); });
  agent::RequestLedger ledger;
  const auto failed = [&](const Error& error) {
    console.warn("error: " + printable(error.message()));
    process.err.flush(-1);
    return agent::exit_connection;
  };
  auto connection = k8s::discover(settings.connection, process.environment);
  if (!connection) co_return failed(connection.error());
  log.write(agent::Severity::info, "connecting",
            {{"to", connection->endpoint.authority()}, {"with", connection->origin}});
  settings.drain.review_access = may_review_access(*connection);
  settings.in_a_pod = connection->of_a_pod && connection->impersonate_user.empty();
  settings.drain.cordoned_by = user_at_host(process.environment);
  settings.drain.run_id = fmt::format("{:016x}", process.rng.next());

  const std::string server = url_of(*connection);
  auto authenticated = k8s::AuthTransport::create(process.executor, process.clock, *std::move(connection),
                                                  agent::user_agent(to_string(settings.command)));
  if (!authenticated) co_return failed(authenticated.error());
  (*authenticated)->on_request([&ledger](const http::Request& request) { ledger.count(request); });
  (*authenticated)->on_plugin(plugin_stage(console));
  agent::ServerWarnings warnings([&console](const std::string& text) { console.warn("Warning: " + printable(text)); });
  const auto note_end = [&ledger, &warnings](const agent::RequestEnd& end) {
    if (end.status == 403) ledger.denied(agent::describe_request(end.method, end.target));
    warnings.see(end.warnings);
  };
  agent::WatchedTransport transport(**authenticated, process.clock, log, note_end, settings.request_timeout,
                                    settings.verbosity >= verbosity_of_kubectl ? server : "");
  k8s::Client client(transport, process.clock, {k8s::FieldValidation::warn, settings.drain.page_size, most_memory});
  Tools tools{client, process.clock, process.rng, console, process.out, ledger, process.program};

  const auto job = make_job(process, std::move(tools), settings);
  co_return co_await run_job(process, settings, **authenticated, warnings, console, *job);
}

}  // namespace haulout::cli
