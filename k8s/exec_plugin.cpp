#include "k8s/exec_plugin.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "base/plain_text.hpp"
#include "base/scope_exit.hpp"
#include "k8s/child_process.hpp"

namespace haulout::k8s {
namespace {

// A token service that has not answered within a minute will not answer. A person at a browser needs longer.
constexpr std::chrono::seconds time_limit{60};
constexpr std::chrono::minutes time_limit_with_a_person{5};

// For a message: makes one line of any length.
std::string on_one_line(std::string_view text) {
  return one_line(text, std::string_view::npos);
}

Error plugin_error(const ExecPlugin& plugin, const std::string& cause) {
  const std::string hint = on_one_line(plugin.install_hint);
  return Error(Errc::unavailable,
               fmt::format("credential plugin {}: {}{}", plugin.command, cause, hint.empty() ? "" : "; " + hint));
}

std::string describe(const ChildOutcome& outcome) {
  if (outcome.too_much_output) return "printed more than 1 MiB; expected an ExecCredential";
  const std::string end = outcome.signal != 0 ? fmt::format("was ended by signal {}", outcome.signal)
                                              : fmt::format("exit status {}", outcome.exit_code);
  const std::string tail = on_one_line(outcome.error_tail);
  return tail.empty() ? end + "; run it by hand to see why" : end + ": " + tail;
}

std::string describe_timeout(std::chrono::seconds limit, const ChildOutcome& outcome) {
  const std::string tail = on_one_line(outcome.error_tail);
  return fmt::format("did not finish within {} s; {}", limit.count(),
                     tail.empty() ? "run it by hand to see what it waits for" : "it said: " + tail);
}

}  // namespace

Task<ExecCredential> run_exec_plugin(Clock& clock, ExecPlugin plugin, std::string ca_pem, PluginStage stage) {
  using Mode = ExecPlugin::InteractiveMode;
  const bool interactive = plugin.interactive_mode != Mode::never && ::isatty(STDIN_FILENO) == 1;
  if (plugin.interactive_mode == Mode::always && !interactive)
    co_return plugin_error(plugin,
                           "its interactiveMode is Always, but standard input is not a terminal; run this from a "
                           "terminal, or use credentials that need no person");
  ChildCommand command;
  command.program = plugin.command;
  command.args = plugin.args;
  command.env = plugin.env;
  command.env.emplace_back("KUBERNETES_EXEC_INFO", encode_exec_info(plugin, interactive, ca_pem));
  const bool for_a_person = interactive || ::isatty(STDERR_FILENO) == 1;
  command.inherits_stdin = interactive;
  command.own_group = !for_a_person;
  if (for_a_person) command.on_stderr = stage.show;
  const std::chrono::seconds limit = for_a_person ? time_limit_with_a_person : time_limit;
  if (for_a_person && stage.enter) stage.enter();
  const ScopeExit leave_stage([&] {
    if (for_a_person && stage.leave) stage.leave();
  });
  auto outcome = co_await run_child(clock, std::move(command), saturating_add(clock.now(), limit));
  if (!outcome) co_return plugin_error(plugin, "cannot be started: " + outcome.error().message());
  if (outcome->timed_out) co_return plugin_error(plugin, describe_timeout(limit, *outcome));
  if (outcome->too_much_output || outcome->exit_code != 0) co_return plugin_error(plugin, describe(*outcome));
  auto credential = decode_exec_credential(outcome->output, plugin.api_version);
  if (!credential) co_return plugin_error(plugin, credential.error().message());
  co_return std::move(*credential);
}

}  // namespace haulout::k8s
