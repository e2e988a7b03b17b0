#include "cli/program/program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>

#include "agent/process/process.hpp"
#include "agent/process/transports.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "cli/options/help.hpp"
#include "cli/terminal/console.hpp"
#include "k8s/auth_transport.hpp"
#include "k8s/status.hpp"

namespace haulout::cli {
namespace {

// Returns true if the denied request caused the error. A drain may be denied optional rights (budgets, DaemonSets)
// before it is denied the right without which it fails.
bool is_about(const Error& error, const agent::RequestInfo& denied) {
  const std::string& kind = error.peer->kind;
  return !denied.resource.empty() &&
         (kind.empty() || kind == denied.resource || kind == denied.resource + "/" + denied.subresource);
}

}  // namespace

std::string way_out(const Error& error) {
  switch (error.code()) {
    case Errc::dns: return "check the server's name (--server, or 'kubectl config view --minify') and your DNS";
    case Errc::unreachable:
      return "check that the API server runs, and check its address (--server, or 'kubectl config view --minify')";
    case Errc::timeout:
      return "the API server did not answer in time: check the server, your DNS, and proxies and firewalls on the way; "
             "if --request-timeout is given, raise it";
    case Errc::tls:
      return "check the server's address, the CA and the name in its certificate (--certificate-authority, "
             "--tls-server-name), and the client certificate with its key; renew what has expired";
    case Errc::reset:
      return "try again; if the error persists, look for a proxy or load balancer in front of the API server";
    case Errc::protocol:
    case Errc::decode:
      return "check that the address is a Kubernetes API server's; a proxy or a login page may have answered instead";
    case Errc::status:
      if (error.is_status(401))
        return "the API server did not accept the credentials; they may have expired: renew them, or log in again";
      if (error.is_status(403))
        return k8s::is_denied_by_rbac(error) ? "let an administrator add the right:"
                                             : "if a right is missing (and no admission rule has refused the request), "
                                               "let an administrator add it:";
      return "";
    case Errc::unavailable:
    case Errc::invalid: return "";  // its messages contain their own remedy
  }
  return "";
}

std::string rbac_hint(std::string_view verb, std::string_view group, std::string_view resource,
                      std::string_view subresource) {
  return fmt::format("- apiGroups: [\"{}\"]\n  resources: [\"{}{}{}\"]\n  verbs: [\"{}\"]\n", group, resource,
                     subresource.empty() ? "" : "/", subresource, verb);
}

std::string rbac_of_drain() {
  return R"(apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: haulout-drain
rules:
- apiGroups: [""]
  resources: ["nodes"]
  verbs: ["get", "list", "watch", "patch"]
- apiGroups: [""]
  resources: ["pods"]
  verbs: ["list", "watch"]  # --disable-eviction needs delete, too
- apiGroups: [""]
  resources: ["pods/eviction"]
  verbs: ["create"]
- apiGroups: ["apps"]
  resources: ["daemonsets"]
  verbs: ["get"]
- apiGroups: ["policy"]
  resources: ["poddisruptionbudgets"]
  verbs: ["list", "watch"]
# with --max-unavailable-per-controller, --canary, --single-replica or --surge (other kinds of controllers need
# RESOURCE/scale):
- apiGroups: ["apps"]
  resources: ["deployments", "replicasets", "statefulsets"]
  verbs: ["get"]
# with --surge:
- apiGroups: [""]
  resources: ["pods"]
  verbs: ["patch"]
- apiGroups: [""]
  resources: ["namespaces", "persistentvolumeclaims"]
  verbs: ["get"]
# with --eviction-requests:
- apiGroups: ["lifecycle.k8s.io"]
  resources: ["evictionrequests"]
  verbs: ["list", "watch", "create", "get", "patch"]
- apiGroups: ["lifecycle.k8s.io"]
  resources: ["evictions"]
  verbs: ["list", "watch"]
# with --wait-volumes or --serialize-volumes:
- apiGroups: ["storage.k8s.io"]
  resources: ["volumeattachments"]
  verbs: ["list", "watch"]
- apiGroups: [""]
  resources: ["persistentvolumes", "persistentvolumeclaims"]
  verbs: ["get"]
# retire needs these, and those for guards and volumes:
- apiGroups: [""]
  resources: ["nodes"]
  verbs: ["delete"]
- apiGroups: ["storage.k8s.io"]
  resources: ["csinodes"]
  verbs: ["get"]
- apiGroups: ["coordination.k8s.io"]  # or in a Role in the namespace kube-node-lease
  resources: ["leases"]
  verbs: ["get"]
)";
}

std::vector<std::string> advice(const Error& error, const std::optional<agent::RequestInfo>& denied) {
  std::vector<std::string> lines;
  const std::string way = way_out(error);
  if (!way.empty()) lines.push_back(way);
  if (!error.is_status(403)) return lines;
  lines.push_back(denied && is_about(error, *denied)
                      ? rbac_hint(denied->verb, denied->group, denied->resource, denied->subresource)
                      : rbac_of_drain());
  lines.back().pop_back();  // the caller adds the line break
  return lines;
}

namespace {

// How long a command waits for the API server before it prints that. A drain has the same limit.
constexpr Duration worth_a_word = std::chrono::seconds(5);

// Returns the error that the API server returns for an object that does not exist, with this message.
Error not_there(std::string message) {
  Error error(Errc::status, std::move(message));
  error.peer.emplace().code = 404;
  error.peer->structured = true;
  return error;
}

Error missing(const std::vector<std::string>& names) {
  const bool one = names.size() == 1;
  return not_there(
      fmt::format("{} {} {} not exist in this cluster, so nothing was changed ('kubectl get nodes' lists the nodes)",
                  one ? "node" : "nodes", joined(names, ", "), one ? "does" : "do"));
}

}  // namespace

void Waiting::tell(const Error& error) {
  if (tools_.clock.now() < since_ + worth_a_word) return;
  std::string message = printable(error.message());
  if (message == told_) return;
  tools_.console.warn("waiting for the API server: " + message);
  told_ = std::move(message);
}

Task<std::vector<k8s::Node>> select_nodes(Tools tools, std::string selector, TimePoint deadline) {
  CO_TRY(auto list, co_await ask<k8s::List<k8s::Node>>(
                        tools, deadline, [&](TimePoint until) { return tools.client.list_nodes(selector, until); }));
  co_return std::move(list.items);
}

Task<std::vector<k8s::Node>> named_nodes(Tools tools, std::vector<std::string> names, Duration limit) {
  std::vector<k8s::Node> nodes;
  std::vector<std::string> absent;
  for (const std::string& name : names) {
    auto node = co_await ask<k8s::Node>(tools, saturating_add(tools.clock.now(), limit),
                                        [&](TimePoint until) { return tools.client.get_node(name, until); });
    if (node)
      nodes.push_back(*std::move(node));
    else if (k8s::is_gone(node.error()))
      absent.push_back(name);
    else
      co_return std::move(node).error().with_context("node/" + name);
  }
  if (!absent.empty()) co_return missing(absent);
  co_return nodes;
}

Error about_node(Error error, const std::string& node) {
  if (!k8s::is_gone(error)) return std::move(error).with_context("node/" + node);
  return not_there(fmt::format("node {} does not exist in this cluster (kubectl get nodes lists the nodes)", node));
}

Task<std::vector<std::string>> resolve_nodes(Tools tools, Settings settings, TimePoint deadline) {
  if (settings.selector.empty()) co_return settings.nodes;
  CO_TRY(const auto nodes, co_await select_nodes(tools, settings.selector, deadline));
  if (nodes.empty()) co_return not_there(no_match(settings.selector));
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const k8s::Node& node : nodes) names.push_back(node.name);
  co_return names;
}

std::string no_match(const std::string& selector) {
  return fmt::format("no node matches the selector \"{}\"; 'kubectl get nodes --show-labels' shows the labels",
                     selector);
}

int report_failure(const Tools& tools, const Error& error) {
  tools.console.warn("error: " + printable(error.message()));
  for (const std::string& line : advice(error, tools.denied)) tools.console.warn(line);
  return agent::exit_code(error);
}

namespace {

// Returns the certificate or key that `material` has as data or names as a file. An unreadable file counts as empty,
// because the connection that uses the file reports the error.
std::string contents_of(const k8s::Material& material) {
  constexpr std::size_t most = std::size_t{1} << 20;
  return material.data.empty() && !material.file.empty() ? file_text(material.file, most).text : material.data;
}

// Limit for the bytes of one list in memory. Larger than the agent's, which runs in a container with a memory limit.
constexpr std::size_t most_memory = std::size_t{128} * 1024 * 1024;

// Returns false for impersonated users and for users of kubelets, for which a SelfSubjectAccessReview gives wrong
// results.
bool may_review_access(const k8s::Connection& connection) {
  if (!connection.impersonate_user.empty()) return false;
  return !http::certificate_common_name(contents_of(connection.client_cert)).starts_with("system:node:");
}

// From this verbosity on, kubectl logs its requests. Haulout then logs them in the same format, which users of kubectl
// know.
constexpr unsigned verbosity_of_kubectl = 6;

// Returns the URL of the server, without the path of a request.
std::string url_of(const k8s::Connection& connection) {
  const bool tls = connection.endpoint.kind == http::Endpoint::Kind::tls;
  return (tls ? "https://" : "http://") + connection.endpoint.authority() + connection.path_prefix;
}

// Writes, every second, the output that a slow reader has not accepted yet.
boost::asio::awaitable<void> pump(agent::Process& process) {
  for (;;) {
    co_await process.clock.sleep_until(process.clock.now() + std::chrono::seconds(1));
    process.out.pump();
    process.err.pump();
  }
}

// Logs in before the job runs. A login may wait for a person, so its time must not count against the limits of the job.
boost::asio::awaitable<void> run_logged_in(k8s::AuthTransport& transport, Job& job) {
  co_await transport.log_in();
  co_await job.run();
}

bool is_for_machines(OutputFormat output) {
  return output != OutputFormat::text && output != OutputFormat::wide;
}

boost::asio::awaitable<int> run_job(agent::Process& process, const Settings& settings, k8s::AuthTransport& transport,
                                    agent::ServerWarnings& warnings, Console& console, Job& job) {
  std::optional<agent::Signals> signals(std::in_place, process.executor);
  std::vector<boost::asio::awaitable<void>> helpers = job.helpers();
  helpers.push_back(pump(process));
  const std::optional<int> signal = co_await until_signal(*signals, run_logged_in(transport, job), std::move(helpers));
  if (signal) co_await job.clean_up();
  int code = job.finish(signal);
  if (code == agent::exit_done && settings.warnings_as_errors && warnings.count() > 0) {
    console.warn(fmt::format("error: {} received", count_of(warnings.count(), "warning")));
    code = agent::exit_not_done;
  }
  // finish_output() may wait for a reader that does not read. From here on a signal ends the process immediately, so
  // that a person can end that wait.
  signals.reset();
  co_return finish_output(process.out, process.err, is_run_for_its_output(settings), code,
                          signal ? agent::patience_after_signal_ms : -1);
}

}  // namespace

bool is_run_for_its_output(const Settings& settings) {
  switch (settings.command) {
    case Command::status:
    case Command::explain:
    case Command::rehearse:
    case Command::audit:
    case Command::migrate: return true;
    default: return is_for_machines(settings.output);
  }
}

int finish_output(agent::FdSink& out, agent::FdSink& err, bool matters, int code, int patience_ms) {
  out.flush(patience_ms);
  const int failure = matters ? out.failure() : 0;
  if (failure != 0) err.write(fmt::format("error: the output could not be written: {}\n", std::strerror(failure)));
  err.flush(patience_ms);
  return failure != 0 && code == agent::exit_done ? agent::exit_not_done : code;
}

boost::asio::awaitable<int> run_program(agent::Process& process, Settings settings, MakeJob make_job) {
  agent::Sink& text = is_for_machines(settings.output) ? process.err : static_cast<agent::Sink&>(process.out);
  Console console(text, process.err);
  process.out.gather(process.executor);
  process.err.write_after(process.out);
  agent::Log log({settings.log_format, settings.verbosity}, process.clock,
                 [&console](const std::string& line) { console.warn(line); });
  agent::DeniedRequest denied;
  const auto failed = [&](const Error& error) {
    console.warn("error: " + printable(error.message()));
    process.err.flush(-1);
    return agent::exit_connection;
  };
  auto connection = k8s::discover(settings.connection, process.environment);
  if (!connection) co_return failed(connection.error());
  log.write(agent::Severity::info, "connecting",
            {{"to", connection->endpoint.authority()}, {"with", connection->origin}});
  settings.drain.review_access = may_review_access(*connection);
  settings.in_a_pod = connection->of_a_pod && connection->impersonate_user.empty();
  settings.retire.server = url_of(*connection);
  settings.retire.connection_files = k8s::files_of(*connection);
  settings.drain.cordoned_by = user_at_host(process.environment);
  settings.drain.run_id = fmt::format("{:016x}", process.rng.next());

  const std::string server = url_of(*connection);
  auto authenticated = k8s::AuthTransport::create(process.executor, process.clock, *std::move(connection),
                                                  agent::user_agent(to_string(settings.command)));
  if (!authenticated) co_return failed(authenticated.error());
  (*authenticated)->on_plugin(plugin_stage(console));
  agent::ServerWarnings warnings([&console](const std::string& text) { console.warn("Warning: " + printable(text)); });
  const auto note_end = [&denied, &warnings](const agent::RequestEnd& end) {
    if (end.status == 403) denied = agent::describe_request(end.method, end.target);
    warnings.see(end.warnings);
  };
  agent::WatchedTransport transport(**authenticated, process.clock, log, note_end, settings.request_timeout,
                                    settings.verbosity >= verbosity_of_kubectl ? server : "");
  k8s::Client client(transport, process.clock, {k8s::FieldValidation::warn, settings.drain.page_size, most_memory});
  Tools tools{client, process.clock, process.rng, console, process.out, denied, process.program};

  const auto job = make_job(process, std::move(tools), settings);
  co_return co_await run_job(process, settings, **authenticated, warnings, console, *job);
}

}  // namespace haulout::cli
