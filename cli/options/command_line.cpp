#include "cli/options/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "agent/process/process.hpp"
#include "base/duration.hpp"
#include "base/text.hpp"
#include "cli/options/build_info.hpp"
#include "cli/options/completion.hpp"
#include "cli/options/flags.hpp"
#include "cli/options/help.hpp"
#include "drain/option_table.hpp"

namespace haulout::cli {
namespace {

struct Spelling {
  const Flag* flag = nullptr;  // nullptr: the argument is not a known flag
  bool bare = false;           // the flag has no "=" and, if it is short, no value directly after its letter
  std::size_t equals = std::string::npos;
};

Spelling spelling_of(const std::string& arg, const std::vector<Flag>& flags) {
  if (arg.size() < 2 || arg[0] != '-') return {};
  const bool is_long = arg[1] == '-';
  const std::size_t equals = is_long ? arg.find('=') : (arg.find('=') == 2 ? 2 : std::string::npos);
  const std::string name = is_long ? arg.substr(2, equals == std::string::npos ? equals : equals - 2) : "";
  const auto named = [&](const Flag& flag) { return is_long ? flag.name == name : flag.letter == arg[1]; };
  const auto found = std::find_if(flags.begin(), flags.end(), named);
  if (found == flags.end()) return {};
  return {&*found, is_long ? equals == std::string::npos : arg.size() == 2, equals};
}

}  // namespace

Arguments normalise_arguments(const std::vector<Flag>& flags, const std::vector<std::string>& args) {
  Arguments result;
  for (auto arg = args.begin(); arg != args.end(); ++arg) {
    if (*arg == "--") {
      result.words.assign(arg + 1, args.end());
      break;
    }
    const auto [flag, bare, equals] = spelling_of(*arg, flags);
    if (flag == nullptr || (!bare && equals == std::string::npos)) {
      result.args.push_back(*arg);
    } else if (!bare) {
      result.args.push_back(arg->substr(0, equals));
      result.args.push_back(arg->substr(equals + 1));
    } else {
      result.args.push_back(*arg);
      if (flag->kind != Flag::Kind::value)
        result.args.emplace_back(flag->kind == Flag::Kind::boolean ? "true" : "");
      else if (arg + 1 != args.end())
        result.args.push_back(*++arg);
    }
  }
  return result;
}

namespace {

// Adds the node to the settings. Accepts "n1" and, as kubectl does, "node/n1". Returns an error message, or an empty
// string on success.
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
    return fmt::format("\"{}\" is not a node name: write NAME or node/NAME", word);
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
  return {};
}

// Returns an error message if neither a node nor a selector is given, else an empty string. For the commands that
// kubectl has, too, the message is kubectl's.
std::string need_nodes(const Settings& settings) {
  if (!settings.nodes.empty() || !settings.selector.empty()) return {};
  if (settings.selects)
    return "you must provide one or more resources: the --selector is empty; name nodes, or select them by label";
  const bool of_kubectl = settings.command == Command::drain || settings.command == Command::cordon ||
                          settings.command == Command::uncordon;
  return (of_kubectl ? fmt::format("USAGE: {} NODE [flags]; ", to_string(settings.command)) : "") +
         "no node is given: name one or more, or select them with -l";
}

// For `retire --local`: returns an error message if anything but this machine's node could be meant.
std::string need_this_node(const Settings& settings) {
  if (settings.selects || settings.nodes.size() > 1)
    return "--local retires the node of this machine: give no --selector, and at most the name of this node";
  return {};
}

std::string needs_all(const std::string& flag) {
  return flag + " applies only to the update of a whole fleet: add --all to rehearse that, or remove this flag";
}

// For `rehearse --all`: returns an error message if flags for one setting and for several are given together.
std::string one_or_several_settings(const Settings& settings) {
  const RehearseSettings& rehearse = settings.rehearse;
  const bool compares = !rehearse.compared_option.empty();
  if (!compares && !rehearse.plan) return {};
  const std::string flag = compares ? "--compare" : "--plan";
  if (!rehearse.max_unavailable.empty() && (!compares || rehearse.compared_option == "max-unavailable"))
    return flag + " and --max-unavailable exclude each other: " + flag +
           " rehearses several values of it. Remove --max-unavailable";
  if (!settings.timeline.empty())
    return flag +
           " and --timeline exclude each other: a timeline shows one rehearsal. Remove --timeline, and draw it "
           "for the setting that you choose";
  return {};
}

// For `rehearse`: returns an error message unless either nodes or --all is given, or if a flag is given that cannot be
// used with nodes (or with --all, if that is given). Returns an empty string otherwise.
std::string need_nodes_or_all(const Settings& settings) {
  const RehearseSettings& rehearse = settings.rehearse;
  if (!rehearse.all) {
    if (!rehearse.config_file.empty()) return needs_all("--config");
    if (!rehearse.max_unavailable.empty()) return needs_all("--max-unavailable");
    if (!rehearse.ramp.empty()) return needs_all("--ramp");
    if (rehearse.reboot_time) return needs_all("--reboot-time");
    if (!rehearse.compared_option.empty()) return needs_all("--compare");
    if (rehearse.plan) return needs_all("--plan");
    std::string problem = need_nodes(settings);
    return problem.empty() ? problem : problem + ", or rehearse the update of the whole fleet with --all";
  }
  if (!settings.nodes.empty() || !settings.selector.empty())
    return "--all rehearses every node: remove the node names and --selector, or remove --all to rehearse single "
           "drains";
  if (!rehearse.drain_flags.empty())
    return fmt::format(
        "--{0} applies to a single drain; with --all the agents drain as their configuration says. Remove --{0}{1}; if "
        "the agents have a configuration file, name the file with --config",
        rehearse.drain_flags.front(),
        rehearse.drain_flags.front() == "timeout" ? " (the agents' option is drain-deadline)" : "");
  return one_or_several_settings(settings);
}

// For `pause` and `resume`: returns an error message unless exactly one of nodes, --pool and --all is given.
std::string need_one_target(const Settings& settings) {
  const bool nodes = !settings.nodes.empty() || !settings.selector.empty();
  const int given = (nodes ? 1 : 0) + (settings.people.pool.empty() ? 0 : 1) + (settings.people.all ? 1 : 0);
  if (given == 1) return {};
  return given == 0 ? "no target is given: name nodes, select them with -l, or use --pool POOL or --all"
                    : "nodes, --pool and --all exclude each other: run the command once for each";
}

std::string shell_problem(const std::vector<std::string>& words) {
  const std::string shells = joined(completion_shells(), ", ");
  if (words.size() != 1) return "completion takes one shell: " + shells;
  const auto known = completion_shells();
  if (std::find(known.begin(), known.end(), words.front()) != known.end()) return {};
  return fmt::format("there is no completion for the shell \"{}\", only for {}", printable(words.front()), shells);
}

// For `migrate`: returns an error message unless the program is named from which to change over, or if flags exclude
// each other.
std::string migrate_problem(const Settings& settings, const std::vector<std::string>& words) {
  const std::vector<std::string> known = migrate_sources();
  if (words.size() != 1 || std::ranges::find(known, words.front()) == known.end())
    return fmt::format("migrate takes the name of the program from which you change over: {}", joined(known, ", "));
  const MigrateSettings& migrate = settings.migrate;
  const std::string flag = migrate.hold_lock ? "--hold-lock" : "--release-lock";
  if (migrate.hold_lock && migrate.release_lock)
    return "--hold-lock and --release-lock exclude each other: the one takes kured's lock, the other gives it back";
  if (!migrate.hold_lock && !migrate.release_lock) return {};
  if (!migrate.file.empty()) return flag + " changes kured's DaemonSet in the cluster, not a file: remove --filename";
  if (settings.output != OutputFormat::text) return flag + " prints no document: remove --output";
  return {};
}

// Stores `words`, the arguments of `settings.command` that are not flags, in the settings. The flags must have been
// applied to the settings before. Returns an error message if the words, or the words together with the flags, are
// invalid. Returns an empty string on success.
std::string take_words(Settings& settings, const std::vector<std::string>& words, std::string_view program) {
  switch (settings.command) {
    case Command::agent:
      return words.empty()
                 ? std::string()
                 : fmt::format("agent takes no arguments: remove \"{}\" (--node-name sets the node of the agent)",
                               words.front());
    case Command::version: return words.empty() ? "" : "version takes no arguments";
    case Command::audit:
      return words.empty() ? std::string()
                           : fmt::format("audit looks at all nodes and takes no arguments: remove \"{}\"",
                                         printable(words.front()));
    case Command::fleetlock_serve:
      return words.empty() ? std::string()
                           : fmt::format("fleetlock-serve takes no arguments: remove \"{}\" (--pool names the pools)",
                                         printable(words.front()));
    case Command::completion: return shell_problem(words);
    case Command::migrate: return migrate_problem(settings, words);
    case Command::complete_nodes: return {};
    default: break;
  }
  std::string problem = take_nodes(settings, words);
  if (!problem.empty()) return problem;
  switch (settings.command) {
    case Command::status: return {};  // without names, `status` shows all nodes
    case Command::explain:
      return settings.nodes.size() == 1 ? ""
                                        : fmt::format("explain takes one node: `{} status` shows all nodes", program);
    case Command::pause:
    case Command::resume: return need_one_target(settings);
    case Command::rehearse: return need_nodes_or_all(settings);
    case Command::retire: return settings.retire.local ? need_this_node(settings) : need_nodes(settings);
    default: return need_nodes(settings);
  }
}

// A CLI11 app (the program or one command) and the flags that it accepts. Borrows the app.
class Syntax {
 public:
  Syntax(CLI::App& app, std::vector<Flag> flags) : app_(app), flags_(std::move(flags)) {
    app.set_help_flag();  // removes CLI11's own flag, which would print CLI11's help
    app.allow_extras();
    help_ = app.add_flag("-h,--help");
    for (const Flag& flag : flags_) {
      const std::string names = (flag.letter != 0 ? fmt::format("-{},", flag.letter) : "") + "--" + flag.name;
      options_.push_back(
          app.add_option(names, CLI::callback_t())->multi_option_policy(CLI::MultiOptionPolicy::TakeAll));
    }
  }

  CLI::App& app() const { return app_; }
  bool help() const { return help_->count() != 0; }

  // Appends the arguments that CLI11 has not recognized as flags to `words`. Returns an error message if one of them
  // looks like a flag, else an empty string.
  std::string words(std::vector<std::string>& words) const {
    for (const std::string& extra : app_.remaining()) {
      if (extra.size() > 1 && extra[0] == '-') return unknown_flag(extra);
      words.push_back(extra);
    }
    return {};
  }

  // Applies the given flags to the settings, repeated ones in the order given. Returns an error message, or an empty
  // string on success.
  std::string apply(Settings& settings) const {
    for (std::size_t i = 0; i < flags_.size(); ++i)
      for (const std::string& value : options_[i]->results()) {
        const std::string wrong = apply(flags_[i], value, settings);
        if (!wrong.empty()) return wrong;
      }
    return {};
  }

  // Applies the flags that stood before the command as if they stood after it. A flag of `command` with the same name
  // or letter has the same meaning. Returns an error message, or an empty string on success.
  std::string apply_as(const Syntax& command, Settings& settings) const {
    for (std::size_t i = 0; i < flags_.size(); ++i) {
      if (options_[i]->count() == 0) continue;
      const auto same = [&](const Flag& flag) {
        return flag.name == flags_[i].name || (flag.letter != 0 && flag.letter == flags_[i].letter);
      };
      const auto flag = std::find_if(command.flags_.begin(), command.flags_.end(), same);
      if (flag == command.flags_.end())
        return fmt::format("{} has no flag --{}", command.app_.get_name(), flags_[i].name);
      for (const std::string& value : options_[i]->results()) {
        const std::string wrong = apply(*flag, value, settings);
        if (!wrong.empty()) return wrong;
      }
    }
    return {};
  }

 private:
  static std::string apply(const Flag& flag, const std::string& value, Settings& settings) {
    const std::string name = "--" + flag.name;
    if (flag.kind == Flag::Kind::explicit_ && value.empty())
      return fmt::format("{0} was given without a value: write {0}=client or {0}=server", name);
    const std::string wrong = flag.apply(settings, value);
    if (wrong.empty()) return {};
    const std::string names = flag.letter != 0 ? fmt::format("-{}, {}", flag.letter, name) : name;
    return fmt::format("invalid value \"{}\" for {}: {}", value, names, wrong);
  }

  std::string unknown_flag(const std::string& arg) const {
    const std::string spelling = arg[1] == '-' ? arg.substr(0, arg.find('=')) : arg.substr(0, 2);
    std::vector<std::string> known{"--help"};
    for (const Flag& flag : flags_) known.push_back("--" + flag.name);
    const auto suggestion = nearest(spelling, known);
    return "unknown flag " + spelling + (suggestion ? "; did you mean " + *suggestion + "?" : "");
  }

  CLI::App& app_;
  std::vector<Flag> flags_;
  std::vector<CLI::Option*> options_;  // in the order of flags_
  CLI::Option* help_ = nullptr;
};

std::vector<Flag> flags_of_all_commands() {
  std::vector<Flag> flags = all_flags(Command::drain);
  for (const Command command : {Command::retire, Command::status, Command::explain, Command::pause, Command::resume,
                                Command::request_reboot, Command::release, Command::agent, Command::rehearse,
                                Command::audit, Command::migrate, Command::fleetlock_serve})
    for (Flag& flag : all_flags(command)) flags.push_back(std::move(flag));
  return flags;
}

Immediate usage_error(const std::string& problem, std::string_view program, std::optional<Command> command) {
  const std::string about = command ? fmt::format("{} {}", program, to_string(*command)) : std::string(program);
  return {agent::exit_usage, "", fmt::format("error: {}\nSee '{} --help' for usage.\n", problem, about)};
}

std::string unknown_command(const std::string& word) {
  const auto suggestion = nearest(word, command_names());
  return fmt::format("unknown command \"{}\"{}", word, suggestion ? "; did you mean " + *suggestion + "?" : "");
}

// Limits the default of --settle to half of --timeout. Otherwise the settle time could take all of the drain's time.
void fit_settle(Settings& settings) {
  if (settings.drain.timeout && !settings.settle_given)
    settings.drain.settle = std::min(settings.drain.settle, *settings.drain.timeout / 2);
}

// Returns an error message if a flag has no effect without another flag, or if a combination of flags makes every drain
// fail. Returns an empty string otherwise.
std::string contradiction(const Settings& settings) {
  using drain::VolumeWait;
  const RetireSettings& retire = settings.retire;
  if (settings.audit.no_rehearse && settings.audit.rehearse_at_most != AuditSettings{}.rehearse_at_most)
    return "--no-rehearse and --rehearse-at-most exclude each other: use one of them";
  if (!retire.local && (retire.no_cleanup || retire.limit_given))
    return fmt::format("--{} has no effect without --local, which cleans up the machine",
                       retire.no_cleanup ? "no-cleanup" : "cleanup-timeout");
  if (retire.no_cleanup && retire.limit_given)
    return "--no-cleanup and --cleanup-timeout exclude each other: without a clean-up, nothing needs a limit";
  const auto timeout = settings.drain.timeout;
  if (settings.settle_given && timeout && *timeout <= settings.drain.settle) {
    if (*timeout <= drain::shortest_timeout)
      return fmt::format(
          "with this --timeout each drain ends at once, so not even an empty node could be drained; raise "
          "--timeout above --settle={}",
          format_duration(settings.drain.settle));
    return fmt::format(
        "--timeout={} is not longer than --settle={}, so not even an empty node could be drained; raise --timeout "
        "above --settle, or use --settle=0",
        format_duration(*timeout), format_duration(settings.drain.settle));
  }
  if (timeout && *timeout > drain::shortest_timeout && *timeout <= drain::longest_limit(settings.drain.policy.rules))
    return fmt::format(
        "--timeout={} is not longer than the wait of a --pod-rule, so the drain would end before it evicts the pods of "
        "that rule; raise --timeout, or shorten the wait",
        format_duration(*timeout));
  const bool looks_at_volumes =
      settings.drain.volumes != VolumeWait::off || settings.drain.volume_turns != VolumeWait::off;
  if (settings.drain.reattach_limit == Duration::zero() || looks_at_volumes) return {};
  return "--reattach-limit has no effect alone: add --wait-volumes, --serialize-volumes, or both";
}

// The grammar of the command line: connection flags, a command, and then the flags and words of that command.
class Grammar {
 public:
  explicit Grammar(std::string called) : called_(std::move(called)), program_(app_, connection_flags()) {
    // Match at most one command, so that `haulout drain status` treats `status` as the name of a node.
    app_.require_subcommand(0, 1);
    version_ = app_.add_flag("--version");
    std::vector<std::string> names = command_names();
    names.emplace_back(to_string(Command::complete_nodes));
    for (const std::string& name : names) {
      const auto command = command_of(name);
      commands_.push_back(
          std::make_unique<Syntax>(*app_.add_subcommand(name), command ? all_flags(*command) : connection_flags()));
    }
  }

  std::variant<Settings, Immediate> parse(const std::vector<std::string>& args) {
    Arguments normal = normalise_arguments(flags_of_all_commands(), args);
    std::string problem = read(std::move(normal.args));
    const Syntax* given = given_command();
    const auto command = given == nullptr ? std::nullopt : command_of(given->app().get_name());
    if (given == nullptr && (program_.help() || problem.empty())) return without_command();
    if (given != nullptr && (program_.help() || given->help())) return help(command);

    std::vector<std::string> words;
    Settings settings = default_settings(command.value_or(Command::drain));
    if (problem.empty()) {
      problem = program_.words(words);
      if (!problem.empty()) problem += " (only connection flags may precede the command)";
    }
    if (problem.empty() && !words.empty()) problem = unknown_command(words.front());
    if (problem.empty()) problem = given->words(words);
    if (problem.empty() && version_->count() != 0) problem = "unknown flag --version";
    if (problem.empty())
      problem = command == Command::agent ? program_.apply_as(*given, settings) : program_.apply(settings);
    if (problem.empty()) problem = given->apply(settings);
    if (!problem.empty()) return usage_error(problem, called_, command);
    words.insert(words.end(), normal.words.begin(), normal.words.end());
    return command ? run(*command, std::move(settings), words) : help_on(words);
  }

 private:
  // Parses the arguments with CLI11. Returns an error message, or an empty string on success. After an error, the flags
  // and words before it can still be used.
  std::string read(std::vector<std::string> args) {
    const std::string last = args.empty() ? "" : args.back();
    std::reverse(args.begin(), args.end());  // CLI11 reads the vector from its end
    try {
      app_.parse(std::move(args));
    } catch (const CLI::ArgumentMismatch&) {
      return last + " needs a value";
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return {};
  }

  const Syntax* given_command() const {
    for (const auto& command : commands_)
      if (app_.got_subcommand(&command->app())) return command.get();
    return nullptr;
  }

  Immediate help(std::optional<Command> command) const { return {agent::exit_done, help_text(command, called_), ""}; }

  Immediate without_command() const {
    if (version_->count() != 0) return {agent::exit_done, version_text(), ""};
    std::vector<std::string> words;
    const std::string problem = program_.words(words);
    if (!words.empty()) return usage_error(unknown_command(words.front()), called_, std::nullopt);
    if (program_.help()) return help(std::nullopt);
    if (!problem.empty()) return usage_error(problem, called_, std::nullopt);
    return {agent::exit_usage, "", "error: no command is given\n\n" + help_text(std::nullopt, called_)};
  }

  Immediate help_on(const std::vector<std::string>& topics) const {
    if (topics.empty()) return help(std::nullopt);
    const auto topic = command_of(topics.front());
    return topic ? help(topic) : usage_error(unknown_command(topics.front()), called_, std::nullopt);
  }

  std::variant<Settings, Immediate> run(Command command, Settings settings,
                                        const std::vector<std::string>& words) const {
    fit_settle(settings);
    std::string problem = take_words(settings, words, called_);
    if (problem.empty()) problem = contradiction(settings);
    if (!problem.empty()) return usage_error(problem, called_, command);
    if (command == Command::version)
      return Immediate{agent::exit_done, settings.output == OutputFormat::json ? version_json() : version_text(), ""};
    if (command == Command::completion) return Immediate{agent::exit_done, completion_script(words.front()), ""};
    return settings;
  }

  std::string called_;
  CLI::App app_;
  Syntax program_;
  CLI::Option* version_ = nullptr;
  std::vector<std::unique_ptr<Syntax>> commands_;
};

}  // namespace

std::string program_name(std::string_view argv0) {
  const std::string_view base = argv0.substr(argv0.find_last_of('/') + 1);
  return base == "kubectl-haulout" || base == "kubectl_haulout" ? "kubectl haulout" : "haulout";
}

std::variant<Settings, Immediate> parse_command_line(std::string_view program, const std::vector<std::string>& args) {
  return Grammar(program_name(program)).parse(args);
}

}  // namespace haulout::cli
