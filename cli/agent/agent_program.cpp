#include "cli/agent/agent_program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "agent/config/read_config.hpp"
#include "agent/process/logging.hpp"
#include "agent/process/process.hpp"
#include "agent/service/agent_service.hpp"
#include "agent/service/options_of_config.hpp"
#include "base/option.hpp"
#include "base/text.hpp"
#include "cli/options/help.hpp"
#include "cli/terminal/console.hpp"
#include "k8s/auth_transport.hpp"

namespace haulout::cli {
namespace {

using boost::asio::awaitable;

// Writes, every 30 s, the log output that a slow reader has not accepted yet. A shorter interval would wake an idle
// agent.
awaitable<void> pump(agent::Process& process) {
  for (;;) {
    co_await process.clock.sleep_until(process.clock.now() + std::chrono::seconds(30));
    process.err.pump();
  }
}

std::vector<awaitable<void>> helpers(agent::Process& process) {
  std::vector<awaitable<void>> all;
  all.push_back(pump(process));
  return all;
}

bool writes_to_journal(const agent::Process& process) {
  return agent::is_journal(process.environment.get("JOURNAL_STREAM"), STDERR_FILENO);
}

// Runs `work` until it ends or a signal arrives, and returns the exit code. If `work` ends without a signal, the
// service has already logged the reason.
awaitable<int> to_the_end(agent::Process& process, agent::AgentService& service, awaitable<void> work) {
  agent::Signals signals(process.executor);
  const std::optional<int> signal = co_await until_signal(signals, std::move(work), helpers(process));
  if (signal) service.say_goodbye();
  co_return signal ? agent::exit_code_of_signal(*signal) : service.exit_code();
}

class Program {
 public:
  Program(agent::Process& process, agent::AgentConfig config)
      : process_(process),
        config_(std::move(config)),
        console_(process.err, process.err),
        log_({config_.log_format, config_.verbosity, writes_to_journal(process)}, process.clock,
             [this](const std::string& line) { console_.warn(line); }) {}

  awaitable<int> run() {
    for (const std::string& warning : agent::environment_warnings(process_.environment.variables))
      log_.write(agent::Severity::warning, warning);
    auto connection = k8s::discover_for_agent(config_.kubeconfig, process_.environment,
                                              agent::kubelet_kubeconfigs(config_.host_root));
    // Report this before the connection is checked: the configuration is valid even if no connection to the cluster is
    // found.
    if (config_.check) process_.out.write(fmt::format("{:<7} {:<12} the configuration is valid\n", "ok", "config"));
    if (!connection) co_return failed(connection.error());
    auto authenticated = k8s::AuthTransport::create(process_.executor, process_.clock, *std::move(connection),
                                                    agent::user_agent("agent"));
    if (!authenticated) co_return failed(authenticated.error());
    (*authenticated)->on_plugin(plugin_stage(console_));
    agent::AgentService service({process_, config_, log_, **authenticated});
    auto work = config_.check ? service.check() : config_.release ? service.release() : service.serve();
    const int code = co_await to_the_end(process_, service, std::move(work));
    process_.out.flush(agent::patience_after_signal_ms);
    co_return code;
  }

 private:
  int failed(const Error& error) {
    log_.write(agent::Severity::error, error.message());
    return agent::exit_connection;
  }

  agent::Process& process_;
  agent::AgentConfig config_;
  Console console_;
  agent::Log log_;
};

}  // namespace

awaitable<int> run_agent(agent::Process& process, Settings settings) {
  auto loaded = agent::load_config(settings.agent_options, process.environment.variables);
  int code = agent::exit_usage;
  if (const auto* problems = std::get_if<std::string>(&loaded)) {
    const std::string_view priority = writes_to_journal(process) ? journal_priority(agent::Severity::error) : "";
    for (const std::string& problem : split_at(*problems, '\n'))
      process.err.write(fmt::format("{}error: {}\n", priority, printable(problem)));
  } else {
    Program program(process, std::get<agent::AgentConfig>(std::move(loaded)));
    code = co_await program.run();
  }
  process.err.flush(agent::patience_after_signal_ms);
  co_return code;
}

}  // namespace haulout::cli
