#include "cli/migrate/kured_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/config/value_checks.hpp"
#include "base/ascii.hpp"
#include "base/duration.hpp"
#include "base/option.hpp"
#include "base/text.hpp"
#include "cli/migrate/config_draft.hpp"
#include "cli/migrate/kured_call.hpp"
#include "cli/migrate/kured_window.hpp"
#include "k8s/label_selector.hpp"

namespace haulout::cli {
namespace {

using Settings = KuredSettings;
using Option = KuredOption;

constexpr std::string_view of_kured = "it is what kured does anyway";

// Returns the given spellings of these options, for the comment of a line.
std::vector<std::string> origin_of(const Settings& settings, std::initializer_list<std::string_view> options) {
  std::vector<std::string> all;
  for (const std::string_view option : options)
    if (const KuredGiven* given = settings.given(option))
      all.insert(all.end(), given->spelled.begin(), given->spelled.end());
  return all;
}

// Adds the line to the draft. The verdict is `translated`, or `decide` if the agent refuses the value.
Verdict translated(ConfigDraft& draft, std::string_view option, const std::vector<std::string>& values,
                   const std::vector<std::string>& origin, std::string why = "", std::string_view note = "") {
  const std::string wrong = draft.set(option, values, origin, note);
  if (!wrong.empty()) return {Outcome::decide, fmt::format("{} does not take this value: {}", option, wrong), true};
  return {Outcome::translated, std::string(option) + (why.empty() ? "" : "; " + why)};
}

// Verdicts that are the same for all values, or for all values but kured's default.

Verdict not_needed(std::string why) {
  return {Outcome::not_needed, std::move(why)};
}

bool is_off(const Settings& settings, const Option& option) {
  const std::string value = settings.value(option.name);
  if (value == option.fallback || value.empty()) return true;
  if (option.type == KuredType::boolean) return !settings.is_on(option.name);
  if (option.type == KuredType::duration) return *parse_duration(value) == Duration::zero();
  return option.type == KuredType::integer && parse_number<std::int64_t>(value).value_or(1) < 0;
}

template <const char* const& Why>
Verdict always(const Settings&, const Option&, ConfigDraft&) {
  return not_needed(Why);
}

template <const char* const& Why>
Verdict no_counterpart(const Settings& settings, const Option& option, ConfigDraft&) {
  if (is_off(settings, option)) return not_needed(std::string(of_kured));
  return {Outcome::no_counterpart, Why};
}

template <const char* const& Why>
Verdict to_decide(const Settings& settings, const Option& option, ConfigDraft&) {
  if (is_off(settings, option)) return not_needed(std::string(of_kured));
  return {Outcome::decide, Why};
}

constexpr const char* why_node_id = "the agent knows its node from its credential";
constexpr const char* why_period =
    "the agent notices at once that a reboot is needed, that a window opens, and that a slot is free";
constexpr const char* why_lock = "slots are Leases in the namespace of the agents";
constexpr const char* why_lock_ttl =
    "a slot does not expire, because its node may be down; the slot of a deleted Node is free at once";
constexpr const char* why_force =
    "a node is not rebooted while a pod that must leave is still on it: see docs/tasks.md, A pod cannot leave";
constexpr const char* why_grace = "each pod has its own grace period (terminationGracePeriodSeconds)";
constexpr const char* why_skip_wait = "a pod that is terminating for long may still run, so the drain waits for it";
constexpr const char* why_labels =
    "select the label haulout.dev/state instead, or set your labels in a hook: see docs/hooks.md";
constexpr const char* why_annotate =
    "the agent always shows on its Node what it does, by labels haulout.dev/state and haulout.dev/reason and by "
    "conditions; programs that read kured's annotations must read these";
constexpr const char* why_notify = "install the hook notify, with your address in its file: see docs/hooks.md";
constexpr const char* why_before_drain =
    "if you need the wait, a hook at the point before-drain can do it: see docs/hooks.md";
constexpr const char* why_after_drain =
    "if you need the wait, a hook at the point after-drain can do it: see docs/hooks.md";

// The options of the window. Each has the verdict of all four.

// Returns the time zone of the window, or a problem.
std::string zone_of(const Settings& settings, std::string& note, std::string& problem) {
  std::string zone = settings.value("time-zone");
  if (zone != "Local") return zone.empty() ? "UTC" : zone;
  const KuredVariable* variable = settings.variable("TZ");
  if (variable != nullptr && !variable->value)
    problem = "the time zone Local is that of the variable TZ, which was not read";
  if (variable != nullptr && variable->value) {
    zone = variable->value->starts_with(':') ? variable->value->substr(1) : *variable->value;
    note = "Local is the time zone of the variable TZ";
    return zone.empty() ? "UTC" : zone;
  }
  const auto is_clock = [](const KuredMount& mount) { return mount.path == "/etc/localtime"; };
  if (std::ranges::any_of(settings.call().mounts, is_clock))
    problem = "the time zone Local is that of the file /etc/localtime of the host: write its name in the window";
  note = "Local is UTC in kured's container, because it has neither TZ nor /etc/localtime";
  return "UTC";
}

// Adds the windows as a comment. All four options of the window have the same one.
void propose_window(ConfigDraft& draft, const std::vector<std::string>& windows, const std::vector<std::string>& origin,
                    std::string_view note) {
  const auto lines = draft.lines();
  if (std::ranges::find(lines, "window", &ConfigLine::option) == lines.end())
    draft.propose("window", windows, origin, note);
}

Verdict window(const Settings& settings, const Option&, ConfigDraft& draft) {
  const auto names = {std::string_view("reboot-days"), std::string_view("start-time"), std::string_view("end-time"),
                      std::string_view("time-zone")};
  static const std::vector<std::string> every_day = {"su", "mo", "tu", "we", "th", "fr", "sa"};
  const KuredGiven* days = settings.given("reboot-days");
  std::string note, problem;
  const std::string zone = zone_of(settings, note, problem);
  KuredWindow window = kured_window(days != nullptr ? days->values : every_day, settings.value("start-time"),
                                    settings.value("end-time"), zone);
  for (const std::string_view name : names) {
    const KuredGiven* given = settings.given(name);
    if (given == nullptr || !given->source) continue;
    (name == "time-zone" ? problem : window.problem) = "a part of the window was not read";
  }
  if (!window.problem.empty()) return {Outcome::decide, window.problem, true};
  if (window.windows.empty()) return not_needed("kured may reboot at any time, and so may the agents without a window");
  const auto origin = origin_of(settings, names);
  if (!problem.empty()) {
    propose_window(draft, window.windows, origin,
                   "kured's time zone is not known here: write its name after the times, which are in UTC without one");
    return {Outcome::decide, problem, true};
  }
  if (!window.note.empty()) note += (note.empty() ? "" : "; ") + window.note;
  Verdict verdict = translated(draft, "window", window.windows, origin, note, note);
  if (verdict.outcome == Outcome::decide)
    propose_window(draft, window.windows, origin, "the agent does not take this window: correct its time zone");
  return verdict;
}

// The options of Prometheus. The query is that of kured: ALERTS, filtered, without the alerts of Haulout itself.

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return is_alphanumeric(c) || c == '_'; });
}

// Returns the matcher for alert names. PromQL compares the whole name, kured any part of it.
std::string matcher_of(std::string_view expression, bool only) {
  const std::string_view same = only ? "=" : "!=";
  const std::string_view like = only ? "=~" : "!~";
  if (expression.size() > 2 && expression.starts_with('^') && expression.ends_with('$')) {
    std::string_view inside = expression.substr(1, expression.size() - 2);
    if (is_name(inside)) return fmt::format("alertname{}{}", same, in_quotes(inside));
    if (inside.starts_with('(') && inside.ends_with(')')) {
      inside = inside.substr(1, inside.size() - 2);
      const auto names = split_at(std::string(inside), '|');
      if (std::ranges::all_of(names, is_name)) return fmt::format("alertname{}{}", like, in_quotes(inside));
    }
  }
  return fmt::format("alertname{}{}", like, in_quotes(fmt::format(".*({}).*", expression)));
}

// Returns false if a bracket of the expression has no partner. Then kured does not start with it, and inside of other
// brackets it would mean something else.
bool is_balanced(std::string_view expression) {
  int depth = 0;
  bool in_class = false;  // between [ and ]
  for (std::size_t i = 0; i < expression.size() && depth >= 0; ++i) {
    const char c = expression[i];
    if (c == '\\')
      ++i;
    else if (in_class)
      in_class = c != ']';
    else if (c == '[')
      in_class = true;
    else if (c == '(' || c == ')')
      depth += c == '(' ? 1 : -1;
  }
  return depth == 0 && !in_class;
}

struct Query {
  std::string text;
  std::string note;
  std::string doubt;  // why a person must check it; may be empty
};

Query query_of(const Settings& settings) {
  Query query;
  std::vector<std::string> matchers;
  if (settings.is_on("alert-firing-only"))
    matchers.emplace_back("alertstate=\"firing\"");
  else
    query.note = "pending alerts block, too, as in kured without --alert-firing-only";
  const std::string expression = settings.value("alert-filter-regexp");
  const bool only = settings.is_on("alert-filter-match-only");
  if (const KuredGiven* given = settings.given("alert-filter-regexp");
      given != nullptr && (!expression.empty() || given->doubts.empty())) {
    matchers.push_back(matcher_of(expression, only));
    if (expression.empty())
      query.doubt = only ? "an empty expression matches every alert: all block"
                         : "an empty expression matches every alert, so kured ignores all of them, and no alert blocks";
    else if (expression.find("(?") != std::string::npos || expression.find("\\Q") != std::string::npos)
      query.doubt = "the expression has parts with (? or \\Q, which may mean something else inside of .*(…).*";
    else if (expression.find("$node") != std::string::npos)
      query.doubt = "$node in the query stands for the name of the node";
  }
  // HauloutWaitsForDays is about nodes that wait. If it blocked them, they would wait for ever.
  const bool selects = only && !expression.empty();
  if (!selects) matchers.emplace_back(R"(alertname!~"Haulout.*")");
  query.text = "ALERTS{" + joined(matchers, ",") + "}";
  return query;
}

Verdict prometheus(const Settings& settings, const Option& option, ConfigDraft& draft) {
  if (option.name == "alert-filter-regexp" && !is_balanced(settings.value(option.name)))
    return {.outcome = Outcome::decide,
            .why = "a bracket of the expression has no partner, so kured does not start with it",
            .refused = true};
  const std::string url = settings.value("prometheus-url");
  if (url.empty()) {
    const KuredGiven* given = settings.given("prometheus-url");
    if (given != nullptr && given->source) return {Outcome::decide, "the URL of Prometheus was not read", true};
    return not_needed("without --prometheus-url kured asks for no alerts");
  }
  // The URL may have a password, so it is shown as it was spelled.
  Verdict address = translated(draft, "prometheus-url", {url}, origin_of(settings, {"prometheus-url"}));
  if (address.outcome != Outcome::translated || option.name == "prometheus-url") {
    if (address.outcome == Outcome::translated && settings.given("alert-filter-regexp") == nullptr &&
        settings.given("alert-filter-match-only") == nullptr && settings.given("alert-firing-only") == nullptr) {
      const Query query = query_of(settings);
      translated(
          draft, "prometheus-query", {query.text}, origin_of(settings, {"prometheus-url"}), "",
          "all alerts but those of Haulout block, as in kured; without this line some that report no problem do not, "
          "such as Watchdog");
    }
    return address;
  }
  const Query query = query_of(settings);
  for (const std::string_view part : {"alert-filter-regexp", "alert-filter-match-only", "alert-firing-only"}) {
    const KuredGiven* given = settings.given(part);
    if (given != nullptr && given->source)
      return {Outcome::decide, fmt::format("--{} was not read, so there is no query", part), true};
  }
  if (!is_balanced(settings.value("alert-filter-regexp")))
    return {Outcome::decide, "a bracket of the expression has no partner, so kured does not start with it", true};
  const std::string note = query.doubt.empty() ? query.note : "check it: " + query.doubt;
  Verdict verdict = translated(
      draft, "prometheus-query", {query.text},
      origin_of(settings, {"alert-filter-regexp", "alert-filter-match-only", "alert-firing-only"}), query.note, note);
  if (verdict.outcome == Outcome::translated && !query.doubt.empty())
    verdict = {Outcome::decide, "check prometheus-query: " + query.doubt};
  return verdict;
}

Verdict blocking_pods(const Settings& settings, const Option& option, ConfigDraft& draft) {
  return translated(draft, "blocking-pod-selector", settings.given(option.name)->values,
                    origin_of(settings, {option.name}));
}

// The other options, in the order of the table.

constexpr std::string_view pool_of_control_plane =
    "control-plane nodes are a pool of their own, of which one more is updated at the same time";

Verdict concurrency(const Settings& settings, const Option& option, ConfigDraft& draft) {
  const auto nodes = parse_number<std::int64_t>(settings.value(option.name));
  if (nodes && *nodes <= 1)
    return not_needed(
        fmt::format("one node at a time is the default of max-unavailable, too; {}", pool_of_control_plane));
  return translated(
      draft, "max-unavailable", {settings.value(option.name)}, origin_of(settings, {option.name}),
      fmt::format("nodes that are not Ready, or that a person has cordoned, count, too; {}", pool_of_control_plane));
}

Verdict drain_timeout(const Settings& settings, const Option& option, ConfigDraft& draft) {
  if (is_off(settings, option)) return not_needed("a drain of the agents has no time limit, either");
  return translated(draft, "drain-deadline", {settings.value(option.name)}, origin_of(settings, {option.name}),
                    "then the node is uncordoned, gives its slot back, and tries again later");
}

Verdict soak(const Settings& settings, const Option& option, ConfigDraft& draft) {
  if (is_off(settings, option)) return not_needed(std::string(of_kured));
  return translated(draft, "soak", {settings.value(option.name)}, origin_of(settings, {option.name}),
                    "the node is uncordoned before it, and must be Ready at its end");
}

// Returns the selector of the pods that do not fulfil the requirement.
std::optional<std::string> opposite_of(const k8s::LabelSelector::Requirement& requirement) {
  using enum k8s::LabelSelector::Operator;
  k8s::LabelSelector::Requirement opposite = requirement;
  switch (requirement.op) {
    case in: opposite.op = not_in; break;
    case not_in: opposite.op = in; break;
    case exists: opposite.op = does_not_exist; break;
    case does_not_exist: opposite.op = exists; break;
    case greater_than:
    case less_than: return std::nullopt;
  }
  const bool equality = opposite.values.size() == 1;
  if (equality) return opposite.key + (opposite.op == in ? "=" : "!=") + opposite.values.front();
  return to_string(k8s::LabelSelector({opposite}));
}

Verdict drained_pods(const Settings& settings, const Option& option, ConfigDraft& draft) {
  const std::string text = settings.value(option.name);
  if (text.empty()) return not_needed(std::string(of_kured));
  const auto selector = k8s::parse_label_selector(text);
  if (!selector)
    return {.outcome = Outcome::decide,
            .why = "it cannot be read, and kured drains no node with it: " + selector.error().message(),
            .refused = true};
  if (selector->empty()) return not_needed(std::string(of_kured));
  std::vector<std::string> stay;
  for (const auto& requirement : selector->requirements()) {
    const auto opposite = opposite_of(requirement);
    if (!opposite) return {Outcome::decide, "write the opposite of it to leave-pods: the pods that stay on the node"};
    stay.push_back(*opposite);
  }
  return translated(draft, "leave-pods", stay, origin_of(settings, {option.name}),
                    "the opposite: the pods that stay on the node",
                    "the opposite of kured's selector: pods that match one of these stay on the node");
}

// Returns the path on the host of a file of kured's container. Empty if it is on no volume of the host.
std::string path_on_host(const std::string& path, const std::vector<KuredMount>& mounts, bool& mounted) {
  const KuredMount* longest = nullptr;
  for (const KuredMount& mount : mounts) {
    const bool holds =
        path == mount.path || path.starts_with(mount.path.ends_with('/') ? mount.path : mount.path + "/");
    if (holds && (longest == nullptr || mount.path.size() > longest->path.size())) longest = &mount;
  }
  mounted = longest != nullptr;
  std::string host = path;
  if (longest != nullptr) host = longest->host.empty() ? "" : longest->host + path.substr(longest->path.size());
  const std::string sentinels = "/sentinel/";
  if (longest == nullptr && path.starts_with(sentinels)) host = "/var/run/" + path.substr(sentinels.size());
  if (host.starts_with("/var/run/")) host = host.substr(std::string_view("/var").size());
  return host;
}

Verdict sentinel(const Settings& settings, const Option& option, ConfigDraft& draft) {
  if (!settings.value("reboot-sentinel-command").empty())
    return not_needed("kured does not look for the file, because it has --reboot-sentinel-command");
  const std::string path = settings.value(option.name);
  const auto origin = origin_of(settings, {option.name});
  bool mounted = false;
  const std::string host = path_on_host(path, settings.call().mounts, mounted);
  if (host.empty()) return {Outcome::decide, "the file is on a volume that is no directory of the host: set sentinel"};
  const std::string usual = "/run/reboot-required";
  if (host == usual) {
    draft.propose("sentinel", {host}, origin, "only if the nodes have neither Debian nor Ubuntu");
    return not_needed("the agent knows this file of Debian and Ubuntu; on another system set sentinel to " + usual);
  }
  if (!host.starts_with("/run/")) {
    Verdict verdict = translated(draft, "sentinel", {host}, origin, "",
                                 "the DaemonSet of Haulout must mount its directory beneath /host");
    if (verdict.outcome == Outcome::translated)
      verdict = {Outcome::decide,
                 "sentinel; mount its directory beneath /host in the DaemonSet of Haulout, which mounts /run"};
    return verdict;
  }
  Verdict verdict = translated(draft, "sentinel", {host}, origin,
                               "the path on the host; it takes the place of the "
                               "detection of the operating system");
  if (verdict.outcome == Outcome::translated && !mounted && path.starts_with("/sentinel/"))
    verdict = {Outcome::decide,
               "sentinel; what kured was read from has no mount for it, so check the path on the host"};
  return verdict;
}

bool is_simple(std::string_view script) {
  return std::ranges::all_of(script, [](char c) {
    return is_alphanumeric(c) || c == ' ' || c == '-' || c == '_' || c == '.' || c == '/' || c == '=';
  });
}

// A command of kured is often `sh -c "! PROGRAM"`. Returns what stands in the script if it is one program without shell
// syntax, else the command itself. `negated`: a reboot is needed if the program fails.
std::string without_shell(const std::string& command, bool& negated) {
  std::vector<std::string> words;
  negated = false;
  if (!agent::split_words(command, words).empty() || words.size() != 3 || words[1] != "-c") return command;
  const std::string shell = words[0].substr(words[0].find_last_of('/') + 1);
  if (shell != "sh" && shell != "bash") return command;
  std::string script = words[2].substr(std::min(words[2].find_first_not_of(' '), words[2].size()));
  const bool begins = script.starts_with("! ");
  if (begins) script = script.substr(2);
  if (script.empty() || !is_simple(script)) return command;
  negated = begins;
  return script;
}

Verdict sentinel_command(const Settings& settings, const Option& option, ConfigDraft& draft) {
  const std::string command = settings.value(option.name);
  if (command.empty()) return not_needed(std::string(of_kured));
  const auto origin = origin_of(settings, {option.name});
  bool negated = false;
  draft.propose("sentinel-command", {without_shell(command, negated)}, origin,
                "the agent runs it without a shell, in its container, which has no programs of the host; as a service "
                "of the machine (Debian package) it runs it there");
  if (negated)
    draft.propose("sentinel-exit-codes", {"0=no,1=yes"}, origin,
                  "the command says by its failure that a reboot is needed");
  return {Outcome::decide,
          "most systems need no command, because the agent detects them; otherwise set sentinel-command: it runs "
          "without a shell and in the container of the agent, not on the host"};
}

// Commands that ask systemd for a reboot, as the agent does by default.
constexpr std::string_view plain_reboots[] = {"/bin/systemctl reboot", "/usr/bin/systemctl reboot",
                                              "systemctl reboot",      "/sbin/reboot",
                                              "/usr/sbin/reboot",      "reboot",
                                              "/sbin/shutdown -r now", "shutdown -r now"};

Verdict reboot_command(const Settings& settings, const Option& option, ConfigDraft& draft) {
  if (settings.value("reboot-method") == "signal")
    return not_needed("kured does not run it, because it has --reboot-method=signal");
  const std::string command = settings.value(option.name);
  if (command.empty())
    return {.outcome = Outcome::decide, .why = "kured does not start without a command", .refused = true};
  if (std::ranges::find(plain_reboots, command) != std::end(plain_reboots))
    return not_needed("the agent asks logind for the reboot");
  const auto origin = origin_of(settings, {option.name});
  constexpr std::string_view note =
      "the agent runs it without a shell, in its container, which has no programs of the host; kured ran it on the "
      "host";
  draft.propose("reboot-method", {"command"}, origin, note);
  draft.propose("reboot-command", {command}, origin, note);
  return {Outcome::decide,
          "the agent asks logind for the reboot, which is enough for most; a reboot-command runs in its container, not "
          "on the host"};
}

Verdict reboot_method(const Settings& settings, const Option& option, ConfigDraft&) {
  const std::string method = settings.value(option.name);
  if (method != "command" && method != "signal")
    return {.outcome = Outcome::decide,
            .why = "kured knows only command and signal, and does not start with another method",
            .refused = true};
  return not_needed("the agent asks logind for the reboot, and needs neither a privileged container nor hostPID");
}

Verdict reboot_signal(const Settings& settings, const Option& option, ConfigDraft&) {
  if (settings.value("reboot-method") != "signal")
    return not_needed("kured does not send it, because --reboot-method is not signal");
  if (parse_number<std::int32_t>(settings.value(option.name)).value_or(0) < 1)
    return {.outcome = Outcome::decide, .why = "kured does not start with a signal below 1", .refused = true};
  if (settings.value(option.name) == option.fallback)
    return not_needed("it asks systemd for the reboot, as the agent does by way of logind");
  return {Outcome::no_counterpart, "the agent sends no signals to systemd: it asks logind for the reboot"};
}

Verdict taint(const Settings& settings, const Option& option, ConfigDraft& draft) {
  const std::string key = settings.value(option.name);
  if (key.empty()) return not_needed(std::string(of_kured));
  return translated(
      draft, "waiting-taint", {key}, origin_of(settings, {option.name}),
      "remove kured's taints before you install Haulout; it needs the authority policies or serviceaccount",
      "remove kured's taints of this key from the nodes before you install Haulout. This needs the authority policies "
      "(component policies-only) or serviceaccount; with impersonation or kubelet it has no effect");
}

Verdict metrics(const Settings& settings, const Option&, ConfigDraft& draft) {
  const std::string host = settings.value("metrics-host");
  const std::string port = settings.value("metrics-port");
  const bool everywhere = host.empty() || host == "0.0.0.0" || host == "::";
  if (everywhere && port == find_kured_option("metrics-port")->fallback)
    return not_needed("the DaemonSet of Haulout serves metrics on port 9797: see docs/metrics.md");
  const std::string address = (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + port;
  if (const auto lines = draft.lines(); std::ranges::find(lines, "metrics-address", &ConfigLine::option) == lines.end())
    draft.propose("metrics-address", {address}, origin_of(settings, {"metrics-host", "metrics-port"}),
                  "the probes of Haulout's DaemonSet use port 9797: change them, too");
  return {
      Outcome::decide,
      "Haulout's DaemonSet serves metrics on port 9797; if you set metrics-address, change its port and probes, too"};
}

Verdict log_format(const Settings& settings, const Option& option, ConfigDraft& draft) {
  // kured writes text unless the value is json.
  const std::string format = settings.value(option.name) == "json" ? "json" : "text";
  return translated(draft, "log-format", {format}, origin_of(settings, {option.name}));
}

Verdict message(const Settings& settings, const Option& option, ConfigDraft&) {
  const bool notifies = settings.given("notify-url") != nullptr || settings.given("slack-hook-url") != nullptr;
  if (!notifies || is_off(settings, option))
    return not_needed(notifies ? std::string(of_kured) : "kured notifies nobody");
  return {Outcome::decide, why_notify};
}

}  // namespace

const std::vector<KuredOption>& kured_options() {
  using enum KuredType;
  static const std::vector<KuredOption> options = {
      {"concurrency", integer, "1", concurrency, false, false, false, true},
      {"reboot-days", list, "", window, true},
      {"start-time", text, "0:00", window, true},
      {"end-time", text, "23:59:59", window, true},
      {"time-zone", text, "UTC", window, true},
      {"prometheus-url", text, "", prometheus, true},
      {"alert-filter-regexp", text, "", prometheus, true},
      {"alert-filter-match-only", boolean, "false", prometheus, true},
      {"alert-firing-only", boolean, "false", prometheus, true},
      {"blocking-pod-selector", repeated, "", blocking_pods, true},
      {"reboot-sentinel", text, "/var/run/reboot-required", sentinel},
      {"reboot-sentinel-command", text, "", sentinel_command},
      {"reboot-method", text, "command", reboot_method},
      {"reboot-command", text, "/bin/systemctl reboot", reboot_command},
      {"reboot-signal", integer, "39", reboot_signal},
      {"drain-timeout", duration, "0", drain_timeout},
      {"drain-pod-selector", text, "", drained_pods},
      {"drain-grace-period", integer, "-1", no_counterpart<why_grace>},
      {"drain-delay", duration, "0", to_decide<why_before_drain>},
      {"reboot-delay", duration, "0", to_decide<why_after_drain>},
      {"force-reboot", boolean, "false", no_counterpart<why_force>},
      {"skip-wait-for-delete-timeout", integer, "0", no_counterpart<why_skip_wait>},
      {"lock-release-delay", duration, "0", soak},
      {"lock-ttl", duration, "0", no_counterpart<why_lock_ttl>},
      {"lock-annotation", text, "weave.works/kured-node-lock", always<why_lock>, false, false, true},
      {"ds-name", text, "kured", always<why_lock>, false, false, true},
      {"ds-namespace", text, "kube-system", always<why_lock>, false, false, true},
      {"node-id", text, "", always<why_node_id>, false, false, true},
      {"period", duration, "1h", always<why_period>, false, false, true},
      {"prefer-no-schedule-taint", text, "", taint},
      {"annotate-nodes", boolean, "false", always<why_annotate>, false, false, true},
      {"pre-reboot-node-labels", list, "", no_counterpart<why_labels>},
      {"post-reboot-node-labels", list, "", no_counterpart<why_labels>},
      {"notify-url", text, "", to_decide<why_notify>, false, true},
      {"slack-hook-url", text, "", to_decide<why_notify>, false, true},
      {"slack-username", text, "kured", message},
      {"slack-channel", text, "", message},
      {"message-template-drain", text, "Draining node %s", message},
      {"message-template-reboot", text, "Rebooting node %s", message},
      {"message-template-uncordon", text, "Node %s rebooted & uncordoned successfully!", message},
      {"metrics-host", text, "", metrics},
      {"metrics-port", integer, "8080", metrics},
      {"log-format", text, "text", log_format},
  };
  return options;
}

const KuredOption* find_kured_option(std::string_view name) {
  const auto found = std::ranges::find(kured_options(), name, &KuredOption::name);
  return found == kured_options().end() ? nullptr : &*found;
}

}  // namespace haulout::cli
