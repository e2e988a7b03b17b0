#include "k8s/credentials.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "k8s/credential_file.hpp"
#include "k8s/kubeconfig.hpp"
#include "k8s/proxies.hpp"

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

Error nothing_found(const std::vector<std::string>& files, const std::string& where, const Environment& environment) {
  const bool service = !environment.get("KUBERNETES_SERVICE_HOST").empty();
  return Error(Errc::unavailable,
               fmt::format("no cluster is configured: --kubeconfig is not given, {} {}, and this is not a Pod ({}); "
                           "name a kubeconfig with --kubeconfig or $KUBECONFIG, or a server with --server",
                           where, files.empty() ? "is not known" : joined(files) + " is missing or empty",
                           service ? "no " + token_path(environment) : "KUBERNETES_SERVICE_HOST is not set"));
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
  if (host.empty() || port.empty())
    return Error(
        Errc::unavailable,
        "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set; run in a Pod, or "
        "use a kubeconfig");
  std::uint16_t number = 0;
  const auto [end, failure] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (failure != std::errc() || end != port.data() + port.size() || number == 0)
    return Error(Errc::unavailable, fmt::format("KUBERNETES_SERVICE_PORT is \"{}\", which is not a port number", port));
  // Some installations put brackets around an IPv6 address here, most do not.
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  connection.endpoint.kind = http::Endpoint::Kind::tls;
  connection.endpoint.host = bracketed ? host.substr(1, host.size() - 2) : host;
  connection.endpoint.port = number;

  const std::string token_file = token_path(environment);
  if (auto token = read_credential_file("ServiceAccount token", token_file); !token)
    return std::move(token).error().with_context("in-cluster (is automountServiceAccountToken off?)");
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
    // For a single file, read_credential_file() has the best error message.
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
  return Error(Errc::unavailable,
               fmt::format("no cluster is configured: neither --kubeconfig nor $KUBECONFIG is given, this is not a "
                           "Pod, and there is no kubeconfig of a kubelet ({}); name one with --kubeconfig",
                           joined(kubelet_files)));
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

}  // namespace haulout::k8s
