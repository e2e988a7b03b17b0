#include "k8s/credentials.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>

#include "base/text.hpp"
#include "http/base64.hpp"
#include "k8s/credential_file.hpp"
#include "k8s/kubeconfig.hpp"

namespace haulout::k8s {

namespace {

// Reads and merges the files that exist. Returns an empty Kubeconfig if none exists.
Result<Kubeconfig> read_all(const std::vector<std::string>& files) {
  Kubeconfig merged;
  for (const std::string& file : files) {
    if (is_missing(file)) continue;
    auto text = read_credential_file("kubeconfig", file);
    if (!text) return std::move(text).error();
    auto config = decode_kubeconfig(*text, file);
    if (!config) return std::move(config).error();
    merge_kubeconfig(merged, std::move(*config));
  }
  return merged;
}

std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> files;
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t to = std::min(list.find(':', from), list.size());
    std::string file = list.substr(from, to - from);
    if (!file.empty() && std::find(files.begin(), files.end(), file) == files.end()) files.push_back(std::move(file));
    from = to + 1;
  }
  return files;
}

std::string joined(const std::vector<std::string>& files) {
  std::string out;
  for (const std::string& file : files) out += (out.empty() ? "" : ":") + file;
  return out;
}

std::string trimmed_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  return text;
}

std::string token_path(const Environment& environment) {
  return environment.service_account_dir + "/token";
}

bool may_be_in_cluster(const Environment& environment) {
  return !environment.get("KUBERNETES_SERVICE_HOST").empty() && !environment.get("KUBERNETES_SERVICE_PORT").empty() &&
         !is_missing(token_path(environment));
}

// Returns what is missing, so that this process does not use the ServiceAccount of a pod.
std::string lacking_of_a_pod(const Environment& environment) {
  for (const char* variable : {"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"})
    if (environment.get(variable).empty()) return std::string(variable) + " is not set";
  return "no " + token_path(environment);
}

Error nothing_found(const std::vector<std::string>& files, const std::string& where, const Environment& environment) {
  return Error(
      Errc::unavailable,
      fmt::format("no cluster is configured: --kubeconfig is not given, {} {}, and no ServiceAccount of a pod was "
                  "found ({}); name a kubeconfig with --kubeconfig or $KUBECONFIG, or a server with --server",
                  where, files.empty() ? "is not known" : joined(files) + " is missing or empty",
                  lacking_of_a_pod(environment)));
}

bool names_an_entry(const ConnectionFlags& flags) {
  return !(flags.server.empty() && flags.context.empty() && flags.cluster.empty() && flags.user.empty());
}

}  // namespace

Environment Environment::of_process() {
  Environment environment;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      environment.variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  environment.home = environment.get("HOME");
  if (environment.home.empty()) {
    if (const passwd* user = ::getpwuid(::getuid()); user != nullptr && user->pw_dir != nullptr)
      environment.home = user->pw_dir;
  }
  return environment;
}

std::string Environment::get(const std::string& name) const {
  const auto found = variables.find(name);
  return found == variables.end() ? std::string() : found->second;
}

Result<Connection> in_cluster(const Environment& environment) {
  Connection connection;
  connection.origin = "in-cluster ServiceAccount";
  connection.of_a_pod = true;
  const std::string host = environment.get("KUBERNETES_SERVICE_HOST");
  const std::string port = environment.get("KUBERNETES_SERVICE_PORT");
  const std::uint16_t number = parse_number<std::uint16_t>(port).value_or(0);
  if (number == 0)
    return Error(
        Errc::unavailable,
        fmt::format("KUBERNETES_SERVICE_PORT is \"{}\", which is not a port number: correct it, or use a kubeconfig "
                    "(--kubeconfig)",
                    port));
  // Some installations put brackets around an IPv6 address in KUBERNETES_SERVICE_HOST, most do not.
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  connection.endpoint.kind = http::Endpoint::Kind::tls;
  connection.endpoint.host = bracketed ? host.substr(1, host.size() - 2) : host;
  connection.endpoint.port = number;

  const std::string token_file = token_path(environment);
  if (auto token = read_credential_file("ServiceAccount token", token_file); !token)
    return std::move(token).error().with_context(
        "the token of this pod's ServiceAccount cannot be read (is automountServiceAccountToken off?)");
  connection.token.file = token_file;
  connection.ca.file = environment.service_account_dir + "/ca.crt";
  connection.default_namespace = environment.get("POD_NAMESPACE");
  if (connection.default_namespace.empty()) {
    const std::string file = environment.service_account_dir + "/namespace";
    if (auto ns = read_credential_file("namespace file", file)) connection.default_namespace = trimmed_line(*ns);
  }
  if (connection.default_namespace.empty()) connection.default_namespace = "default";
  return connection;
}

Result<Connection> load_kubeconfig(const std::vector<std::string>& files, const ConnectionFlags& flags) {
  if (!files.empty() && std::all_of(files.begin(), files.end(), is_missing)) {
    // For a single file, the error of read_credential_file() is the most precise.
    if (files.size() == 1) return read_credential_file("kubeconfig", files.front()).error();
    return Error(Errc::unavailable,
                 fmt::format("none of the kubeconfig files {} exists; check the paths", joined(files)));
  }
  auto config = read_all(files);
  if (!config) return std::move(config).error();
  return connection_of(*config, flags);
}

namespace {

Result<Connection> discover_directly(const ConnectionFlags& flags, const Environment& environment) {
  if (!flags.kubeconfig.empty()) return load_kubeconfig({flags.kubeconfig}, flags);

  std::vector<std::string> files = split_list(environment.get("KUBECONFIG"));
  std::string where = "$KUBECONFIG";
  if (files.empty()) {
    where = "the default kubeconfig";
    if (!environment.home.empty()) files.push_back(environment.home + "/.kube/config");
  }
  auto config = read_all(files);
  if (!config) return std::move(config).error();
  if (!config->empty() || names_an_entry(flags)) return connection_of(*config, flags);
  if (!may_be_in_cluster(environment)) return nothing_found(files, where, environment);
  auto connection = in_cluster(environment);
  if (!connection) return connection;
  if (auto done = apply_flags(*connection, flags); !done) return std::move(done).error();
  return connection;
}

Result<Connection> discover_directly(const std::string& kubeconfig, const Environment& environment,
                                     const std::vector<std::string>& kubelet_files) {
  std::vector<std::string> files = split_list(environment.get("KUBECONFIG"));
  if (!kubeconfig.empty()) files = {kubeconfig};
  if (!files.empty()) return load_kubeconfig(files, {});
  if (may_be_in_cluster(environment)) return in_cluster(environment);
  const auto kubelet = std::find_if_not(kubelet_files.begin(), kubelet_files.end(), is_missing);
  if (kubelet != kubelet_files.end()) return load_kubeconfig({*kubelet}, {});
  return Error(
      Errc::unavailable,
      fmt::format("no cluster is configured: neither --kubeconfig nor $KUBECONFIG is given, no ServiceAccount of a pod "
                  "was found ({}), and there is no kubeconfig of a kubelet ({}); name one with --kubeconfig",
                  lacking_of_a_pod(environment), joined(kubelet_files)));
}

Result<Connection> with_proxy(Result<Connection> connection, const Environment& environment) {
  if (!connection) return connection;
  if (auto done = choose_proxy(*connection, environment); !done) return std::move(done).error();
  return connection;
}

}  // namespace

Result<Connection> discover(const ConnectionFlags& flags, const Environment& environment) {
  return with_proxy(discover_directly(flags, environment), environment);
}

Result<Connection> discover_for_agent(const std::string& kubeconfig, const Environment& environment,
                                      const std::vector<std::string>& kubelet_files) {
  return with_proxy(discover_directly(kubeconfig, environment, kubelet_files), environment);
}

namespace {

Error unusable(std::string message) {
  return Error(Errc::unavailable, std::move(message));
}

template <class Entry>
std::string names_of(const std::map<std::string, Entry>& entries) {
  constexpr std::size_t shown = 20;
  if (entries.empty()) return "none";
  std::string out;
  std::size_t count = 0;
  for (const auto& [name, entry] : entries) {
    if (count == shown) return fmt::format("{} and {} more", out, entries.size() - shown);
    out += fmt::format("{}\"{}\"", count++ > 0 ? ", " : "", name);
  }
  return out;
}

std::string files_of(const Kubeconfig& config) {
  if (config.files.empty()) return "kubeconfig (no file found)";
  std::string out = "kubeconfig ";
  for (std::size_t i = 0; i < config.files.size(); ++i) out += (i > 0 ? ":" : "") + config.files[i];
  return out;
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  const std::size_t first = text.find_first_not_of(space);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(space) - first + 1));
}

// Returns false if the text contains control characters other than tabs. They must not be in a header field: a line
// break could add another header.
bool is_header_safe(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && byte != '\t') || byte == 0x7f;
  });
}

Result<Material> material(std::string_view entry, const char* key, const std::string& data, const std::string& file) {
  if (data.empty()) return Material{{}, file};
  auto decoded = http::base64_decode(data);
  if (!decoded)
    return unusable(fmt::format(
        "{}: {}-data is not base64; paste the output of `base64 -w0 FILE`, or use {} with a path", entry, key, key));
  return Material{std::move(*decoded), {}};
}

Result<KubeconfigContext> choose_context(const Kubeconfig& config, const ConnectionFlags& flags, std::string& name) {
  name = flags.context.empty() ? config.current_context : flags.context;
  if (name.empty()) {
    if (!flags.server.empty() || !flags.cluster.empty()) return KubeconfigContext{};
    if (config.contexts.empty())
      return unusable(
          files_of(config) +
          " has no contexts; name another file with --kubeconfig, or (not for an agent) a cluster with --server");
    return unusable(fmt::format(
        "{} has no current-context; set it to one of its contexts ({}) with `kubectl config use-context NAME`, "
        "or (not for an agent) choose one with --context",
        files_of(config), names_of(config.contexts)));
  }
  const auto found = config.contexts.find(name);
  if (found != config.contexts.end()) return found->second;
  return unusable(fmt::format("{}: context \"{}\" ({}) does not exist; known contexts: {}", files_of(config), name,
                              flags.context.empty() ? "its current-context" : "from --context",
                              names_of(config.contexts)));
}

template <class Entry>
Result<Entry> look_up(const std::map<std::string, Entry>& entries, const Kubeconfig& config, const char* kind,
                      const std::string& name, const std::string& asked_by) {
  const auto found = entries.find(name);
  if (found != entries.end()) return found->second;
  return unusable(fmt::format("{}: {} \"{}\" ({}) does not exist; known {}s: {}", files_of(config), kind, name,
                              asked_by, kind, names_of(entries)));
}

Result<> set_server(Connection& connection, std::string_view entry, std::string server) {
  const std::size_t scheme_end = server.find("://");
  if (scheme_end == std::string::npos && !server.starts_with("unix:")) {
    // As in kubectl, an address without a scheme is https only if a CA, a client certificate or
    // insecure-skip-tls-verify is set.
    const bool tls = !connection.ca.empty() || !connection.client_cert.empty() || !connection.verify;
    server = (tls ? "https://" : "http://") + server;
  }
  const std::size_t host = server.find("://") + 3;
  const std::string_view authority = std::string_view(server).substr(std::min(host, server.size()));
  if (server.find("://") != std::string::npos &&
      authority.substr(0, authority.find('/')).find('@') != std::string::npos)
    return unusable(
        fmt::format("{}: server must not contain a user name or password; set username and password of the user in the "
                    "kubeconfig instead",
                    entry));
  auto endpoint = http::parse_endpoint(server, &connection.path_prefix);
  if (!endpoint)
    return unusable(
        fmt::format("{}: server \"{}\": {}; expected https://HOST:PORT", entry, server, endpoint.error().message()));
  connection.endpoint = std::move(*endpoint);
  return {};
}

Result<> apply_cluster(Connection& connection, const KubeconfigCluster& cluster, const std::string& entry,
                       const ConnectionFlags& flags) {
  if (!cluster.proxy_url.empty()) {
    auto proxy = http::parse_proxy(cluster.proxy_url);
    if (!proxy) return unusable(entry + ": proxy-url: " + proxy.error().message());
    connection.proxy = *std::move(proxy);
    connection.proxy->origin = entry + ": proxy-url";
  }
  connection.tls_server_name = cluster.tls_server_name;
  connection.verify = !cluster.insecure_skip_tls_verify;
  // A flag about trust (--certificate-authority, --insecure-skip-tls-verify) replaces all settings of the file about
  // trust. Without such a flag, settings of the file that contradict each other are an error.
  const bool trust_by_flag = !flags.certificate_authority.empty() || flags.insecure_skip_tls_verify;
  if (!trust_by_flag) {
    auto ca =
        material(entry, "certificate-authority", cluster.certificate_authority_data, cluster.certificate_authority);
    if (!ca) return std::move(ca).error();
    connection.ca = std::move(*ca);
    if (!connection.verify && !connection.ca.empty())
      return unusable(entry +
                      ": insecure-skip-tls-verify contradicts the certificate-authority next to it; remove one");
  }
  return {};
}

Result<> apply_exec(Connection& connection, const KubeconfigExec& exec, const KubeconfigCluster& cluster,
                    const std::string& entry) {
  ExecPlugin plugin;
  plugin.api_version = exec.api_version;
  const bool v1 = exec.api_version == "client.authentication.k8s.io/v1";
  if (!v1 && exec.api_version != "client.authentication.k8s.io/v1beta1")
    return unusable(
        fmt::format("{}: exec.apiVersion \"{}\" is not supported; use client.authentication.k8s.io/v1 (or v1beta1)"
                    " and a plugin that speaks it",
                    entry, exec.api_version));
  if (exec.command.empty())
    return unusable(entry + ": exec has no command; add the program that fetches the credentials");
  using Mode = ExecPlugin::InteractiveMode;
  if (exec.interactive_mode == "Never") {
    plugin.interactive_mode = Mode::never;
  } else if (exec.interactive_mode == "IfAvailable" || (exec.interactive_mode.empty() && !v1)) {
    plugin.interactive_mode = Mode::if_available;
  } else if (exec.interactive_mode == "Always") {
    plugin.interactive_mode = Mode::always;
  } else {
    return unusable(fmt::format("{}: exec.interactiveMode {}; set it to Never, IfAvailable or Always", entry,
                                exec.interactive_mode.empty() ? "is missing, but exec.apiVersion v1 requires it"
                                                              : "\"" + exec.interactive_mode + "\" is unknown"));
  }
  for (const auto& [name, value] : exec.env) {
    if (name.empty() || name.find('=') != std::string::npos)
      return unusable(entry + ": exec.env contains a variable without a valid name");
  }
  plugin.command = exec.command;
  plugin.args = exec.args;
  plugin.env = exec.env;
  plugin.install_hint = exec.install_hint;
  plugin.provide_cluster_info = exec.provide_cluster_info;
  if (exec.provide_cluster_info) plugin.cluster_info_json = cluster_info_json(cluster);
  connection.exec = std::move(plugin);
  return {};
}

Result<> apply_client_certificate(Connection& connection, const KubeconfigUser& user, const std::string& entry) {
  if (user.client_certificate.empty() && user.client_certificate_data.empty()) return {};
  if (user.client_key.empty() && user.client_key_data.empty())
    return unusable(entry +
                    ": client-certificate is set, but client-key is not; add the key that belongs to the certificate");
  auto certificate = material(entry, "client-certificate", user.client_certificate_data, user.client_certificate);
  if (!certificate) return std::move(certificate).error();
  auto key = material(entry, "client-key", user.client_key_data, user.client_key);
  if (!key) return std::move(key).error();
  connection.client_cert = std::move(*certificate);
  connection.client_key = std::move(*key);
  return {};
}

// Uses the id-token of the auth-provider oidc until it expires. Only kubectl renews such a token and writes it back to
// the file.
Result<> apply_auth_provider(Connection& connection, const KubeconfigUser& user, const std::string& entry) {
  const std::string& name = user.auth_provider;
  if (name != "oidc") {
    const bool removed = name == "gcp" || name == "azure";
    return unusable(
        fmt::format("{}: auth-provider \"{}\" {}; use the exec plugin of your provider, a client "
                    "certificate or a token",
                    entry, name, removed ? "is not supported any more (kubectl removed it in 1.26)" : "is not known"));
  }
  const std::string token = trimmed(user.id_token);
  if (token.empty())
    return unusable(entry +
                    ": auth-provider \"oidc\" has no id-token in its config; log in with the tool that made this "
                    "kubeconfig, or use its exec plugin");
  if (!is_header_safe(token)) return unusable(entry + ": id-token contains a control character; write it on one line");
  connection.token = Material{token, {}};
  connection.token_expires = user.id_token_expires;
  return {};
}

Result<> apply_user(Connection& connection, const KubeconfigUser& user, const KubeconfigCluster& cluster,
                    const std::string& entry, const ConnectionFlags& flags) {
  connection.impersonate_user = user.as;
  connection.impersonate_uid = user.as_uid;
  connection.impersonate_groups = user.as_groups;
  connection.impersonate_extra = user.as_user_extra;
  // --token replaces the credentials of the user in the file. Of this user, only the settings for impersonation stay in
  // use.
  if (!flags.token.empty()) return {};
  if (!user.auth_provider.empty()) return apply_auth_provider(connection, user, entry);
  const std::string token = trimmed(user.token);
  if (!is_header_safe(token)) return unusable(entry + ": token contains a control character; write it on one line");
  const bool basic = !user.username.empty() || !user.password.empty();
  if (basic && !token.empty())
    return unusable(entry + ": both token and username/password are given; remove one of them");
  connection.token = Material{token, user.token_file};
  connection.username = user.username;
  connection.password = user.password;
  if (auto done = apply_client_certificate(connection, user, entry); !done) return done;
  // The plugin is not run if there are other credentials.
  if (user.exec && connection.token.empty() && !basic && connection.client_cert.empty() &&
      flags.client_certificate.empty())
    return apply_exec(connection, *user.exec, cluster, entry);
  return {};
}

Result<> check_impersonation(const Connection& connection) {
  if (connection.impersonate_user.empty() &&
      !(connection.impersonate_uid.empty() && connection.impersonate_groups.empty() &&
        connection.impersonate_extra.empty()))
    return unusable(
        connection.origin +
        ": impersonating a uid, groups or extra needs a user; add `as` in the kubeconfig, or (not for an agent) --as");
  bool safe = is_header_safe(connection.impersonate_user) && is_header_safe(connection.impersonate_uid);
  for (const auto& group : connection.impersonate_groups) safe = safe && is_header_safe(group);
  for (const auto& [key, value] : connection.impersonate_extra) safe = safe && is_header_safe(value);
  if (!safe) return unusable(connection.origin + ": the impersonation settings contain a control character");
  return {};
}

Result<> apply_user_flags(Connection& connection, const ConnectionFlags& flags) {
  if (!flags.token.empty()) {
    connection.token = Material{trimmed(flags.token), {}};
    connection.token_expires.reset();
    if (!is_header_safe(connection.token.data)) return unusable("--token contains a control character");
    connection.username.clear();
    connection.password.clear();
    connection.client_cert = {};
    connection.client_key = {};
    connection.exec.reset();
  }
  if (!flags.username.empty() || !flags.password.empty()) {
    if (!connection.token.empty())
      return unusable("--username and --password contradict a token (" +
                      (flags.token.empty() ? connection.origin : "--token") + "); give only one of them");
    if (!flags.username.empty()) connection.username = flags.username;
    if (!flags.password.empty()) connection.password = flags.password;
    connection.exec.reset();
  }
  if (!flags.client_certificate.empty()) connection.client_cert = Material{{}, flags.client_certificate};
  if (!flags.client_key.empty()) connection.client_key = Material{{}, flags.client_key};
  if (connection.client_cert.empty() != connection.client_key.empty())
    return unusable("a client certificate needs its key; give both --client-certificate and --client-key");
  if (!flags.as.empty()) connection.impersonate_user = flags.as;
  if (!flags.as_uid.empty()) connection.impersonate_uid = flags.as_uid;
  if (!flags.as_groups.empty()) connection.impersonate_groups = flags.as_groups;
  if (!flags.as_user_extra.empty()) connection.impersonate_extra = flags.as_user_extra;
  return check_impersonation(connection);
}

// Drops the credentials if the connection does not use TLS, so that they are never sent in clear text. kubectl does the
// same.
void drop_credentials_without_tls(Connection& connection) {
  if (connection.endpoint.kind == http::Endpoint::Kind::tls) return;
  connection.token = {};
  connection.token_expires.reset();
  connection.username.clear();
  connection.password.clear();
  connection.client_cert = {};
  connection.client_key = {};
  connection.exec.reset();
}

}  // namespace

Result<> apply_flags(Connection& connection, const ConnectionFlags& flags) {
  if (flags.insecure_skip_tls_verify && !flags.certificate_authority.empty())
    return unusable("--insecure-skip-tls-verify contradicts --certificate-authority; give one of them");
  if (flags.insecure_skip_tls_verify) {
    connection.verify = false;
    connection.ca = {};
  }
  if (!flags.certificate_authority.empty()) {
    connection.verify = true;
    connection.ca = Material{{}, flags.certificate_authority};
  }
  // --server selects another server, to which the tls-server-name of the file does not apply.
  if (!flags.server.empty() || !flags.tls_server_name.empty()) connection.tls_server_name = flags.tls_server_name;
  if (!flags.ns.empty()) connection.default_namespace = flags.ns;
  if (auto done = apply_user_flags(connection, flags); !done) return done;
  if (!flags.server.empty()) {
    connection.path_prefix.clear();
    if (auto done = set_server(connection, "--server", flags.server); !done) return done;
    drop_credentials_without_tls(connection);
  }
  return {};
}

Result<Connection> connection_of(const Kubeconfig& config, const ConnectionFlags& flags) {
  std::string context_name;
  auto context = choose_context(config, flags, context_name);
  if (!context) return std::move(context).error();
  Connection connection;
  connection.kubeconfigs = config.files;
  connection.origin = files_of(config) + (context_name.empty() ? "" : ", context " + context_name);
  if (!context->ns.empty()) connection.default_namespace = context->ns;
  const std::string by_context = "named by context \"" + context_name + "\"";

  KubeconfigCluster cluster;
  const std::string cluster_name = flags.cluster.empty() ? context->cluster : flags.cluster;
  if (!cluster_name.empty()) {
    auto found = look_up(config.clusters, config, "cluster", cluster_name,
                         flags.cluster.empty() ? by_context : "from --cluster");
    if (!found) return std::move(found).error();
    cluster = std::move(*found);
  } else if (flags.server.empty()) {
    return unusable(connection.origin +
                    " names no cluster; add one to it, or (not for an agent) choose with --cluster or --server");
  }
  const std::string cluster_entry = fmt::format("kubeconfig {}, cluster \"{}\"", cluster.file, cluster_name);

  KubeconfigUser user;
  const std::string user_name = flags.user.empty() ? context->user : flags.user;
  if (!user_name.empty()) {
    auto found = look_up(config.users, config, "user", user_name, flags.user.empty() ? by_context : "from --user");
    if (!found) return std::move(found).error();
    user = std::move(*found);
  }
  const std::string user_entry = fmt::format("kubeconfig {}, user \"{}\"", user.file, user_name);

  if (auto done = apply_cluster(connection, cluster, cluster_entry, flags); !done) return std::move(done).error();
  KubeconfigCluster effective = cluster;
  if (!flags.server.empty()) effective.server = flags.server;
  if (!flags.server.empty() || !flags.tls_server_name.empty()) effective.tls_server_name = flags.tls_server_name;
  if (flags.insecure_skip_tls_verify) effective.insecure_skip_tls_verify = true;
  if (!flags.certificate_authority.empty()) effective.insecure_skip_tls_verify = false;
  if (auto done = apply_user(connection, user, effective, user_entry, flags); !done) return std::move(done).error();
  if (auto done = apply_flags(connection, flags); !done) return std::move(done).error();
  if (flags.server.empty()) {
    if (cluster.server.empty())
      return unusable(cluster_entry + " has no server; add one, or (not for an agent) give --server");
    if (auto done = set_server(connection, cluster_entry, cluster.server); !done) return std::move(done).error();
  }
  drop_credentials_without_tls(connection);
  return connection;
}

namespace ip = boost::asio::ip;

namespace {

using Ec = boost::system::error_code;

// Returns a name, or an entry of NO_PROXY, in lower case and without blanks, for comparisons.
std::string folded(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != ' ' && c != '\t') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

bool is_in_network(const ip::address& address, const std::string& network) {
  Ec failure;
  if (address.is_v4()) {
    const auto v4 = ip::make_network_v4(network, failure);
    return !failure && ip::make_network_v4(address.to_v4(), v4.prefix_length()).canonical() == v4.canonical();
  }
  const auto v6 = ip::make_network_v6(network, failure);
  return !failure && ip::make_network_v6(address.to_v6(), v6.prefix_length()).canonical() == v6.canonical();
}

// Returns the host of an entry of NO_PROXY: "name", "name:port", "[address]:port" or "network/bits". Returns an empty
// string if the entry has another port than `port`.
std::string without_port(const std::string& entry, std::uint16_t port) {
  const std::size_t colon = entry.rfind(':');
  const bool bracketed = entry.starts_with('[');
  const bool has_port = colon != std::string::npos && (bracketed ? entry[colon - 1] == ']' : entry.find(':') == colon);
  std::string host = has_port ? entry.substr(0, colon) : entry;
  if (has_port && entry.substr(colon + 1) != std::to_string(port)) return {};
  if (bracketed && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

bool excepts(const std::string& entry, const std::string& host, const std::optional<ip::address>& address,
             std::uint16_t port) {
  if (entry == "*") return true;
  const std::string wanted = without_port(entry, port);
  if (wanted.empty()) return false;
  if (address) {
    Ec failure;
    const ip::address other = ip::make_address(wanted, failure);
    return failure ? is_in_network(*address, wanted) : other == *address;
  }
  const std::string suffix = wanted.starts_with("*.") ? wanted.substr(1) : wanted;
  if (suffix.starts_with('.')) return host.ends_with(suffix);
  return host == suffix || host.ends_with("." + suffix);
}

bool excepted(const Environment& environment, const http::Endpoint& endpoint) {
  const std::string host = folded(endpoint.host);
  Ec no_address;
  const ip::address parsed = ip::make_address(host, no_address);
  const std::optional<ip::address> address = no_address ? std::nullopt : std::optional(parsed);
  if (host == "localhost" || (address && address->is_loopback())) return true;
  std::string list = environment.get("NO_PROXY");
  if (list.empty()) list = environment.get("no_proxy");
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t to = std::min(list.find(',', from), list.size());
    if (excepts(folded(std::string_view(list).substr(from, to - from)), host, address, endpoint.port)) return true;
    from = to + 1;
  }
  return false;
}

}  // namespace

std::vector<std::string> files_of(const Connection& connection) {
  std::vector<std::string> all = connection.kubeconfigs;
  for (const Material* material : {&connection.ca, &connection.client_cert, &connection.client_key, &connection.token})
    if (!material->file.empty()) all.push_back(material->file);
  if (connection.exec) {
    for (const std::string& word : connection.exec->args)
      if (word.starts_with('/')) all.push_back(word);
    if (connection.exec->command.starts_with('/')) all.push_back(connection.exec->command);
  }
  return all;
}

Result<> choose_proxy(Connection& connection, const Environment& environment) {
  if (connection.proxy || connection.endpoint.kind != http::Endpoint::Kind::tls) return {};
  const std::string variable = environment.get("HTTPS_PROXY").empty() ? "https_proxy" : "HTTPS_PROXY";
  const std::string url = environment.get(variable);
  if (url.empty() || excepted(environment, connection.endpoint)) return {};
  auto proxy = http::parse_proxy(url);
  if (!proxy) return Error(Errc::unavailable, variable + ": " + proxy.error().message());
  connection.proxy = *std::move(proxy);
  connection.proxy->origin = variable;
  return {};
}

}  // namespace haulout::k8s
