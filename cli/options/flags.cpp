#include "cli/options/flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "agent/config/option_table.hpp"
#include "agent/config/value_checks.hpp"
#include "agent/node/pool.hpp"
#include "agent/report/status_pages.hpp"
#include "base/option.hpp"
#include "drain/option_table.hpp"
#include "k8s/codec.hpp"
#include "k8s/label_selector.hpp"
#include "rehearse/fleet_rehearsal.hpp"

namespace haulout::cli {
namespace {

using S = Settings;
// How many drains one command runs at the same time at most. Each has its own watches.
constexpr std::int64_t most_parallel = 100;
// The policy of the slots allows as many names for a pool.
constexpr std::int64_t most_slots = 9'999;
using People = PeopleSettings;
using Rehearse = RehearseSettings;
using Retire = RetireSettings;
using Migrate = MigrateSettings;
using Row = OptionOf<Settings>;
using Rows = std::vector<Row>;

template <class Target>
std::string help_of(const OptionOf<Target>& option) {
  std::string help = plain_meaning(option.meaning);
  if (option.values.type == ValueType::choice) help += " One of: " + option.values.form + ".";
  if (option.values.type == ValueType::choices) help += " Any of: " + option.values.form + ".";
  return help;
}

template <class Target>
Flag::Kind kind_of(const OptionOf<Target>& option) {
  if (option.name == "dry-run") return Flag::Kind::explicit_;  // as in kubectl, its value must follow a "="
  return option.values.type == ValueType::boolean ? Flag::Kind::boolean : Flag::Kind::value;
}

std::vector<Flag> flags_of(const Rows& rows) {
  std::vector<Flag> flags;
  for (const Row& row : rows)
    flags.push_back({row.name, row.letter, kind_of(row), help_of(row), row.values.set, row.values.show});
  return flags;
}

// The rows below are used by several commands.

Row selector_row() {
  const auto set = [](S& settings, const std::string& text) -> std::string {
    const auto selector = k8s::parse_label_selector(text);
    if (!selector) return selector.error().message();
    settings.selector = text;
    settings.selects = true;
    return {};
  };
  return {
      "selector",
      {ValueType::text, "label selector", "", {}, set, [](const S& s) { return s.selector; }},
      "Select nodes by labels instead of names: key=value, key!=value, key in (a,b), key, !key. Conditions that are "
      "separated by commas must all hold.",
      'l'};
}

Row output_row(std::string meaning, Words<OutputFormat> formats) {
  return {"output", choice<S, OutputFormat>(&S::output, std::move(formats)), std::move(meaning), 'o'};
}

Row all_row(std::string meaning) {
  return {"all", boolean<S>({&S::people, &People::all}), std::move(meaning)};
}

Row reason_row(std::string meaning) {
  const Field<S, std::string> reason = {[](const S& s) { return s.people.reason; },
                                        [](S& s, const std::string& text) { s.people.reason = printable(text); }};
  return {"reason", text<S>(reason, "text"), std::move(meaning)};
}

// The options of `drain` and `rehearse`.

Rows drain_rows() {
  Rows rows;
  for (OptionOf<drain::Options>& option : drain::option_table(drain::OptionUser::command))
    rows.push_back(lifted(std::move(option), &S::drain));
  rows.push_back(
      output_row("Output format. json: only the report on stdout. jsonl: one event per line on stdout.",
                 {{"text", OutputFormat::text}, {"json", OutputFormat::json}, {"jsonl", OutputFormat::jsonl}}));
  rows.push_back(selector_row());
  rows.push_back({"timeline", text<S>(&S::timeline, "file"),
                  "Draw a timeline of each pod into this SVG file; with rehearse --all, of each node."});
  rows.push_back(
      {"parallel", number<S>(&S::parallel, "nodes", 1, most_parallel),
       "How many nodes are drained at the same time. PodDisruptionBudgets apply to all of them together; all "
       "other limits, such as --max-concurrent, to each node."});
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.name < b.name; });
  return rows;
}

std::vector<Flag> drain_flags() {
  std::vector<Flag> flags = flags_of(drain_rows());
  for (Flag& flag : flags)
    if (flag.name == "settle")
      flag.apply = [apply = std::move(flag.apply)](S& settings, const std::string& value) {
        settings.settle_given = true;
        return apply(settings, value);
      };
  return flags;
}

Rows local_rows() {
  const Field<S, Duration> limit = {[](const S& s) { return s.retire.clean_up.limit; },
                                    [](S& s, Duration value) {
                                      s.retire.clean_up.limit = value;
                                      s.retire.limit_given = true;
                                    }};
  return {
      {"local", boolean<S>({&S::retire, &Retire::local}),
       "Retire the node of the machine on which this runs, as root: run the programs in /etc/haulout/retire.d, which "
       "clean up the machine, after the drain and before the Node is deleted. The machine is not rebooted. Without a "
       "NODE, the node has the machine's host name in lower case."},
      {"no-cleanup", boolean<S>({&S::retire, &Retire::no_cleanup}),
       "With --local: run no clean-up program, and do not demand one."},
      {"cleanup-timeout", duration<S>(limit, Zero::refused),
       "With --local: how long each clean-up program may run, in its dry run and for real. It gets SIGTERM at the end, "
       "and counts as failed."},
  };
}

// The flags of `retire` are those of a drain, with other defaults, and those of --local. It has no stream of events.
std::vector<Flag> retire_flags() {
  std::vector<Flag> flags = drain_flags();
  std::erase_if(flags, [](const Flag& flag) { return flag.name == "output"; });
  const Rows output = {output_row("Output format. json: only the report on stdout.",
                                  {{"text", OutputFormat::text}, {"json", OutputFormat::json}})};
  for (Flag& flag : flags_of(output)) flags.push_back(std::move(flag));
  for (Flag& flag : flags_of(local_rows())) flags.push_back(std::move(flag));
  std::sort(flags.begin(), flags.end(), [](const Flag& a, const Flag& b) { return a.name < b.name; });
  for (Flag& flag : flags) flag.command = Command::retire;
  return flags;
}

std::vector<Flag> dry_run_and_selector() {
  std::vector<Flag> flags = drain_flags();
  std::erase_if(flags, [](const Flag& flag) { return flag.name != "dry-run" && flag.name != "selector"; });
  return flags;
}

// Returns the flag of a drain, changed so that it also records that it was given. With --all such a flag is an error,
// because the agents drain as their configuration says.
Flag of_a_drain(Flag flag) {
  flag.apply = [apply = std::move(flag.apply), name = flag.name](S& settings, const std::string& value) {
    settings.rehearse.drain_flags.push_back(name);
    return apply(settings, value);
  };
  return flag;
}

std::string check_config_file(const std::string& file) {
  return file.empty() ? "it must name the configuration file of the agents" : "";
}

std::string check_snapshot(const std::string& file) {
  return file.empty() ? "it must be the name of a file, or - for stdin" : "";
}

std::string check_baseline(const std::string& file) {
  return file.empty() ? "it must name a file with the output of haulout audit -o json" : "";
}

std::string check_label(const std::string& key) {
  return key.empty() ? "it must be the key of a label" : "";
}

// The options of the agents that --compare accepts: those whose effect a rehearsal shows, and whose values have no
// commas.
constexpr const char* comparable_options[] = {"max-unavailable", "max-concurrent", "roll-out-order", "soak", "surge"};

std::string check_comparable(const std::string& option) {
  const std::vector<std::string> known(std::begin(comparable_options), std::end(comparable_options));
  if (std::ranges::find(known, option) != known.end()) return {};
  const std::string can = "; it can compare " + joined(known, ", ");
  if (option == "ramp") return "the values of ramp have commas themselves: rehearse once for each, with --ramp" + can;
  if (agent::find_option(option) != nullptr)
    return fmt::format("{} cannot be compared: rehearse once for each value, in the file of --config{}", option, can);
  const auto meant = nearest(option, known);
  return fmt::format("there is no option \"{}\"{}{}", option, meant ? ": did you mean " + *meant + "?" : "", can);
}

// Reads "max-unavailable=1,2,10%".
std::string read_comparison(S& settings, const std::string& text) {
  if (!settings.rehearse.compared_option.empty())
    return "it is the second comparison, and a table has one: run the command once for each";
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos)
    return "it must name an option of the agents and its values, like max-unavailable=1,2,10%";
  const std::string option = text.substr(0, equals);
  if (std::string wrong = check_comparable(option); !wrong.empty()) return wrong;
  if (equals + 1 == text.size())
    return fmt::format("there is no value to compare: write them after the =, separated by commas, like {}",
                       option == "max-unavailable" ? "max-unavailable=1,2,10%" : option + "=VALUE,VALUE");
  std::vector<std::string> values = split_at(text.substr(equals + 1), ',');
  std::map<std::string, std::string> known;  // by what the agents read
  for (const std::string& value : values) {
    if (value.empty()) return "one of the values is empty: remove the comma that is too much";
    agent::AgentConfig read;
    const agent::Option& row = *agent::find_option(option);
    if (const std::string wrong = row.values.set(read, value); !wrong.empty())
      return fmt::format("{} \"{}\": {}", option, value, wrong);
    const auto [first, is_new] = known.try_emplace(row.values.show(read), value);
    if (is_new) continue;
    return first->second == value ? fmt::format("{} is there twice: remove one", value)
                                  : fmt::format("{} and {} are the same: remove one", first->second, value);
  }
  settings.rehearse.compared_option = option;
  settings.rehearse.compared_values = std::move(values);
  return {};
}

Rows fleet_rows() {
  const Field<S, Duration> reboot_time = {
      [](const S& s) { return s.rehearse.reboot_time.value_or(rehearse::FleetInput{}.reboot_time); },
      [](S& s, Duration time) { s.rehearse.reboot_time = time; }};
  return {
      {"all", boolean<S>({&S::rehearse, &Rehearse::all}),
       "Simulate the update of the whole fleet by its agents, instead of drains of some nodes. Every node that is "
       "Ready is assumed to need one reboot."},
      {"config", text<S>({&S::rehearse, &Rehearse::config_file}, "file", check_config_file),
       "With --all: the configuration file of the agents. Without it the agents use their defaults. The configuration "
       "file and the HAULOUT_ variables of this machine are not read."},
      {"compare",
       {ValueType::text, "option=values", "", {}, read_comparison, [](const S&) { return std::string(); }},
       "With --all: rehearse the update once with each value of an option of the agents, and print a table. The "
       "options are " +
           joined({std::begin(comparable_options), std::end(comparable_options)}, ", ") +
           "; the values are separated by commas: max-unavailable=1,2,10%."},
      {"max-unavailable",
       text<S>({&S::rehearse, &Rehearse::max_unavailable}, "number, percentage", agent::check_max_unavailable),
       "With --all: how many nodes of a pool may be unavailable at the same time, as a number (2) or a percentage "
       "(10%). Overrides the configuration."},
      {"plan", boolean<S>({&S::rehearse, &Rehearse::plan}),
       "With --all: find the fastest max-unavailable that harms no workload and leaves capacity for all pods, and say "
       "why the next faster one does not. With --compare: find it among the compared values."},
      {"ramp", text<S>({&S::rehearse, &Rehearse::ramp}, "numbers, percentages", agent::check_ramp),
       "With --all: the sizes of the waves in which the version is rolled out, like 1,2,5%,25%. Overrides the "
       "configuration."},
      {"reboot-time", duration<S>(reboot_time, Zero::allowed),
       "With --all: assume that a machine is down for this long when it reboots."},
  };
}

Field<S, Duration> assumed(Duration rehearse::Assumptions::* time) {
  return {[time](const S& s) { return s.rehearse.assumptions.*time; },
          [time](S& s, Duration value) { s.rehearse.assumptions.*time = value; }};
}

// Returns the reader and printer of --terminate-within. Its default is unset: a pod then takes its whole grace period.
Values<S> terminate_within() {
  const auto set = [](S& s, const std::string& text) {
    Duration limit{};
    std::string wrong = read_duration(text, Zero::allowed, limit);
    if (wrong.empty()) s.rehearse.assumptions.terminate_within = limit;
    return wrong;
  };
  const auto show = [](const S& s) {
    const auto& limit = s.rehearse.assumptions.terminate_within;
    return limit ? written_duration(*limit) : std::string();
  };
  return {ValueType::duration, "duration", "", {}, set, show};
}

Rows assumption_rows() {
  using A = rehearse::Assumptions;
  return {
      {"attach-within", duration<S>(assumed(&A::attach_within), Zero::allowed),
       "Assume that attaching a volume takes this long. The time begins when a pod that uses the volume is bound to a "
       "node. If another node still has the volume exclusively, it begins when that node has detached the volume."},
      {"detach-within", duration<S>(assumed(&A::detach_within), Zero::allowed),
       "Assume that a volume is unmounted and detached this long after its last pod on the node was deleted."},
      output_row("Output format.", {{"text", OutputFormat::text}, {"json", OutputFormat::json}}),
      {"ready-after", duration<S>(assumed(&A::ready_after), Zero::allowed),
       "Assume that a new pod is Ready this long after it is scheduled and its volumes are attached."},
      {"snapshot", texts<S>({&S::rehearse, &Rehearse::snapshots}, "file", check_snapshot),
       "A snapshot of the cluster: a file with objects as kubectl get -o json or yaml prints them, or - for stdin. May "
       "be repeated. Without it the objects are read from the cluster.",
       'f'},
      {"terminate-within", terminate_within(),
       "Assume that no pod takes longer than this to terminate. Without it each pod takes its whole grace period, "
       "although real pods often need less."},
  };
}

std::vector<Flag> rehearse_flags() {
  std::vector<Flag> flags = flags_of(fleet_rows());
  for (Flag& flag : drain_flags()) {
    if (flag.name == "dry-run" || flag.name == "chunk-size" || flag.name == "output" || flag.name == "parallel")
      continue;
    const bool of_both = flag.name == "timeline" || flag.name == "selector";
    flags.push_back(of_both ? std::move(flag) : of_a_drain(std::move(flag)));
  }
  for (Flag& flag : flags_of(assumption_rows())) flags.push_back(std::move(flag));
  return flags;
}

// The options of `audit`.

Rows audit_rows() {
  using Audit = AuditSettings;
  using audit::Severity;
  const Field<S, std::vector<std::string>> labels = {&S::audit, &Audit::team_labels};
  Rows rows = {
      {"baseline", text<S>({&S::audit, &Audit::baseline}, "file", check_baseline),
       "An earlier report (-o json). Findings that it has are known: they are not reported, and do not fail."},
      {"config", text<S>({&S::rehearse, &Rehearse::config_file}, "file", check_config_file),
       "The configuration file of the agents, whose drains are audited. Without it the agents use their defaults. The "
       "configuration file and the HAULOUT_ variables of this machine are not read."},
      {"fail-on",
       choice<S, Severity>({&S::audit, &Audit::fail_on},
                           {{"blocks", Severity::blocks}, {"risk", Severity::risk}, {"note", Severity::note}}),
       "Exit with 1 if there is a finding of this severity or a worse one."},
      {"no-rehearse", boolean<S>({&S::audit, &Audit::no_rehearse}),
       "Rehearse no drain: report only what the objects tell by themselves."},
      {"rehearse-at-most",
       number<S>({&S::audit, &Audit::rehearse_at_most}, "nodes", 1, std::numeric_limits<std::int32_t>::max()),
       "Rehearse the drains of at most this many nodes, those with the worst findings first."},
      {"team-label", texts<S>(labels, "label", check_label),
       "The label whose value names the team of a workload: of the controller, of its pods or of their namespace. May "
       "be repeated; the first label that is set counts. Without it: " +
           joined({std::begin(default_team_labels), std::end(default_team_labels)}, ", ") + "."},
  };
  for (Row& row : assumption_rows())
    if (row.name != "output") rows.push_back(std::move(row));
  rows.push_back(
      output_row("Output format. json: the report for programs and for --baseline. junit, sarif: for the "
                 "test reports and code scanning of CI. html: one page for a browser.",
                 {{"text", OutputFormat::text},
                  {"json", OutputFormat::json},
                  {"junit", OutputFormat::junit},
                  {"sarif", OutputFormat::sarif},
                  {"html", OutputFormat::html}}));
  return rows;
}

std::vector<Flag> audit_flags() {
  std::vector<Flag> flags = flags_of(audit_rows());
  for (Flag& flag : flags)
    if (flag.name == "snapshot")
      flag.help +=
          " May also be a directory of manifests: without nodes, the workloads in it are audited as if all their pods "
          "were running.";
  return flags;
}

// The options of `migrate`.

std::string check_filename(const std::string& file) {
  return file.empty() ? "it must be the name of a file, or - for stdin" : "";
}

std::string check_object_name(const std::string& name) {
  return agent::check_node_name(name).empty() ? "" : "it must be the name of a DaemonSet";
}

Rows migrate_rows() {
  return {
      {"filename", text<S>({&S::migrate, &Migrate::file}, "file", check_filename),
       "A file with kured's DaemonSet, as YAML or JSON and among other objects if you like, or with the values of its "
       "Helm chart, also in a HelmRelease of Flux or an Application of Argo CD; - for stdin. Without it the DaemonSet "
       "is read from the cluster.",
       'f'},
      {"hold-lock", boolean<S>({&S::migrate, &Migrate::hold_lock}),
       "Take kured's lock, so that kured begins no further node, and print nothing else. What a node holds stays with "
       "it."},
      {"name", text<S>({&S::migrate, &Migrate::name}, "name", check_object_name), "The name of kured's DaemonSet."},
      output_row("Output format. text: the configuration on stdout, the table of options on stderr. json: both as one "
                 "document on stdout.",
                 {{"text", OutputFormat::text}, {"json", OutputFormat::json}}),
      {"release-lock", boolean<S>({&S::migrate, &Migrate::release_lock}),
       "Give back the lock that --hold-lock has taken, and print nothing else."},
  };
}

// The option of `version`.
Rows version_rows() {
  return {output_row(
      "Output format. json: an object with version, commit, buildDate (the time of the commit) and platform.",
      {{"text", OutputFormat::text}, {"json", OutputFormat::json}})};
}

// The options of `status`, `explain`, `pause`, `resume`, `request-reboot` and `release`.

Values<S> time_or_duration() {
  const auto set = [](S& settings, const std::string& text) -> std::string {
    if (const auto time = k8s::parse_time(text)) {
      settings.people.time = *time;
      return {};
    }
    const auto duration = parse_duration(text);
    if (!duration) return "write a time like 2026-12-24T18:00:00Z, or a duration like 90m, 12h";
    if (*duration <= Duration::zero()) return "write a duration that is longer than 0";
    settings.people.time = *duration;
    return {};
  };
  return {ValueType::text, "time, duration", "", {}, set, [](const S&) { return std::string(); }};
}

// Returns an error message unless `value` is a valid value of a label, because the name of a pool may come from a label
// of the Node (--pool-label of the agents). The name becomes part of a key in a ConfigMap ("pause.<pool>").
std::string check_pool(const std::string& value) {
  if (!k8s::is_label_name(value))
    return "write the name of a pool: at most 63 letters, digits, \"-\", \"_\" and \".\"; the first and the last must "
           "be a letter or a digit";
  return {};
}

Rows target_rows(std::string_view what) {
  return {all_row(fmt::format("{} the whole cluster.", what)),
          {"pool", text<S>({&S::people, &People::pool}, "name", check_pool), fmt::format("{} this pool.", what)},
          selector_row()};
}

Rows pause_rows() {
  Rows rows = target_rows("Pause the updates of");
  rows.push_back(reason_row("The reason for the pause. haulout explain and the messages of waiting agents show it."));
  rows.push_back({"until", time_or_duration(),
                  "When the pause ends by itself: a time (2026-12-24T18:00:00Z) or a duration (90m, 12h). Without it "
                  "the pause lasts until `resume`."});
  return rows;
}

Rows people_rows(Command command) {
  switch (command) {
    case Command::status:
      return {
          output_row("Output format. wide adds pool, slot, versions, operating system, last update and last attempt.",
                     {{"text", OutputFormat::text}, {"wide", OutputFormat::wide}, {"json", OutputFormat::json}}),
          selector_row(),
          {"watch", boolean<S>({&S::people, &People::watch}),
           "Watch for changes and show each one, until interrupted. With -o json: one object per line.", 'w'}};
    case Command::explain:
      return {
          {"fit", boolean<S>({&S::people, &People::check_fit}),
           "Also report for each pod that a drain would evict whether its replacement would fit on another node, as "
           "the scheduler would decide. For this, explain lists the nodes and pods of the whole cluster."},
          output_row("Output format.", {{"text", OutputFormat::text}, {"json", OutputFormat::json}})};
    case Command::pause: return pause_rows();
    case Command::resume: return target_rows("End the pause of");
    case Command::request_reboot:
      return {
          {"at", time_or_duration(),
           "Request the reboot for this time (2026-12-24T22:00:00Z), or for after this duration (90m, 12h). The node "
           "takes no slot for it before. It still waits for its gates and for a slot then."},
          reason_row("The reason for the reboot."),
          selector_row()};
    case Command::release: return {selector_row()};
    default: return {};
  }
}

// The options of `fleetlock-serve`.

std::string check_listen(const std::string& address) {
  const auto parsed = agent::parse_listen_address(address);
  return parsed ? std::string() : parsed.error().message();
}

Rows fleetlock_rows() {
  using Lock = FleetLockSettings;
  const Field<S, std::string> listen = {&S::fleetlock, &Lock::listen};
  const Field<S, std::vector<std::string>> pools = {&S::fleetlock, &Lock::pools};
  return {
      {"listen", text<S>(listen, "address:port", check_listen),
       "Where to serve the protocol, and /healthz. The machines must reach this address. Whoever else reaches it can "
       "take and give back slots, too."},
      {"max-unavailable", number<S>({&S::fleetlock, &Lock::max_unavailable}, "number", 1, most_slots),
       "How many slots of a pool may be held when a machine gets one, by nodes and machines together. Give the agents "
       "of the pool the same number. Of the pool control-plane, it is at most 1."},
      {"pool", texts<S>(pools, "name", check_pool),
       fmt::format("A pool in which machines may take slots: the group of their requests. May be repeated. Without it: "
                   "{}.",
                   agent::default_pool)},
  };
}

// The options of `agent`.

// Returns the flag of a row of the agent's table. Borrows the row, which lives as long as the program.
Flag agent_flag(const agent::Option& option) {
  Flag flag{option.name, option.letter, kind_of(option), help_of(option), {}};
  flag.apply = [name = option.name](S& settings, const std::string& value) -> std::string {
    settings.agent_options.emplace_back(name, value);
    return {};
  };
  flag.show = [&option](const S&) { return option.shown_default(); };
  return flag;
}

std::vector<Flag> agent_flags() {
  std::vector<Flag> all;
  for (FlagGroup& group : agent_flag_groups())
    for (Flag& flag : group.flags) all.push_back(std::move(flag));
  return all;
}

// The options for connection and logging.

Values<S> connection(std::string k8s::ConnectionFlags::* member, std::string form) {
  return text<S>({&S::connection, member}, std::move(form));
}

Result<std::pair<std::string, std::string>> parse_extra(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return Error(Errc::invalid, "write KEY=VALUE");
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

// Returns the reader and printer of --request-timeout. As in kubectl, a number without a unit means seconds. 0 leaves
// only the limit that each operation has.
Values<S> request_timeout() {
  const auto set = [](S& settings, const std::string& text) {
    const bool bare = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    Duration limit{};
    std::string wrong = read_duration(bare ? text + "s" : text, Zero::allowed, limit);
    if (wrong.empty())
      settings.request_timeout = limit > Duration::zero() ? std::optional<Duration>(limit) : std::nullopt;
    return wrong;
  };
  const auto show = [](const S& settings) {
    return settings.request_timeout ? written_duration(*settings.request_timeout) : std::string("0");
  };
  return {ValueType::duration, "duration", "", {}, set, show};
}

Values<S> verbosity() {
  using limits = std::numeric_limits<std::int32_t>;
  const Field<S, std::int64_t> level = {
      [](const S& s) { return static_cast<std::int64_t>(s.verbosity); },
      [](S& s, std::int64_t n) { s.verbosity = static_cast<unsigned>(std::max<std::int64_t>(n, 0)); }};
  return integer<S>(level, "level", limits::min(), limits::max());
}

Rows connection_rows() {
  using F = k8s::ConnectionFlags;
  using L = agent::LogFormat;
  return {
      {"as", connection(&F::as, "name"), "Username to impersonate for the operation."},
      {"as-group", texts<S>({&S::connection, &F::as_groups}, "name"),
       "Group to impersonate for the operation. May be repeated."},
      {"as-uid", connection(&F::as_uid, "UID"), "UID to impersonate for the operation."},
      {"as-user-extra",
       list<S, std::pair<std::string, std::string>>([](S& s) -> auto& { return s.connection.as_user_extra; },
                                                    "KEY=VALUE", parse_extra),
       "User extra to impersonate for the operation, as KEY=VALUE. May be repeated."},
      {"certificate-authority", connection(&F::certificate_authority, "file"),
       "Path to a cert file for the certificate authority of the API server."},
      {"client-certificate", connection(&F::client_certificate, "file"), "Path to a client certificate file for TLS."},
      {"client-key", connection(&F::client_key, "file"), "Path to a client key file for TLS."},
      {"cluster", connection(&F::cluster, "name"), "The name of the kubeconfig cluster to use."},
      {"context", connection(&F::context, "name"), "The name of the kubeconfig context to use."},
      {"insecure-skip-tls-verify", boolean<S>({&S::connection, &F::insecure_skip_tls_verify}),
       "If true, do not check the server's certificate. This makes the connection insecure."},
      {"kubeconfig", connection(&F::kubeconfig, "file"),
       "Path to the kubeconfig file. Without it: $KUBECONFIG, ~/.kube/config or the pod's ServiceAccount, in this "
       "order."},
      {"log-format", choice<S, L>(&S::log_format, {{"text", L::text}, {"json", L::json}}),
       "The format of the log on stderr."},
      {"namespace", connection(&F::ns, "name"),
       fmt::format(
           "For status, explain, pause, resume and fleetlock-serve: the namespace of Haulout's ConfigMap and Leases, "
           "default {}. For migrate: the namespace of kured's DaemonSet, default {}. The agent has an option of its "
           "own; "
           "the other commands accept this one without effect, because nodes have no namespace.",
           S().haulout_namespace(), default_kured_namespace),
       'n'},
      {"password", connection(&F::password, "text"), "Password for basic authentication to the API server."},
      {"request-timeout", request_timeout(),
       "The longest time for a single request. Each operation has a limit of its own, usually 30 to 60 s, which this "
       "flag can only shorten; 0 leaves it as it is. A number without a unit means seconds."},
      {"server", connection(&F::server, "URL"), "The address and port of the Kubernetes API server.", 's'},
      {"tls-server-name", connection(&F::tls_server_name, "name"),
       "Server name to use for the validation of the server's certificate."},
      {"token", connection(&F::token, "text"), "Bearer token for authentication to the API server."},
      {"user", connection(&F::user, "name"), "The name of the kubeconfig user to use."},
      {"username", connection(&F::username, "name"), "Username for basic authentication to the API server."},
      {"v", verbosity(),
       "How much to log on stderr: 0 warnings, 1 also requests, 2 everything. From 6 on, requests as kubectl logs "
       "them.",
       'v'},
      {"warnings-as-errors", boolean<S>(&S::warnings_as_errors),
       "Treat warnings from the server as errors: exit with 1 although everything was done."},
  };
}

// Returns the flags that are accepted only because scripts pass them to kubectl. They have no effect in Haulout.
std::vector<Flag> flags_without_effect() {
  using Kind = Flag::Kind;
  const auto accept = [](std::string name, Kind kind) {
    Flag flag{std::move(name), 0, kind, "Accepted for compatibility with kubectl, without effect.",
              [](S&, const std::string&) { return std::string(); }};
    flag.without_effect = true;
    return flag;
  };
  return {accept("cache-dir", Kind::value),
          accept("disable-compression", Kind::boolean),
          accept("kuberc", Kind::value),
          accept("log-flush-frequency", Kind::value),
          accept("match-server-version", Kind::boolean),
          accept("profile", Kind::value),
          accept("profile-output", Kind::value),
          accept("vmodule", Kind::value)};
}

}  // namespace

std::vector<FlagGroup> agent_flag_groups() {
  std::vector<FlagGroup> groups;
  for (const agent::OptionGroup& group : agent::option_groups()) {
    FlagGroup& flags = groups.emplace_back();
    flags.title = group.title;
    for (const agent::Option& option : group.options) flags.flags.push_back(agent_flag(option));
  }
  return groups;
}

std::vector<Flag> command_flags(Command command) {
  switch (command) {
    case Command::drain: return drain_flags();
    case Command::retire: return retire_flags();
    case Command::rehearse: return rehearse_flags();
    case Command::audit: return audit_flags();
    case Command::migrate: return flags_of(migrate_rows());
    case Command::cordon:
    case Command::uncordon: return dry_run_and_selector();
    case Command::agent: return agent_flags();
    case Command::status:
    case Command::explain:
    case Command::pause:
    case Command::resume:
    case Command::request_reboot:
    case Command::release: return flags_of(people_rows(command));
    case Command::fleetlock_serve: return flags_of(fleetlock_rows());
    case Command::version: return flags_of(version_rows());
    case Command::completion:
    case Command::complete_nodes: return {};
  }
  return {};
}

std::vector<Flag> connection_flags() {
  std::vector<Flag> flags = flags_of(connection_rows());
  for (Flag& flag : flags_without_effect()) flags.push_back(std::move(flag));
  return flags;
}

std::vector<Flag> all_flags(Command command) {
  std::vector<Flag> flags = command_flags(command);
  if (command == Command::agent) return flags;  // the agent's connection is part of its configuration
  for (Flag& flag : connection_flags()) flags.push_back(std::move(flag));
  return flags;
}

}  // namespace haulout::cli
