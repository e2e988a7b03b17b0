#include "agent/command_line.hpp"

#include <set>

#include "agent/exit_code.hpp"
#include "agent/flags.hpp"
#include "agent/help.hpp"
#include "agent/suggest.hpp"

namespace haulout::agent {
namespace {

struct Given {
  const Flag* flag;
  std::string spelling;  // "--timeout" or "-l", for messages
  std::string value;
};

struct Parsed {
  std::vector<Given> flags;
  std::vector<std::string> words;  // everything that is no flag
  bool help = false;
  bool version = false;
  std::string problem;
};

class Parser {
 public:
  Parser(const std::vector<Flag>& flags, const std::vector<std::string>& args) : flags_(flags), args_(args) {}

  Parsed run() {
    while (next_ < args_.size() && parsed_.problem.empty() && !parsed_.help) {
      const std::string& arg = args_[next_++];
      if (only_words_ || arg.size() < 2 || arg[0] != '-')
        parsed_.words.push_back(arg);
      else if (arg == "--")
        only_words_ = true;
      else if (arg[1] == '-')
        long_flag(arg);
      else
        short_flag(arg);
    }
    return std::move(parsed_);
  }

 private:
  void long_flag(const std::string& arg) {
    const std::size_t equals = arg.find('=');
    const std::string name = arg.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (name == "help" || name == "version") {
      (name == "help" ? parsed_.help : parsed_.version) = true;
      return;
    }
    for (const Flag& flag : flags_) {
      if (flag.name != name) continue;
      take(flag, "--" + name, equals == std::string::npos ? std::nullopt : std::optional(arg.substr(equals + 1)));
      return;
    }
    unknown("--" + name);
  }

  void short_flag(const std::string& arg) {
    if (arg[1] == 'h') {
      parsed_.help = true;
      return;
    }
    for (const Flag& flag : flags_) {
      if (flag.letter != arg[1]) continue;
      std::optional<std::string> value;
      if (arg.size() > 2) value = arg.substr(arg[2] == '=' ? 3 : 2);
      take(flag, arg.substr(0, 2), std::move(value));
      return;
    }
    unknown(arg.substr(0, 2));
  }

  void take(const Flag& flag, std::string spelling, std::optional<std::string> value) {
    if (!value) {
      switch (flag.kind) {
        case Flag::Kind::boolean: value = "true"; break;
        case Flag::Kind::explicit_:
          parsed_.problem =
              spelling + " was given without a value: write " + spelling + "=client or " + spelling + "=server";
          return;
        case Flag::Kind::value:
          if (next_ == args_.size()) {
            parsed_.problem = spelling + " needs a value";
            return;
          }
          value = args_[next_++];
      }
    }
    parsed_.flags.push_back({&flag, std::move(spelling), *std::move(value)});
  }

  void unknown(const std::string& spelling) {
    std::vector<std::string> known{"--help"};
    for (const Flag& flag : flags_) known.push_back("--" + flag.name);
    const auto suggestion = nearest(spelling, known);
    parsed_.problem = "unknown flag " + spelling + (suggestion ? "; did you mean " + *suggestion + "?" : "");
  }

  const std::vector<Flag>& flags_;
  const std::vector<std::string>& args_;
  std::size_t next_ = 0;
  bool only_words_ = false;
  Parsed parsed_;
};

std::vector<Flag> all_flags(Command command) {
  std::vector<Flag> flags = command_flags(command);
  for (Flag& flag : connection_flags()) flags.push_back(std::move(flag));
  return flags;
}

Immediate usage_error(const std::string& problem, std::string_view program, std::optional<Command> command) {
  const std::string about = command ? fmt::format("{} {}", program, to_string(*command)) : std::string(program);
  return {exit_usage, "", fmt::format("error: {}\nSee '{} --help' for usage.\n", problem, about)};
}

std::optional<Command> command_of(std::string_view word) {
  for (const Command command : {Command::drain, Command::cordon, Command::uncordon, Command::version})
    if (word == to_string(command)) return command;
  return std::nullopt;
}

std::string unknown_command(const std::string& word) {
  const auto suggestion = nearest(word, command_names());
  return fmt::format("unknown command \"{}\"{}", word, suggestion ? "; did you mean " + *suggestion + "?" : "");
}

// Takes "n1" and, as kubectl does, "node/n1". Returns what is wrong.
std::string take_node(Settings& settings, const std::string& word) {
  std::string name = word;
  const std::size_t slash = word.find('/');
  if (slash != std::string::npos) {
    const std::string kind = word.substr(0, slash);
    if (kind != "node" && kind != "nodes" && kind != "no")
      return fmt::format("\"{}\" is not a node: write NAME or node/NAME", word);
    name = word.substr(slash + 1);
  }
  if (name.empty() || name.find('/') != std::string::npos)
    return fmt::format("\"{}\" is no node name: write NAME or node/NAME", word);
  if (std::find(settings.nodes.begin(), settings.nodes.end(), name) == settings.nodes.end())
    settings.nodes.push_back(name);
  return {};
}

std::string take_nodes(Settings& settings, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    std::string problem = take_node(settings, word);
    if (!problem.empty()) return problem;
  }
  if (!settings.nodes.empty() && !settings.selector.empty())
    return "cannot specify both a node name and a --selector option: name the nodes, or select them by label";
  if (settings.nodes.empty() && settings.selector.empty())
    return "no node is given: name one or more, or select them with -l";
  return {};
}

}  // namespace

std::string program_name(std::string_view argv0) {
  const std::string_view base = argv0.substr(argv0.find_last_of('/') + 1);
  return base == "kubectl-haulout" || base == "kubectl_haulout" ? "kubectl haulout" : "haulout";
}

std::variant<Settings, Immediate> parse_command_line(std::string_view program, const std::vector<std::string>& args) {
  const std::string called = program_name(program);

  // The command is the first word that is no flag's value: connection flags may stand before it, as with kubectl. Every
  // flag of drain is known here, so that a misplaced one is not taken for a word.
  const std::vector<Flag> any_flags = all_flags(Command::drain);
  Parsed first = Parser(any_flags, args).run();
  if (first.words.empty()) {
    if (first.help) return Immediate{exit_done, help_text(std::nullopt, called), ""};
    if (first.version) return Immediate{exit_done, version_text(), ""};
    if (!first.problem.empty()) return usage_error(first.problem, called, std::nullopt);
    return Immediate{exit_usage, "", "error: no command is given\n\n" + help_text(std::nullopt, called)};
  }
  const std::string& word = first.words.front();
  if (word == "help") {
    if (first.words.size() == 1) return Immediate{exit_done, help_text(std::nullopt, called), ""};
    const auto topic = command_of(first.words[1]);
    if (!topic) return usage_error(unknown_command(first.words[1]), called, std::nullopt);
    return Immediate{exit_done, help_text(topic, called), ""};
  }
  const auto command = command_of(word);
  if (!command) return usage_error(unknown_command(word), called, std::nullopt);

  const std::vector<Flag> flags = all_flags(*command);
  Parsed parsed = Parser(flags, args).run();
  if (parsed.help) return Immediate{exit_done, help_text(command, called), ""};
  if (!parsed.problem.empty()) return usage_error(parsed.problem, called, command);
  if (parsed.version) return usage_error("unknown flag --version", called, command);
  Settings settings;
  settings.command = *command;
  for (const Given& given : parsed.flags) {
    const std::string wrong = given.flag->apply(settings, given.value);
    if (wrong.empty()) continue;
    return usage_error(fmt::format("invalid value \"{}\" for {}: {}", given.value, given.spelling, wrong), called,
                       command);
  }
  parsed.words.erase(parsed.words.begin());
  if (*command == Command::version) {
    if (!parsed.words.empty()) return usage_error("version takes no arguments", called, command);
    return Immediate{exit_done, version_text(), ""};
  }
  const std::string problem = take_nodes(settings, parsed.words);
  if (!problem.empty()) return usage_error(problem, called, command);
  return settings;
}

}  // namespace haulout::agent
