#include "agent/config/option_table.hpp"

#include <fmt/format.h>

#include "agent/config/value_checks.hpp"
#include "agent/node/record.hpp"
#include "base/text.hpp"
#include "drain/option_table.hpp"

namespace haulout::agent {
namespace {

using C = AgentConfig;

Values<C> number_or_percentage(std::string C::* field, std::string unit, ValueCheck check) {
  Values<C> values = text<C>(field, "number, percentage", check);
  values.type = ValueType::number_or_percentage;
  values.unit = std::move(unit);
  return values;
}

Values<C> command(std::vector<std::string> C::* field) {
  const auto set = [field](C& config, const std::string& value) { return split_words(value, config.*field); };
  return {ValueType::command, "command", "", {}, set, [field](const C& config) { return quoted_words(config.*field); }};
}

Values<C> exit_codes(std::map<int, bool> C::* field) {
  const auto set = [field](C& config, const std::string& value) { return parse_exit_codes(value, config.*field); };
  return {
      ValueType::text, "code=answer", "", {}, set, [field](const C& config) { return exit_codes_text(config.*field); }};
}

OptionGroup agent_and_node() {
  using A = AuthorityChoice;
  return {
      "The agent and its node",
      {
          {"config", text<C>(&C::config_file, "file"),
           "The configuration file. A file that is named must exist; the default file need not.",
           Option::Home::flag_and_environment},
          {"node-name", text<C>(&C::node_name, "name", check_node_name),
           "The Node that this agent manages. Without this option: the Node to which its credential is bound."},
          {"namespace", text<C>(&C::ns, "name", check_dns_label),
           "The namespace of the fleet's Leases and of the ConfigMap haulout.", Option::Home::everywhere, 'n'},
          {"kubeconfig", text<C>(&C::kubeconfig, "file"),
           "The kubeconfig file. Without this option: $KUBECONFIG, the pod's ServiceAccount or the kubelet's "
           "kubeconfig, in this order."},
          {"authority",
           choice<C, A>(&C::authority, {{"auto", A::automatic},
                                        {"impersonation", A::impersonation},
                                        {"kubelet", A::kubelet},
                                        {"policies", A::policies},
                                        {"serviceaccount", A::service_account}}),
           "How the API server restricts this agent to its own Node. auto: kubelet with a kubelet's credentials, "
           "otherwise impersonation or policies, whichever works; if none does, the agent does not start. "
           "serviceaccount: the agent does not check that it is restricted, so it may be able to change every Node."},
          {"host-root", text<C>(&C::host_root, "directory", check_absolute_path),
           "The directory where the container has mounted the file system of the host. The agent looks for every "
           "file of the host beneath it: boot id, os-release, sentinels, sockets and the system bus."},
      }};
}

OptionGroup slots() {
  using S = SlotsChoice;
  return {
      "Slots",
      {
          {"slots", choice<C, S>(&C::slots, {{"lease", S::lease}, {"fleetlock", S::fleetlock}, {"none", S::none}}),
           "Where a node gets its slot, the permission to be unavailable for its update. lease: Leases in the "
           "namespace. fleetlock: a FleetLock server, for credentials that may not write Leases. none: no slots, "
           "for a machine on its own."},
          {"pool", text<C>(&C::pool, "name", check_dns_label),
           "The pool of this node, whose nodes share the slots; with FleetLock the group. Without this option and "
           "pool-label: control-plane for nodes with the label node-role.kubernetes.io/control-plane, and default "
           "for all others; with FleetLock default for all. If the label has put nodes into the pool control-plane, at "
           "most one of them may be unavailable, even if max-unavailable is greater."},
          {"pool-label", text<C>(&C::pool_label, "label key", check_label_key),
           "Take the name of the pool from this label of the Node. A node without the label, or with an empty "
           "one, gets no slot, unless slots is none."},
          {"max-unavailable", number_or_percentage(&C::max_unavailable, "nodes", check_max_unavailable),
           "With slots lease: the number or percentage of nodes of the pool that may be unavailable at the same "
           "time. 0 allows none, so no node is updated. Nodes that are degraded, not Ready, or cordoned by others "
           "than their agent count, too."},
          {"zone-label", text<C>(&C::zone_label, "label key", check_label_key),
           "With slots lease: the label with the zone of a node, for example topology.kubernetes.io/zone. "
           "max-unavailable, best as a percentage, then also applies to each zone of the pool. A node without the "
           "label, or with an empty one, gets no slot."},
          {"ramp", text<C>(&C::ramp, "numbers, percentages", check_ramp),
           "With slots lease: roll a version out in waves, like 1,2,5%,25%. Each is the number of nodes of the wave, "
           "or the percentage of the pool's nodes, but at least one node. The next wave begins when all nodes of "
           "the waves before it have come back well; a node that ends up degraded halts the roll-out (see "
           "halt-after). After the last wave, and in addition during the waves, max-unavailable limits. Without this "
           "option: no waves. A back end without "
           "versions that nodes share (debian, file, command, transactional-update) has none. All agents of a pool "
           "should have the same ramp."},
          {"halt-after", number<C>(&C::halt_after, "nodes", 0, 10000),
           "With slots lease: halt the roll-out of a version when this number of nodes of the pool have failed with "
           "it. No further node is updated to it until fewer count as failed. Fewer failed nodes keep their places in "
           "the waves of ramp, and the other nodes do not wait for them. It also works without ramp. 0: the "
           "first failed node makes the others wait, while it is degraded. max-unavailable must be at least this "
           "number: a degraded node keeps its slot, so with fewer slots the failed nodes have all of them before the "
           "roll-out "
           "counts as halted, and the other nodes wait for slots. Needs a back end with versions, like ramp. All "
           "agents of a pool should have the same number."},
          {"roll-out-order", text<C>(&C::roll_out_order, "order", check_roll_out_order),
           "With slots lease: which of the nodes that wait for a slot goes first. any: whoever takes a free slot "
           "first. "
           "zone: by the label topology.kubernetes.io/zone, one zone after the other. label:KEY: by the value of this "
           "label, numbers by size before texts; nodes without the label go last. asked: the node that has needed its "
           "update for the longest time. A node that cannot go holds nobody up. All agents of a pool should have the "
           "same order."},
          {"soak", duration<C>(&C::soak, Zero::allowed),
           "How long a node keeps its slot after its update. If it is not Ready then, it keeps the slot until it "
           "is."},
          {"fleetlock-url", text<C>(&C::fleetlock_url, "URL", check_url), "URL of the FleetLock server."},
      }};
}

OptionGroup operating_system() {
  using B = BackendChoice;
  using M = RebootMethod;
  return {
      "The operating system",
      {
          {"backend",
           choice<C, B>(&C::backend, {{"auto", B::automatic},
                                      {"debian", B::debian},
                                      {"file", B::file},
                                      {"command", B::command},
                                      {"bottlerocket", B::bottlerocket},
                                      {"flatcar", B::flatcar},
                                      {"rpm-ostree", B::rpm_ostree},
                                      {"bootc", B::bootc},
                                      {"ostree", B::ostree},
                                      {"transactional-update", B::transactional_update},
                                      {"rauc", B::rauc},
                                      {"sysupdate", B::sysupdate}}),
           "How to detect that a reboot is required. auto: file if a sentinel is given, command if a "
           "sentinel-command is given, otherwise according to the operating system of the host."},
          {"sentinel", text<C>(&C::sentinel, "file", check_absolute_path),
           "For backend file: a reboot is needed while this file exists on the host."},
          {"sentinel-command", command(&C::sentinel_command),
           "For backend command: a program, with arguments, whose exit code says whether a reboot is needed. The "
           "agent runs it without a shell."},
          {"sentinel-exit-codes", exit_codes(&C::sentinel_exit_codes),
           "Which exit codes of sentinel-command mean that a reboot is needed (yes), and which that it is not (no). "
           "With any other code it is unknown whether a reboot is needed; the agent then reboots the node only if a "
           "person requests that."},
          {"sentinel-interval", duration<C>(&C::sentinel_interval, Zero::refused),
           "How often the agent runs sentinel-command."},
          {"update",
           choice<C, UpdateChoice>(&C::update, {{"off", UpdateChoice::off},
                                                {"before-drain", UpdateChoice::before_drain},
                                                {"after-drain", UpdateChoice::after_drain}}),
           "Whether the agent installs the updates of the operating system. off: another program installs them, and "
           "the agent only notices that a reboot is needed. after-drain: when updates wait, the agent drains the node, "
           "installs them, and reboots if that is needed. before-drain: the agent writes the new image when the gates "
           "are open, before it asks for a slot; not with backend debian. Backends bottlerocket, file and command "
           "accept only off: with bottlerocket the agent always installs updates itself, with the others it cannot."},
          {"update-bundle", text<C>(&C::update_bundle, "URL or file", check_bundle),
           "For backend rauc with update: the bundle that the agent installs when its version differs from the running "
           "one, a URL or an absolute path on the host."},
          {"pin", text<C>(&C::pin, "version", check_not_blank),
           "With update: the only version that the agent installs and boots, written as haulout explain shows it. The "
           "node waits until the update tool offers that version. Not with backends debian and transactional-update, "
           "whose updates have no version."},
          {"update-packages",
           choice<C, UpdatePackages>(&C::update_packages,
                                     {{"all", UpdatePackages::all}, {"security", UpdatePackages::security}}),
           "For backend debian with update: which package updates the agent installs. all: those that apt-get upgrade "
           "--with-new-pkgs would install, so apt's pins and holds apply. security: only those from a security "
           "archive."},
          {"update-services",
           choice<C, UpdateServices>(&C::update_services,
                                     {{"report", UpdateServices::report}, {"reboot", UpdateServices::reboot}}),
           "For backend debian with update: what to do if services still use replaced files, or do not run, after an "
           "installation and the restarts by needrestart. report: an Event and the log name them. reboot: reboot the "
           "drained node. The agent finds them only if needrestart is installed on the node."},
          {"update-limit", duration<C>(&C::update_limit, Zero::refused),
           "How long the installation of updates may take, with backend debian including the time in which another "
           "program holds the lock of dpkg. Then the attempt has failed."},
          {"update-attempts", number<C>(&C::update_attempts, "attempts", 1, 100),
           "After this number of failed installations in a row the node is degraded. After each earlier one, the agent "
           "uncordons the node if it has drained it, and tries again after backoff. Also for backend bottlerocket."},
          {"reboot-method",
           choices<C, M>(&C::reboot_methods, {{"logind", M::logind},
                                              {"systemd", M::systemd},
                                              {"kexec", M::kexec},
                                              {"command", M::command},
                                              {"none", M::none}}),
           "The ways to reboot, in order of preference. If one fails, or does not bring the machine down within "
           "reboot-limit, the agent tries the next. kexec: logind reboots into the kernel that you have loaded with "
           "kexec -l, without firmware and boot loader; if none is loaded, as with logind. none: the agent does not "
           "reboot; another program or a person reboots the node when its state is ready, that is, when it is "
           "drained."},
          {"reboot-command", command(&C::reboot_command),
           "For reboot-method command: the program, with arguments, that reboots the host. The agent runs it "
           "without a shell. If it still runs after reboot-limit, it gets SIGTERM, and SIGKILL ten seconds later."},
          {"reboot-limit", duration<C>(&C::reboot_limit, Zero::refused),
           "How long a machine may take to go down after the agent has requested a reboot. Then the agent tries the "
           "next reboot-method; after the last one the node is degraded."},
          {"verify-limit", duration<C>(&C::verify_limit, Zero::refused),
           "How long a booted or updated node may take to become Ready with the expected version, without new taints "
           "readiness.k8s.io/* and with each verify-condition. The time of hooks does not count. Then it is degraded."},
          {"verify-condition", texts<C>(&C::verify_conditions, "type[=status]", check_condition),
           "A condition that the Node must have after the boot or the installation, before the agent uncordons it and "
           "releases its slot, like example.com/NetworkReady or example.com/Broken=False. Without a status: True. "
           "Several may be given. The agent cannot see whether a status is from before the boot, so name only "
           "conditions whose program sets them to another status when it stops or starts: see docs/tasks.md. The "
           "agent waits for the end of taints readiness.k8s.io/* in any case."},
      }};
}

OptionGroup gates() {
  using F = FailMode;
  return {
      "When an update may begin",
      {
          {"window", texts<C>(&C::windows, "start + duration", check_window),
           "A time in which updates may begin, like \"Sat,Sun 01:00+6h Europe/Berlin\". Several may be given. Without "
           "any, updates may begin at any time."},
          {"blackout", texts<C>(&C::blackouts, "start + duration", check_blackout),
           "A time in which no update begins, whatever the windows say, like \"2026-12-20..2027-01-03\". Several may "
           "be given."},
          {"blocking-pod-selector", texts<C>(&C::blocking_pod_selectors, "label selector", check_label_selector),
           "A label selector. A node with a pod that matches waits until the pod has ended. Several may be given."},
          {"cordoned-nodes",
           choice<C, CordonedNodes>(&C::cordoned_nodes,
                                    {{"wait", CordonedNodes::wait}, {"update", CordonedNodes::update}}),
           "What to do with a node that a person has cordoned, with kubectl, haulout cordon or haulout drain. wait: "
           "leave it alone until it is uncordoned. update: update it; it stays cordoned."},
          {"max-reboots-per-day", number<C>(&C::max_reboots_per_day, "reboots in 24 hours", 0, remembered_updates),
           "How often one node may be rebooted within 24 hours. If its operating system needs another reboot, the node "
           "becomes degraded instead. 0: no limit."},
          {"backoff", duration<C>(&C::backoff, Zero::refused),
           "How long to wait before the next attempt after one that failed or was cancelled, for example because of "
           "the drain, a hook, the installation of updates, a pause, or because another client uncordoned the node. "
           "The time doubles with each such attempt, up to an hour."},
          {"prometheus-url", text<C>(&C::prometheus_url, "URL", check_url),
           "URL of a Prometheus whose alerts block updates."},
          {"prometheus-query", text<C>(&C::prometheus_query, "PromQL", check_not_blank),
           "The query for alerts: each series in the answer blocks the node. $node stands for the name of the node."},
          {"prometheus-token-file", text<C>(&C::prometheus_token_file, "file", check_absolute_path),
           "A file with the bearer token for Prometheus. The agent reads it again when it changes."},
          {"prometheus-username", text<C>(&C::prometheus_username, "name", check_not_blank),
           "The user name for Prometheus."},
          {"prometheus-password-file", text<C>(&C::prometheus_password_file, "file", check_absolute_path),
           "A file with the password of prometheus-username."},
          {"prometheus-ca-file", text<C>(&C::prometheus_ca_file, "file", check_absolute_path),
           "A file with the CA certificates for Prometheus. Without this option: those of the system, in a container "
           "those of its image."},
          {"prometheus-cert-file", text<C>(&C::prometheus_cert_file, "file", check_absolute_path),
           "A file with the client certificate for Prometheus."},
          {"prometheus-key-file", text<C>(&C::prometheus_key_file, "file", check_absolute_path),
           "A file with the key of the client certificate for Prometheus."},
          {"prometheus-fail-mode", choice<C, F>(&C::prometheus_fail_mode, {{"closed", F::closed}, {"open", F::open}}),
           "What to do while Prometheus gives no usable answer. closed: nodes wait. open: updates may begin. If "
           "Prometheus refuses the query, nodes wait in both cases."},
          {"prometheus-max-age", duration<C>(&C::prometheus_max_age, Zero::allowed),
           "An alert that has been active (pending or firing) for longer than this blocks no node any more. 0: it "
           "blocks for as long as the query returns it."},
      }};
}

OptionGroup the_drain() {
  OptionGroup group{"The drain", {}};
  for (OptionOf<drain::Options>& option : drain::option_table(drain::OptionUser::agent))
    group.options.emplace_back(lifted(std::move(option), &C::drain));
  group.options.emplace_back("lb-drain-wait", duration<C>(&C::lb_drain_wait, Zero::allowed),
                             "Exclude the node from external load balancers, and wait this long before the first "
                             "eviction. 0: do not exclude it.");
  group.options.emplace_back(
      "hold-autoscalers", boolean<C>(&C::hold_autoscalers),
      "Annotate the Node while it has a slot, so that the cluster autoscaler does not scale it down and Karpenter does "
      "not disrupt it voluntarily. If the annotations are refused, the agent warns and continues.");
  group.options.emplace_back(
      "waiting-taint", text<C>(&C::waiting_taint, "key[=value]", check_waiting_taint),
      "Taint the Node with this key and the effect PreferNoSchedule from the time at which it needs an update until it "
      "has come back, so that the scheduler prefers other nodes. It has an effect only with the authorities policies "
      "and serviceaccount: as a node, an agent may not change taints. Without this option: no taint.");
  return group;
}

OptionGroup hooks() {
  using F = HookFailure;
  return {"Hooks",
          {
              {"hooks-dir", text<C>(&C::hooks_dir, "directory", check_absolute_path),
               "The directory of executables to run before and after the drain, after the boot and before the slot is "
               "released. It need not exist."},
              {"hook-limit", duration<C>(&C::hook_limit, Zero::refused),
               "How long one hook may take, unless its annotation sets another limit."},
              {"hook-failure", choice<C, F>(&C::hook_failure, {{"stop", F::stop}, {"continue", F::go_on}}),
               "Whether the update stops or continues after a hook that failed or took too long."},
          }};
}

OptionGroup reporting() {
  using L = LogFormat;
  return {"Reporting",
          {
              {"metrics-address", text<C>(&C::metrics_address, "address:port", check_listen_address),
               "Where to serve /metrics, /healthz and /readyz. Without this option they are not served."},
              {"log-format", choice<C, L>(&C::log_format, {{"text", L::text}, {"json", L::json}}),
               "The format of the log on stderr."},
              {"verbosity", number<C>(&C::verbosity, "level", 0, 10),
               "How much to log: 0 transitions and warnings, 1 also requests, 2 everything.", Option::Home::everywhere,
               'v'},
          }};
}

OptionGroup instead() {
  return {"One-time commands",
          {
              {"check", boolean<C>(&C::check),
               "Check the configuration and test permissions, D-Bus and back end without changing anything, then exit.",
               Option::Home::flag_only},
              {"release", boolean<C>(&C::release),
               "Remove Haulout from this node, then exit: uncordon it if Haulout cordoned it, release its slot, delete "
               "Haulout's labels and annotations. Stop the agent first.",
               Option::Home::flag_only},
          }};
}

}  // namespace

Option::Option(std::string name, Values<AgentConfig> values, std::string meaning, Home where, char letter)
    : OptionOf<AgentConfig>{std::move(name), std::move(values), std::move(meaning), letter}, home(where) {}

std::string Option::variable() const {
  std::string result(variable_prefix);
  for (const char c : name) result += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return result;
}

bool Option::empty_resets() const {
  // If shown_default() is empty, an option of this type is off until it has a value. An empty value turns it off again.
  if (values.type == ValueType::number_or_percentage) return shown_default().empty();
  return values.type == ValueType::text || values.type == ValueType::list || values.type == ValueType::command;
}

const std::vector<OptionGroup>& option_groups() {
  static const std::vector<OptionGroup> groups = {agent_and_node(), slots(), operating_system(), gates(),
                                                  the_drain(),      hooks(), reporting(),        instead()};
  return groups;
}

std::vector<const Option*> options() {
  std::vector<const Option*> all;
  for (const OptionGroup& group : option_groups())
    for (const Option& option : group.options) all.push_back(&option);
  return all;
}

const Option* find_option(std::string_view name) {
  for (const Option* option : options())
    if (option->name == name) return option;
  return nullptr;
}

namespace {

constexpr std::string_view head = R"(# The configuration of the agent

This page is made from the tables of options in `agent/config/` and `drain/`; a test compares them.

The defaults of `haulout agent` suit most fleets. To change an option, set it in any of these places. The first place
that sets an option wins; lists are replaced, not merged:

1. flags: `--max-unavailable 2`, `--max-unavailable=2`; repeat a flag to make a list
2. environment variables: `HAULOUT_MAX_UNAVAILABLE=2`; a list is separated by semicolons
3. the file, in YAML: `max-unavailable: 2`
4. environment variables for those who package the agent: `HAULOUT_DEFAULT_LOG_FORMAT=json`
5. the defaults below

The shipped DaemonSet sets two options in the fourth way, by the variables `HAULOUT_DEFAULT_METRICS_ADDRESS` (`:9797`)
and `HAULOUT_DEFAULT_LOG_FORMAT` (`json`). Your file wins over them. The probes of the DaemonSet use port 9797: if
you change the address, change its port, too.

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
anything. An option that does not fit the node, for example an `update` that the back end does not support, is found
later: then the exit code is 1. `haulout agent --check` checks this and more without changing anything.

- A duration has a unit, as in Go: `90s`, `5m`, `1h30m`, `1.5h`. Only `0` needs no unit.
- A command is split at blanks; quotes and `\` protect blanks. The agent uses no shell, so there are no variables and no
  pipes. In the file a command may also be a list of words.
- An empty value (`--pool-label=`, `HAULOUT_WINDOW=`) of a text, a list or a command resets the option to its default,
  and overrides the places that come later. In the file `null` is the same as leaving the option out.
- YAML reads unquoted `on`, `yes`, `010` or `1e3` as something else. If that matters, the agent asks for quotes.
- Variables that Kubernetes injects for a Service called `haulout`, like `HAULOUT_SERVICE_HOST`, are not options and
  have no effect. The agent warns about a variable that looks like a misspelt option, and ignores it.
)";

std::string code(std::string_view text) {
  return text.empty() ? "" : fmt::format("`{}`", markdown_cell(text));
}

std::string form_of(const Option& option) {
  std::string form = markdown_cell(option.values.form);
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
  return fmt::format("| {} | {} | {} | {}{} |\n", spelling_of(option), form_of(option), code(option.shown_default()),
                     markdown_cell(option.meaning), places_of(option));
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
