#include "cli/options/completion.hpp"

#include <fmt/format.h>
#include <set>

#include "base/text.hpp"
#include "cli/options/flags.hpp"
#include "cli/options/help.hpp"

namespace haulout::cli {
namespace {

bool takes_nodes(Command command) {
  switch (command) {
    case Command::drain:
    case Command::cordon:
    case Command::uncordon:
    case Command::retire:
    case Command::status:
    case Command::explain:
    case Command::pause:
    case Command::resume:
    case Command::request_reboot:
    case Command::release:
    case Command::rehearse: return true;
    default: return false;
  }
}

// Returns the words that may follow the command, if they are always the same.
std::vector<std::string> words_after(Command command) {
  if (command == Command::completion) return completion_shells();
  return command == Command::migrate ? migrate_sources() : std::vector<std::string>();
}

std::vector<Flag> flags_of(Command command) {
  std::vector<Flag> flags = command == Command::version      ? command_flags(command)
                            : command == Command::completion ? std::vector<Flag>()
                                                             : all_flags(command);
  flags.push_back({"help", 'h', Flag::Kind::boolean, "Explain the command.", {}});
  return flags;
}

std::string spellings(const std::vector<Flag>& flags) {
  std::vector<std::string> all;
  all.reserve(2 * flags.size());
  for (const Flag& flag : flags) {
    all.push_back("--" + flag.name);
    if (flag.letter != 0) all.push_back(fmt::format("-{}", flag.letter));
  }
  return joined(all, " ");
}

// Returns the spellings of all flags, of any command, whose value is the next argument.
std::string valued() {
  std::set<std::string> all;
  for (const CommandRow& row : command_rows())
    for (const Flag& flag : flags_of(row.command)) {
      if (flag.kind != Flag::Kind::value) continue;
      all.insert("--" + flag.name);
      if (flag.letter != 0) all.insert(fmt::format("-{}", flag.letter));
    }
  return joined({all.begin(), all.end()}, " ");
}

std::string in_quotes(std::string_view text, std::string_view escaped_quote) {
  std::string result = "'";
  for (const char c : text)
    if (c == '\'')
      result += escaped_quote;
    else
      result += c;
  return result + "'";
}

// Returns the help text up to its first full stop or semicolon, because the shells show one line per flag.
std::string first_sentence(const std::string& help) {
  return help.substr(0, std::min(help.find(". "), help.find(';')));
}

std::string bash_script() {
  std::string cases;
  for (const CommandRow& row : command_rows()) {
    std::string words;
    if (takes_nodes(row.command)) words = "nodes=1";
    if (const auto after = words_after(row.command); !after.empty())
      words = fmt::format("words='{}'", joined(after, " "));
    cases += fmt::format("    {}) flags='{}' {} ;;\n", row.name, spellings(flags_of(row.command)), words);
  }
  std::vector<Flag> first = connection_flags();
  first.push_back({"version", 0, Flag::Kind::boolean, "", {}});
  return fmt::format(R"SH(# bash completion for haulout
_haulout() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} valued=' {0} ' command='' flags='' words='' nodes='' word i
  local -a connection=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${{COMP_WORDS[i]}}
    if [[ $valued == *" $word "* ]]; then
      [[ ${{COMP_WORDS[i + 1]}} == '=' ]] && ((i++))
      ((++i == COMP_CWORD)) && return
      case $word in
        --context | --kubeconfig | --cluster | --user | --server | -s) connection+=("$word" "${{COMP_WORDS[i]}}") ;;
      esac
    elif [[ $word != -* && -z $command ]]; then
      command=$word
    fi
  done
  case $command in
    '') flags='{1} --help' words='{2}' ;;
    help) words='{2}' ;;
{3}  esac
  if [[ $cur == -* ]]; then
    words=$flags
  elif [[ -n $nodes ]]; then
    words=$("${{COMP_WORDS[0]}}" "${{connection[@]}}" __complete 2>/dev/null)
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}}
complete -o default -F _haulout haulout
)SH",
                     valued(), spellings(first), joined(command_names(), " "), cases);
}

std::string described(std::string_view name, std::string_view help) {
  std::string text(name);
  text += ':';
  for (const char c : help) {
    if (c == ':') text += '\\';
    text += c;
  }
  return in_quotes(text, R"('\'')");
}

std::string described_flags(const std::vector<Flag>& flags) {
  std::string result;
  for (const Flag& flag : flags) {
    result += " " + described("--" + flag.name, first_sentence(flag.help));
    if (flag.letter != 0) result += " " + described(fmt::format("-{}", flag.letter), first_sentence(flag.help));
  }
  return result;
}

std::string zsh_script() {
  std::string commands;
  std::string cases;
  for (const CommandRow& row : command_rows()) {
    commands += " " + described(row.name, row.summary);
    std::string words;
    if (takes_nodes(row.command)) words = "nodes=1";
    if (const auto after = words_after(row.command); !after.empty())
      words = fmt::format("others=({})", joined(after, " "));
    cases += fmt::format("    {}) flags=({}) {} ;;\n", row.name, described_flags(flags_of(row.command)), words);
  }
  return fmt::format(R"SH(#compdef haulout
# zsh completion for haulout
_haulout() {{
  local -a commands flags others connection
  local command='' nodes='' word valued=' {0} '
  integer i
  commands=({1} 'help:Explain a command')
  for ((i = 2; i < CURRENT; i++)); do
    word=$words[i]
    if [[ $valued == *" $word "* ]]; then
      ((++i == CURRENT)) && {{ _files; return; }}
      case $word in
        --context | --kubeconfig | --cluster | --user | --server | -s) connection+=($word $words[i]) ;;
      esac
    elif [[ $word != -* && -z $command ]]; then
      command=$word
    fi
  done
  case $command in
    '') flags=({2}) ;;
{3}  esac
  if [[ $words[CURRENT] == -* ]]; then
    _describe -o flag flags
  elif [[ -z $command || $command == help ]]; then
    _describe command commands
  elif [[ -n $nodes ]]; then
    others=(${{(f)"$($words[1] $connection __complete 2>/dev/null)"}})
    compadd -a others
  else
    compadd -a others
  fi
}}
if [[ $funcstack[1] == _haulout ]]; then
  _haulout "$@"
else
  compdef _haulout haulout
fi
)SH",
                     valued(), commands, described_flags(connection_flags()), cases);
}

std::string fish_flag(const Flag& flag, std::string_view condition) {
  std::string line = fmt::format("complete -c haulout -n '{}' -l {}", condition, flag.name);
  if (flag.letter != 0) line += fmt::format(" -s {}", flag.letter);
  if (flag.kind == Flag::Kind::value) line += " -r";
  return line + " -d " + in_quotes(first_sentence(flag.help), R"(\')") + "\n";
}

std::string fish_script() {
  std::string result = "# fish completion for haulout\ncomplete -c haulout -f\n";
  constexpr std::string_view first = "__fish_use_subcommand";
  for (const CommandRow& row : command_rows()) {
    const std::string seen = fmt::format("__fish_seen_subcommand_from {}", row.name);
    result +=
        fmt::format("complete -c haulout -n '{}' -a {} -d {}\n", first, row.name, in_quotes(row.summary, R"(\')"));
    for (const Flag& flag : flags_of(row.command)) result += fish_flag(flag, seen);
    if (takes_nodes(row.command))
      result += fmt::format("complete -c haulout -n '{}' -a '(haulout __complete 2>/dev/null)'\n", seen);
    if (const auto after = words_after(row.command); !after.empty())
      result += fmt::format("complete -c haulout -n '{}' -a '{}'\n", seen, joined(after, " "));
  }
  for (const Flag& flag : connection_flags()) result += fish_flag(flag, first);
  return result;
}

}  // namespace

std::vector<std::string> completion_shells() {
  return {"bash", "zsh", "fish"};
}

std::vector<std::string> migrate_sources() {
  return {"kured"};
}

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return bash_script();
  return shell == "zsh" ? zsh_script() : fish_script();
}

}  // namespace haulout::cli
