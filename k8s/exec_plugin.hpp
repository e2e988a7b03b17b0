// Runs an exec credential plugin once, as client-go does. The plugin gets stdin if stdin is a terminal and the
// interactiveMode is not Never. If the interactiveMode is Always and stdin is no terminal, the call fails. A person
// counts as present if the plugin gets stdin or if stderr is a terminal. Then the plugin's stderr is shown, its time
// limit is five minutes, and it stays in this process group, so that it can read /dev/tty. Otherwise its time limit is
// 60 s, and it has a process group of its own.
//
// Fails with Errc::unavailable. The message names the program, the cause (with the end of its stderr) and the
// installHint. Cancellable: the plugin is killed (child_process.hpp). Borrows the clock. Stores no credential:
// AuthTransport keeps it, and runs the plugin again when it is not valid any more.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "k8s/credentials.hpp"
#include "retry/clock.hpp"

namespace haulout::k8s {

// What a plugin returns: a token, or a certificate and its key, or all three.
struct ExecCredential {
  std::string token;
  std::string client_cert_pem;
  std::string client_key_pem;
  std::optional<WallTime> expiration;  // unset: the credential is valid until the server rejects it
};

// The two messages of the plugin protocol (client.authentication.k8s.io v1 and v1beta1). Pure. Error messages quote
// nothing of the plugin's stdout; decoding fails with Errc::unavailable. encode_exec_info() returns the value of the
// environment variable KUBERNETES_EXEC_INFO. `interactive`: the plugin gets stdin.
std::string encode_exec_info(const ExecPlugin& plugin, bool interactive, const std::string& ca_pem);
Result<ExecCredential> decode_exec_credential(std::string_view output, const std::string& api_version);

// Callbacks for a plugin that may interact with a person; they are called only if a person counts as present. Each may
// be empty.
struct PluginStage {
  std::function<void()> enter;                 // the plugin begins to use the terminal
  std::function<void(std::string_view)> show;  // the plugin has written this text to stderr
  std::function<void()> leave;                 // the plugin has ended, also by cancellation
};

Task<ExecCredential> run_exec_plugin(Clock& clock, ExecPlugin plugin, std::string ca_pem, PluginStage stage = {});

}  // namespace haulout::k8s
