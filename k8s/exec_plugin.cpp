#include "k8s/exec_plugin.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/plain_text.hpp"
#include "base/scope_exit.hpp"
#include "http/base64.hpp"
#include "k8s/child_process.hpp"
#include "k8s/codec.hpp"
#include "k8s/yaml_codec.hpp"

namespace haulout::k8s {

namespace {

// Time limits of the plugin: one minute if it runs unattended, five minutes if a person may have to log in.
constexpr std::chrono::seconds time_limit{60};
constexpr std::chrono::minutes time_limit_with_a_person{5};

// Joins the text into one line for a message, without limiting its length.
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
                                              : fmt::format("ended with exit status {}", outcome.exit_code);
  const std::string tail = on_one_line(outcome.error_tail);
  return tail.empty() ? end + "; run it in a shell to see why" : end + ": " + tail;
}

std::string describe_timeout(std::chrono::seconds limit, const ChildOutcome& outcome) {
  const std::string tail = on_one_line(outcome.error_tail);
  return fmt::format("did not finish within {} s; {}", limit.count(),
                     tail.empty() ? "run it in a shell to see what it waits for" : "it said: " + tail);
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

namespace {

using Json = nlohmann::json;

Error bad_answer(const std::string& cause) {
  return Error(Errc::unavailable, "its output " + cause);
}

// Returns false if the field is present and not a string. Leaves `value` unchanged if the field is absent or null.
bool read_string(const Json& object, const char* key, std::string& value) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return true;
  if (!found->is_string()) return false;
  value = found->get<std::string>();
  return true;
}

bool is_token(const std::string& token) {
  return std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace

std::string encode_exec_info(const ExecPlugin& plugin, bool interactive, const std::string& ca_pem) {
  Json spec = {{"interactive", interactive}};
  if (plugin.provide_cluster_info) {
    Json cluster = Json::parse(plugin.cluster_info_json, nullptr, false);
    if (!cluster.is_object()) cluster = Json::object();
    if (!ca_pem.empty()) cluster["certificate-authority-data"] = http::base64_encode(ca_pem);
    spec["cluster"] = std::move(cluster);
  }
  return Json{{"kind", "ExecCredential"}, {"apiVersion", plugin.api_version}, {"spec", std::move(spec)}}.dump();
}

Result<ExecCredential> decode_exec_credential(std::string_view output, const std::string& api_version) {
  Json json = Json::parse(output, nullptr, false);
  if (!json.is_object())
    if (const auto converted = yaml_to_json(output)) json = Json::parse(*converted, nullptr, false);
  if (!json.is_object()) return bad_answer("is neither a JSON nor a YAML object; expected an ExecCredential on stdout");
  std::string kind;
  std::string version;
  if (!read_string(json, "kind", kind) || kind != "ExecCredential")
    return bad_answer("is not an ExecCredential: `kind` is missing or different");
  if (!read_string(json, "apiVersion", version) || version != api_version)
    return bad_answer(
        fmt::format("has an apiVersion other than {} of the kubeconfig; set both to the same", api_version));
  const auto status = json.find("status");
  if (status == json.end() || !status->is_object())
    return bad_answer(
        "is an ExecCredential without a usable `status`, so without credentials; run the plugin in a shell to see what "
        "it prints");

  ExecCredential credential;
  std::string expiration;
  if (!read_string(*status, "token", credential.token) ||
      !read_string(*status, "clientCertificateData", credential.client_cert_pem) ||
      !read_string(*status, "clientKeyData", credential.client_key_pem) ||
      !read_string(*status, "expirationTimestamp", expiration))
    return bad_answer(
        "has a wrong type in its status: token, clientCertificateData, clientKeyData and expirationTimestamp must be "
        "strings");
  if (credential.token.empty() && credential.client_cert_pem.empty() && credential.client_key_pem.empty())
    return bad_answer("has neither a token nor a certificate with its key");
  if (credential.client_cert_pem.empty() != credential.client_key_pem.empty())
    return bad_answer("has a certificate or a key, but not both");
  if (!is_token(credential.token))
    return bad_answer("has a token with blanks, control characters or characters outside ASCII");
  if (!expiration.empty()) {
    auto time = parse_time(expiration);
    if (!time) return bad_answer("has an expirationTimestamp that is not an RFC 3339 time");
    credential.expiration = *time;
  }
  return credential;
}

}  // namespace haulout::k8s
