// Runs an exec credential plugin once, as client-go does. Its interactiveMode decides only whether it gets stdin. The
// plugin is treated as interactive with a person if it gets stdin or if stderr is a terminal. Then its stderr is shown,
// its time limit is five minutes, and it stays in this process group, so that it can read /dev/tty. Otherwise its time
// limit is 60 s.
// Fails with Errc::unavailable. The message names the program, the cause (with the end of its stderr) and the
// installHint. Cancellable: the plugin is killed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "k8s/credentials.hpp"
#include "retry/clock.hpp"

namespace haulout::k8s {

struct ExecCredential {
  std::string token;
  std::string client_cert_pem;
  std::string client_key_pem;
  std::optional<WallTime> expiration;
};

// The two messages of the plugin protocol (client.authentication.k8s.io v1 and v1beta1). Pure. Error messages quote
// nothing of the plugin's output.
// encode_exec_info() returns the value of the environment variable KUBERNETES_EXEC_INFO.
std::string encode_exec_info(const ExecPlugin& plugin, bool interactive, const std::string& ca_pem);
Result<ExecCredential> decode_exec_credential(std::string_view output, const std::string& api_version);

// Callbacks for a plugin that may interact with a person. Each may be empty.
struct PluginStage {
  std::function<void()> enter;                 // the plugin begins to use the terminal
  std::function<void(std::string_view)> show;  // the plugin has written this text to stderr
  std::function<void()> leave;                 // the plugin has ended, also by cancellation
};

Task<ExecCredential> run_exec_plugin(Clock& clock, ExecPlugin plugin, std::string ca_pem, PluginStage stage = {});

}  // namespace haulout::k8s
