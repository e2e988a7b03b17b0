#include "agent/config/read_config.hpp"

#include <fmt/format.h>
#include <cerrno>
#include <system_error>

#include "base/files.hpp"
#include "base/text.hpp"

namespace haulout::agent {
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

// Returns the file that --config or HAULOUT_CONFIG names. Returns nothing if neither does or if the name is empty; then
// the default file is used.
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
  return fmt::format("the configuration file {} cannot be read: {}: {}", path,
                     std::generic_category().message(file.failure),
                     named.empty() ? "make it readable, or delete it"
                                   : "correct its path (--config, HAULOUT_CONFIG), or make it readable");
}

namespace {

bool among(const std::vector<RebootMethod>& methods, RebootMethod method) {
  return std::find(methods.begin(), methods.end(), method) != methods.end();
}

struct Rule {
  bool broken;
  const char* problem;  // names the thing, the cause and the remedy
};

void add(const std::vector<Rule>& rules, std::vector<std::string>& problems) {
  for (const Rule& rule : rules)
    if (rule.broken) problems.emplace_back(rule.problem);
}

std::vector<Rule> about_slots(const AgentConfig& c) {
  const AgentConfig fresh;
  const bool fleetlock = c.slots == SlotsChoice::fleetlock;
  const bool leases = c.slots == SlotsChoice::lease;
  return {
      {fleetlock && c.fleetlock_url.empty(),
       "slots is fleetlock, but no server is set: set fleetlock-url, or choose other slots"},
      {!fleetlock && !c.fleetlock_url.empty(),
       "fleetlock-url is set, but slots is not fleetlock, so the agent would not use that server: set slots to "
       "fleetlock, or remove fleetlock-url"},
      {c.authority == AuthorityChoice::kubelet && leases,
       "authority is kubelet and slots is lease, but the kubelet's credentials may not write Leases: set slots to "
       "fleetlock, or to none for a machine on its own"},
      {!c.pool_label.empty() && c.pool != fresh.pool,
       "pool and pool-label both say which pool the node is in: remove one of them"},
      {!leases && c.max_unavailable != fresh.max_unavailable,
       "max-unavailable is set, but only slots lease uses it: remove it, or set slots to lease"},
      {!leases && !c.zone_label.empty(),
       "zone-label is set, but only slots lease uses it: remove it, or set slots to lease"},
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
  return {
      {sentinel && sentinel_command,
       "sentinel and sentinel-command both say whether a reboot is needed: remove one of them"},
      {c.backend == B::file && !sentinel, "backend is file, but no file is set: set sentinel"},
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
      {by_command && c.reboot_command.empty(),
       "reboot-method contains command, but reboot-command is not set: set reboot-command, or remove command from "
       "reboot-method"},
      {!by_command && !c.reboot_command.empty(),
       "reboot-command is set, but reboot-method does not contain command, so it would never run: add command to "
       "reboot-method, or remove reboot-command"},
      {among(c.reboot_methods, RebootMethod::none) && c.reboot_methods.size() > 1,
       "reboot-method contains none beside other methods, but none leaves the reboot to another program: write none "
       "alone, or remove it"},
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

std::vector<Rule> about_the_rest(const AgentConfig& c) {
  return {
      {c.drain.timeout && *c.drain.timeout <= c.drain.settle,
       "drain-deadline is not longer than settle, so no drain could succeed: make drain-deadline longer, or settle "
       "shorter"},
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
