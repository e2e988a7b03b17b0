#include "agent/config/read_config.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <functional>
#include <map>
#include <system_error>

#include "agent/config/value_checks.hpp"
#include "agent/node/readiness.hpp"
#include "base/files.hpp"
#include "base/plain_text.hpp"
#include "base/text.hpp"
#include "k8s/yaml_codec.hpp"

namespace haulout::agent {
namespace {

// Columns of a value that are shown in a message.
constexpr std::size_t longest_shown = 80;

std::string shown(const std::string& text) {
  if (text.find("://") != std::string::npos && text.find('@') != std::string::npos)
    return "(not shown, because it may contain a password)";
  return fmt::format("\"{}\"", clipped(printable(text), longest_shown));
}

bool in_environment(const Option& option) {
  return option.home != Option::Home::flag_only;
}

std::vector<GivenValue> values_of(const Option& option, const std::string& variable, const std::string& value) {
  if (!option.repeatable()) return {{value, variable, ""}};
  std::vector<GivenValue> values;
  for (const std::string& part : split_at(value, ';'))
    if (!part.empty()) values.push_back({part, variable, ""});
  return values;
}

// Returns true if Kubernetes injects a variable with this name (without HAULOUT_) for a Service called haulout; see
// https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
bool is_service_link(std::string_view rest) {
  const std::string name = "_" + std::string(rest);
  if (name.ends_with("_SERVICE_HOST") || name.ends_with("_PORT") || name.find("_SERVICE_PORT") != std::string::npos)
    return true;
  const auto port = name.find("_PORT_");
  if (port == std::string::npos) return false;
  const auto digit = port + std::string_view("_PORT_").size();
  return digit < name.size() && name[digit] >= '0' && name[digit] <= '9';
}

}  // namespace

Reading read_flags(const FlagValues& flags) {
  Reading reading;
  for (const auto& [name, value] : flags) {
    const Option* option = find_option(name);
    if (option == nullptr) {
      reading.problems.push_back("unknown flag --" + name);
      continue;
    }
    std::vector<GivenValue>& values = reading.given[name];
    if (option->repeatable() && value.empty())
      values.clear();
    else
      values.push_back({value, "--" + name, ""});
  }
  return reading;
}

namespace {

Reading read_variables(const Variables& environment, const std::function<std::string(const Option&)>& variable_of) {
  Reading reading;
  for (const Option* option : options()) {
    const std::string variable = variable_of(*option);
    const auto found = variable.empty() ? environment.end() : environment.find(variable);
    if (found != environment.end())
      reading.given.emplace(option->name, values_of(*option, found->first, found->second));
  }
  return reading;
}

std::string variable_of_value(const Option& option) {
  return in_environment(option) ? option.variable() : "";
}

std::string variable_of_default(const Option& option) {
  if (option.home != Option::Home::everywhere) return {};
  return std::string(variable_prefix) + "DEFAULT_" + option.variable().substr(variable_prefix.size());
}

}  // namespace

Reading read_environment(const Variables& environment) {
  return read_variables(environment, variable_of_value);
}

Reading read_packaged_defaults(const Variables& environment) {
  return read_variables(environment, variable_of_default);
}

std::vector<std::string> environment_warnings(const Variables& environment) {
  std::vector<std::string> known;
  std::map<std::string, const Option*> by_variable;
  for (const Option* option : options()) {
    by_variable.emplace(option->variable(), option);
    if (in_environment(*option)) known.push_back(option->variable().substr(variable_prefix.size()));
    if (const std::string name = variable_of_default(*option); !name.empty()) {
      by_variable.emplace(name, option);
      known.push_back(name.substr(variable_prefix.size()));
    }
  }
  std::vector<std::string> warnings;
  for (const auto& [name, value] : environment) {
    if (!name.starts_with(variable_prefix)) continue;
    const auto option = by_variable.find(name);
    if (option != by_variable.end() && in_environment(*option->second)) continue;
    if (option != by_variable.end()) {
      warnings.push_back(fmt::format("{} is ignored: --{} is a flag only", name, option->second->name));
      continue;
    }
    const std::string rest = name.substr(variable_prefix.size());
    const auto meant = is_service_link(rest) ? std::nullopt : nearest(rest, known);
    if (meant) warnings.push_back(fmt::format("{0} is ignored; did you mean {1}{2}?", name, variable_prefix, *meant));
  }
  return warnings;
}

std::string invalid_value(const GivenValue& value, std::string_view why) {
  return fmt::format("{}{}invalid value {} for {}: {}", value.place, value.place.empty() ? "" : ": ", shown(value.text),
                     value.name, why);
}

namespace {

using k8s::YamlValue;
using Kind = k8s::YamlValue::Kind;

// Returns a problem if the file is not UTF-8 or has control characters, because the YAML parser would silently end the
// file at some of them, and replace others.
std::string unreadable(const ConfigFile& file) {
  std::size_t line = 1;
  for (std::string_view rest = file.text; !rest.empty();) {
    const std::size_t length = utf8_sequence(rest);
    const auto byte = static_cast<unsigned char>(rest.front());
    if (length == 0) return fmt::format("{}:{}: this is not UTF-8: save the file as UTF-8", file.path, line);
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F)
      return fmt::format("{}:{}: control character 0x{:02x}: remove it", file.path, line, byte);
    if (byte == '\n') ++line;
    rest.remove_prefix(length);
  }
  return {};
}

enum class Meaning { null, boolean, number, text };

Meaning meaning_of(const YamlValue& scalar) {
  if (scalar.json.starts_with('"')) return Meaning::text;
  if (scalar.json == "null") return Meaning::null;
  return scalar.json == "true" || scalar.json == "false" ? Meaning::boolean : Meaning::number;
}

bool takes_numbers(ValueType type) {
  return type == ValueType::number || type == ValueType::number_or_percentage || type == ValueType::duration;
}

// Returns a problem if YAML reads an unquoted word as a type that the option does not accept, for example `on` as a
// Boolean.
std::string misread(const Option& option, const YamlValue& scalar) {
  const ValueType type = option.values.type;
  const Meaning meaning = meaning_of(scalar);
  if (meaning == Meaning::text) return {};
  if (meaning == Meaning::null) return "it is empty";
  if (type == ValueType::boolean) return meaning == Meaning::boolean ? "" : "it must be true or false";
  if (meaning == Meaning::number && takes_numbers(type))
    return scalar.text == scalar.json
               ? ""
               : fmt::format("YAML reads {} as {}: write {}", scalar.text, scalar.json, scalar.json);
  const auto& words = option.values.words;
  const bool is_choice = type == ValueType::choice || type == ValueType::choices;
  if (is_choice && std::ranges::find(words, scalar.text) == words.end()) return must_be_one_of(words);
  if (meaning == Meaning::boolean && takes_numbers(type))
    return type == ValueType::duration               ? "it must be a duration, like 90s"
           : type == ValueType::number_or_percentage ? "it must be a number or a percentage, like 2 or 10%"
                                                     : "it must be a number";
  return fmt::format("YAML reads this as the {} {}: put it in quotes",
                     meaning == Meaning::boolean ? "Boolean" : "number", scalar.json);
}

class FileReader {
 public:
  explicit FileReader(const ConfigFile& file) : file_(file) {}

  Reading read() {
    std::string problem = unreadable(file_);
    if (!problem.empty()) return {{}, {std::move(problem)}};
    const auto tree = k8s::yaml_to_tree(file_.text);
    if (!tree)
      return {{}, {fmt::format("{}: the file cannot be used as YAML: {}", file_.path, tree.error().message())}};
    if (*tree == nullptr) return {};
    if ((*tree)->kind != Kind::mapping)
      return {{}, {place((*tree)->line) + ": the file must consist of lines like \"option: value\""}};
    for (const auto& [key, value] : (*tree)->members) read_member(*key, *value);
    return std::move(reading_);
  }

 private:
  std::string place(std::size_t line) const { return fmt::format("{}:{}", file_.path, line); }

  void problem(std::size_t line, std::string_view what) {
    reading_.problems.push_back(fmt::format("{}: {}", place(line), what));
  }

  void read_member(const YamlValue& key, const YamlValue& value) {
    const std::string name = printable(key.text);
    const auto [before, first] = lines_.emplace(key.text, key.line);
    if (!first)
      return problem(key.line,
                     fmt::format("duplicate key {} (first set in line {}): remove one of them", name, before->second));
    const Option* option = find_option(key.text);
    if (option == nullptr) return unknown(key.line, name);
    if (option->home == Option::Home::flag_only)
      return problem(key.line, fmt::format("{0} is not allowed in the file: give it as a flag, --{0}", name));
    if (option->home == Option::Home::flag_and_environment)
      return problem(key.line, fmt::format("{0} is not allowed in the file that it names: use --{0} or {1}", name,
                                           option->variable()));
    if (value.kind == Kind::mapping)
      return problem(key.line,
                     name + " contains further keys, but no option has keys of its own: write one value after it");
    if (value.kind == Kind::sequence) return read_list(*option, key, value);
    if (meaning_of(value) == Meaning::null) return;
    GivenValue given{value.text, option->name, place(key.line)};
    const std::string wrong = misread(*option, value);
    // Use the text "true" or "false", also if the file has yes, no, on or off.
    if (wrong.empty() && meaning_of(value) == Meaning::boolean) given.text = value.json;
    if (!wrong.empty())
      reading_.problems.push_back(invalid_value(given, wrong));
    else if (option->repeatable() && value.text.empty())
      reading_.given[option->name] = {};
    else
      reading_.given[option->name] = {std::move(given)};
  }

  void unknown(std::size_t line, const std::string& name) {
    std::vector<std::string> known;
    for (const Option* option : options())
      if (option->home == Option::Home::everywhere) known.push_back(option->name);
    const auto meant = nearest(name, known);
    problem(line, fmt::format("unknown key \"{}\"; {}", name,
                              meant ? fmt::format("did you mean {}?", *meant)
                                    : std::string("'haulout agent --help' lists all")));
  }

  void read_list(const Option& option, const YamlValue& key, const YamlValue& list) {
    const ValueType type = option.values.type;
    if (type != ValueType::list && type != ValueType::choices && type != ValueType::command)
      return problem(key.line, option.name + " takes one value, not a list");
    std::vector<GivenValue> values;
    for (const auto& item : list.items) {
      GivenValue given{item->text, option.name, place(item->line)};
      if (item->kind != Kind::scalar)
        return problem(item->line,
                       fmt::format("an entry of {} must be a value, neither list nor mapping", option.name));
      const std::string wrong = misread(option, *item);
      if (!wrong.empty())
        reading_.problems.push_back(invalid_value(given, wrong));
      else
        values.push_back(std::move(given));
    }
    if (option.repeatable())
      reading_.given[option.name] = std::move(values);
    else
      reading_.given[option.name] = {as_one(option, values, place(key.line))};
  }

  // Converts a list to the one value that a flag would have.
  static GivenValue as_one(const Option& option, const std::vector<GivenValue>& values, std::string place) {
    std::vector<std::string> texts;
    texts.reserve(values.size());
    for (const GivenValue& value : values) texts.push_back(value.text);
    const bool program = option.values.type == ValueType::command;
    return {program ? quoted_words(texts) : joined(texts, ","), option.name, std::move(place)};
  }

  const ConfigFile& file_;
  Reading reading_;
  std::map<std::string, std::size_t> lines_;
};

}  // namespace

Reading read_file(const ConfigFile& file) {
  return FileReader(file).read();
}

namespace {

// Sets one option from the values of one source. Returns the problems.
std::vector<std::string> set(const Option& option, const std::vector<GivenValue>& values, AgentConfig& config) {
  std::vector<std::string> problems;
  for (const GivenValue& value : values) {
    if (value.text.empty() && option.empty_resets()) {
      if (option.repeatable()) problems.push_back(invalid_value(value, "it is empty"));
      continue;
    }
    const std::string wrong = option.values.set(config, value.text);
    if (!wrong.empty()) problems.push_back(invalid_value(value, wrong));
  }
  return problems;
}

// Returns the values that count: all values of an option that may be repeated, otherwise the last one.
std::vector<GivenValue> standing(const Option& option, const std::vector<GivenValue>& values) {
  if (option.repeatable() || values.size() < 2) return values;
  return {values.back()};
}

// If the back end is automatic and a sentinel is given, the kind of sentinel determines the back end.
void settle_backend(AgentConfig& config) {
  if (config.backend != BackendChoice::automatic) return;
  if (!config.sentinel.empty())
    config.backend = BackendChoice::file;
  else if (!config.sentinel_command.empty())
    config.backend = BackendChoice::command;
}

}  // namespace

std::variant<AgentConfig, std::string> read_config(const FlagValues& flags, const Variables& environment,
                                                   const std::optional<ConfigFile>& file) {
  std::vector<Reading> sources;  // the lowest precedence first
  sources.push_back(read_packaged_defaults(environment));
  sources.push_back(file ? read_file(*file) : Reading());
  sources.push_back(read_environment(environment));
  sources.push_back(read_flags(flags));

  AgentConfig config;
  std::vector<std::string> problems;
  for (const Reading& source : sources) {
    problems.insert(problems.end(), source.problems.begin(), source.problems.end());
    for (const auto& [name, values] : source.given) {
      AgentConfig judged;
      for (std::string& problem : set(*find_option(name), values, judged)) problems.push_back(std::move(problem));
    }
  }
  for (const Option* option : options()) {
    const auto given = [&](const Reading& source) { return source.given.contains(option->name); };
    const auto highest = std::find_if(sources.rbegin(), sources.rend(), given);
    if (highest != sources.rend()) set(*option, standing(*option, highest->given.at(option->name)), config);
  }
  if (problems.empty()) problems = contradictions(config);
  if (!problems.empty()) return joined(problems, "\n");
  settle_backend(config);
  return config;
}

namespace {

// Returns the file that --config or HAULOUT_CONFIG names. Returns an empty string if neither names one; then the
// default file is used.
std::string named_file(const FlagValues& flags, const Variables& environment) {
  std::optional<std::string> name;
  for (const auto& [flag, value] : flags)
    if (flag == "config") name = value;
  if (name) return *name;
  const auto variable = environment.find("HAULOUT_CONFIG");
  return variable == environment.end() ? "" : variable->second;
}

constexpr std::size_t largest_file = std::size_t{1} << 20;  // bytes; the limit of a ConfigMap

}  // namespace

std::variant<AgentConfig, std::string> load_config(const FlagValues& flags, const Variables& environment,
                                                   std::string_view default_file) {
  const std::string named = named_file(flags, environment);
  const std::string path = named.empty() ? std::string(default_file) : named;
  FileText file = file_text(path, largest_file);
  if (file.failure == 0) return read_config(flags, environment, ConfigFile{path, std::move(file.text)});
  if (named.empty() && file.failure == ENOENT) return read_config(flags, environment, std::nullopt);
  return fmt::format(
      "the configuration file {} cannot be read: {}: {}", path, std::generic_category().message(file.failure),
      named.empty() ? "make it a readable file of at most 1 MiB, or delete it"
                    : "correct its path (--config, HAULOUT_CONFIG), or make it a readable file of at most 1 MiB");
}

namespace {

bool among(const std::vector<RebootMethod>& methods, RebootMethod method) {
  return std::find(methods.begin(), methods.end(), method) != methods.end();
}

struct Rule {
  bool broken;
  std::string problem;  // names the thing, the cause and the remedy
};

void add(const std::vector<Rule>& rules, std::vector<std::string>& problems) {
  for (const Rule& rule : rules)
    if (rule.broken) problems.emplace_back(rule.problem);
}

std::vector<Rule> about_slots(const AgentConfig& c) {
  const AgentConfig fresh;
  const bool fleetlock = c.slots == SlotsChoice::fleetlock;
  const bool leases = c.slots == SlotsChoice::lease;
  const auto of_leases = [leases](std::string_view option, bool is_set) {
    return Rule{!leases && is_set,
                fmt::format("{} is set, but only slots lease uses it: remove it, or set slots to lease", option)};
  };
  return {
      {fleetlock && c.fleetlock_url.empty(),
       "slots is fleetlock, but no server is set: set fleetlock-url, or choose other slots"},
      {!fleetlock && !c.fleetlock_url.empty(),
       "fleetlock-url is set, but slots is not fleetlock, so the agent would not use that server: set slots to "
       "fleetlock, or remove fleetlock-url"},
      {c.authority == AuthorityChoice::kubelet && leases,
       "authority is kubelet and slots is lease, but the kubelet's credentials may not write Leases: set slots to "
       "fleetlock, or to none for a machine on its own"},
      {c.authority == AuthorityChoice::kubelet && c.drain.guards.surge != drain::Surge::off,
       "authority is kubelet and surge is on, but the kubelet's credentials may not change pods: remove surge, or "
       "choose another authority"},
      {c.authority == AuthorityChoice::kubelet && c.drain.eviction_requests != drain::EvictionRequests::off,
       "authority is kubelet and eviction-requests is on, but the kubelet's credentials may not create "
       "EvictionRequests: remove eviction-requests, or choose another authority"},
      {!c.pool_label.empty() && c.pool != fresh.pool,
       "pool and pool-label both say which pool the node is in: remove one of them"},
      of_leases("max-unavailable", c.max_unavailable != fresh.max_unavailable),
      of_leases("ramp", !c.ramp.empty()),
      of_leases("halt-after", c.halt_after != fresh.halt_after),
      of_leases("roll-out-order", c.roll_out_order != fresh.roll_out_order),
      of_leases("zone-label", !c.zone_label.empty()),
  };
}

std::vector<Rule> about_the_system(const AgentConfig& c) {
  const AgentConfig fresh;
  using B = BackendChoice;
  const bool with_file = c.backend == B::file || c.backend == B::automatic;
  const bool with_command = c.backend == B::command || c.backend == B::automatic;
  const bool by_command = among(c.reboot_methods, RebootMethod::command);
  const bool sentinel = !c.sentinel.empty();
  const bool sentinel_command = !c.sentinel_command.empty();
  const bool updates = c.update != UpdateChoice::off;
  return {
      {sentinel && sentinel_command,
       "sentinel and sentinel-command both say whether a reboot is needed: remove one of them"},
      {c.backend == B::file && !sentinel,
       "backend is file, but no file is set: set sentinel to a file that exists when a reboot is needed, like "
       "/run/reboot-required"},
      {c.backend == B::command && !sentinel_command, "backend is command, but no command is set: set sentinel-command"},
      {sentinel && !with_file,
       "sentinel is set, but only backend file uses it: set backend to file, or remove sentinel"},
      {sentinel_command && !with_command,
       "sentinel-command is set, but only backend command runs it: set backend to command, or remove "
       "sentinel-command"},
      {!sentinel_command && c.sentinel_exit_codes != fresh.sentinel_exit_codes,
       "sentinel-exit-codes is set, but sentinel-command is not: set sentinel-command, or remove sentinel-exit-codes"},
      {!sentinel_command && c.sentinel_interval != fresh.sentinel_interval,
       "sentinel-interval is set, but sentinel-command is not: set sentinel-command, or remove sentinel-interval"},
      {updates && (c.backend == B::file || c.backend == B::command || sentinel || sentinel_command),
       "update is set, but backends file and command cannot install updates: set update to off"},
      {updates && c.backend == B::bottlerocket,
       "update is set, but backend bottlerocket installs its image before the drain anyway: set update to off"},
      {c.update == UpdateChoice::before_drain && c.backend == B::debian,
       "update is before-drain, but backend debian would install packages while pods run: set update to after-drain"},
      {updates && c.update_packages != fresh.update_packages && c.backend != B::debian && c.backend != B::automatic,
       "update-packages is set, but only backend debian uses it: remove update-packages"},
      {updates && c.update_services != fresh.update_services && c.backend != B::debian && c.backend != B::automatic,
       "update-services is set, but only backend debian restarts services: remove update-services"},
      {updates && c.backend == B::rauc && c.update_bundle.empty(),
       "backend is rauc and update is set, but no bundle is named: set update-bundle"},
      {!c.update_bundle.empty() && (!updates || (c.backend != B::rauc && c.backend != B::automatic)),
       "update-bundle is set, but only backend rauc with update uses it: set backend to rauc and update to after-drain "
       "or before-drain, or remove update-bundle"},
      {!updates && !c.pin.empty(),
       "pin has no effect, because update is off: remove pin, or set update (only with a backend that installs "
       "images)"},
      {!c.pin.empty() && (c.backend == B::debian || c.backend == B::transactional_update),
       "pin is set, but updates of backends debian and transactional-update have no version: remove pin"},
      {!updates && c.update_packages != fresh.update_packages,
       "update-packages has no effect, because update is off: remove update-packages, or set update to "
       "after-drain (only with backend debian)"},
      {!updates && c.update_services != fresh.update_services,
       "update-services has no effect, because update is off: remove update-services, or set update to "
       "after-drain (only with backend debian)"},
      {!updates && c.update_limit != fresh.update_limit,
       "update-limit has no effect, because update is off: remove update-limit, or set update (only with a backend "
       "that installs updates)"},
      {!updates && c.backend != BackendChoice::bottlerocket && c.backend != BackendChoice::automatic &&
           c.update_attempts != fresh.update_attempts,
       "update-attempts has no effect, because update is off: remove update-attempts, or set update (only with a "
       "backend that installs updates; the backend bottlerocket does so without it)"},
      {by_command && c.reboot_command.empty(),
       "reboot-method contains command, but reboot-command is not set: set reboot-command, or remove command from "
       "reboot-method"},
      {!by_command && !c.reboot_command.empty(),
       "reboot-command is set, but reboot-method does not contain command, so it would never run: add command to "
       "reboot-method, or remove reboot-command"},
      {among(c.reboot_methods, RebootMethod::none) && c.reboot_methods.size() > 1,
       "reboot-method contains \"none\" and other methods, but with \"none\" another program reboots the machine: keep "
       "only \"none\", or remove it"},
  };
}

std::vector<Rule> about_prometheus(const AgentConfig& c) {
  const AgentConfig fresh;
  const bool named = !c.prometheus_url.empty();
  const bool https = c.prometheus_url.starts_with("https://");
  const bool token = !c.prometheus_token_file.empty();
  const bool user = !c.prometheus_username.empty();
  const bool password = !c.prometheus_password_file.empty();
  const bool ca = !c.prometheus_ca_file.empty();
  const bool certificate = !c.prometheus_cert_file.empty();
  const bool key = !c.prometheus_key_file.empty();
  const bool asked = c.prometheus_query != fresh.prometheus_query ||
                     c.prometheus_fail_mode != fresh.prometheus_fail_mode ||
                     c.prometheus_max_age != fresh.prometheus_max_age;
  return {
      {!named && (token || user || password || ca || certificate || key || asked),
       "options for Prometheus are set, but its address is not: set prometheus-url, or remove the other prometheus-… "
       "options"},
      {user != password, "prometheus-username and prometheus-password-file need each other: set both, or neither"},
      {token && (user || password),
       "prometheus-token-file and prometheus-username are two ways to log in: remove one of them"},
      {certificate != key, "prometheus-cert-file and prometheus-key-file need each other: set both, or neither"},
      {named && !https && (ca || certificate || key),
       "certificates for Prometheus are set, but prometheus-url is not https: correct the URL, or remove "
       "prometheus-ca-file, prometheus-cert-file and prometheus-key-file"},
  };
}

// Returns true if one condition is to have two statuses.
bool wants_two_statuses(const std::vector<std::string>& conditions) {
  std::map<std::string, std::string> statuses;
  for (const std::string& text : conditions) {
    const auto condition = parse_condition(text);
    if (condition && statuses.try_emplace(condition->type, condition->status).first->second != condition->status)
      return true;
  }
  return false;
}

std::vector<Rule> about_the_rest(const AgentConfig& c) {
  return {
      {wants_two_statuses(c.verify_conditions),
       "verify-condition names one condition with two statuses, so no node could be verified: remove one of them"},
      {c.drain.timeout && *c.drain.timeout <= c.drain.settle,
       "drain-deadline is not longer than settle, so no drain could succeed: make drain-deadline longer, or settle "
       "shorter"},
      {c.drain.timeout && *c.drain.timeout <= drain::longest_limit(c.drain.policy.rules),
       "drain-deadline is not longer than the wait of a pod-rule, so the deadline would end each drain before the pod "
       "is evicted: set a longer drain-deadline, or a shorter wait"},
      {c.drain.timeout && *c.drain.timeout <= c.lb_drain_wait,
       "drain-deadline includes lb-drain-wait and is not longer, so no drain could succeed: make drain-deadline "
       "longer, or lb-drain-wait shorter"},
      {c.backoff > std::chrono::hours(1), "backoff is longer than one hour, which is its maximum: shorten it"},
      {c.check && c.release, "--check changes nothing, but --release does: give only one of them"},
  };
}

}  // namespace

std::vector<std::string> contradictions(const AgentConfig& config) {
  std::vector<std::string> problems;
  add(about_slots(config), problems);
  add(about_the_system(config), problems);
  add(about_prometheus(config), problems);
  add(about_the_rest(config), problems);
  return problems;
}

}  // namespace haulout::agent
