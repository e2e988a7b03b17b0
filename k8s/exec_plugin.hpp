// One run of an exec credential plugin, as client-go runs it: its interactiveMode decides about stdin alone, and what
// it writes to stderr is for the person at the terminal, if there is one: stdin that it may have or stderr is a
// terminal. Then it has five minutes and stays in our process group, so that it may read /dev/tty; otherwise 60 s.
// Errors are Errc::unavailable and name the program, what went wrong (with the end of its stderr) and the installHint.
// Cancellable: the plugin is killed.
#pragma once

#include <functional>
#include <string_view>

#include "k8s/codec_exec_credential.hpp"
#include "k8s/credentials.hpp"

namespace haulout::k8s {

// Told of a plugin that may speak with a person; any of them may be empty.
struct PluginStage {
  std::function<void()> enter;                 // the terminal is the plugin's
  std::function<void(std::string_view)> show;  // it wrote this to stderr
  std::function<void()> leave;                 // the terminal is ours again; also after a cancellation
};

Task<ExecCredential> run_exec_plugin(Clock& clock, ExecPlugin plugin, std::string ca_pem, PluginStage stage = {});

}  // namespace haulout::k8s
