#include "agent/config/configuration_page.hpp"

#include <fmt/format.h>

#include "agent/config/option_table.hpp"

namespace haulout::agent {
namespace {

constexpr std::string_view head = R"(# The configuration of the agent

This page is made from the table of options in `agent/config/`; a test compares the two.

The defaults of `haulout agent` suit most fleets. To change an option, set it in any of these places. The first place
that sets an option wins; lists are replaced, not merged:

1. flags: `--max-unavailable 2`, `--max-unavailable=2`; repeat a flag to make a list
2. environment variables: `HAULOUT_MAX_UNAVAILABLE=2`; a list is separated by semicolons
3. the file, in YAML: `max-unavailable: 2`
4. environment variables for those who package the agent: `HAULOUT_DEFAULT_LOG_FORMAT=json`
5. the defaults below

The shipped DaemonSet sets two options of the fourth kind, `metrics-address: :9797` and `log-format: json`; your file
takes precedence. Its probes use port 9797: if you change the address, change the DaemonSet's port, too.

The file is `/etc/haulout/config.yaml`, or the file that `--config` or `HAULOUT_CONFIG` names. In a cluster it usually
is a mounted ConfigMap. It is flat: each line is an option and its value, or its list of values.

```yaml
max-unavailable: 10%
blocking-pod-selector:
  - app=batch,stage=running
  - backup
reboot-method: [logind, command]
reboot-command: /usr/local/sbin/power-cycle --wait
drain-deadline: 2h
```

Mistakes are errors: an unknown key, a value of the wrong type, a duplicate key, or options that contradict each other.
The agent then prints where the mistake is and what to write instead, and exits with code 2 before it connects to
anything. `haulout agent --check` checks this and more without changing anything.

- A duration has a unit, as in Go: `90s`, `5m`, `1h30m`, `1.5h`. Only `0` needs no unit.
- A command is split at blanks; quotes and `\` protect blanks. The agent uses no shell, so there are no variables and no
  pipes. In the file a command may also be a list of words.
- An empty value (`--pool-label=`, `HAULOUT_WINDOW=`) of a text, a list or a command resets the option to its default,
  and overrides the places that come later. In the file `null` is the same as leaving the option out.
- YAML reads unquoted `on`, `yes`, `010` or `1e3` as something else. If that matters, the agent asks for quotes.
- Variables that Kubernetes injects for a Service called `haulout`, like `HAULOUT_SERVICE_HOST`, are not options and
  have no effect. The agent warns about a variable that looks like a misspelt option, and ignores it.
)";

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

std::string code(std::string_view text) {
  return text.empty() ? "" : fmt::format("`{}`", escaped(text));
}

std::string form_of(const Option& option) {
  std::string form = escaped(option.values.form);
  if (!option.values.unit.empty()) form += fmt::format(" ({})", option.values.unit);
  if (option.repeatable()) form += "; list";
  return form;
}

std::string spelling_of(const Option& option) {
  const std::string letter = option.letter != 0 ? fmt::format("`-{}`, ", option.letter) : "";
  return letter + code("--" + option.name);
}

std::string_view places_of(const Option& option) {
  switch (option.home) {
    case Option::Home::everywhere: return "";
    case Option::Home::flag_and_environment: return " Not allowed in the file.";
    case Option::Home::flag_only: return " Only as a flag.";
  }
  return "";
}

std::string row_of(const Option& option) {
  return fmt::format("| {} | {} | {} | {}{} |\n", spelling_of(option), form_of(option), code(option.shown_default),
                     escaped(option.help), places_of(option));
}

}  // namespace

std::string configuration_page() {
  std::string page(head);
  for (const OptionGroup& group : option_groups()) {
    page += fmt::format("\n## {}\n\n| option | value | default | meaning |\n|---|---|---|---|\n", group.title);
    for (const Option& option : group.options) page += row_of(option);
  }
  return page;
}

}  // namespace haulout::agent
