// Finds the address of the API server and the credentials for it.
//
// Sources: a kubeconfig as kubectl reads it, the in-cluster ServiceAccount, the kubelet's kubeconfig. A Connection is
// plain data about where credentials come from. AuthTransport (auth_transport.hpp) sends requests with them and reads
// rotated files again. Fails with Errc::unavailable (file missing, unreadable, not YAML, unknown context, unsupported
// setting). The message names the file, the cause and the remedy, and contains no secret. Blocks while it reads files;
// sends nothing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "http/client.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::k8s {

// A credential plugin (client-go's exec), which run_exec_plugin() runs.
struct ExecPlugin {
  std::string api_version;  // client.authentication.k8s.io/v1 or v1beta1
  std::string command;      // absolute, or looked up in PATH
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  std::string install_hint;
  bool provide_cluster_info = false;
  std::string cluster_info_json;  // spec.cluster of the ExecCredential that the plugin gets, without the CA
  enum class InteractiveMode { never, if_available, always } interactive_mode = InteractiveMode::never;
};

// A value that is given inline, or read from a file each time it is needed (files rotate). If both are set, the file is
// read, and `data` is used until the file has been read successfully once, as in client-go.
struct Material {
  std::string data;
  std::string file;
  bool empty() const { return data.empty() && file.empty(); }
  bool operator==(const Material&) const = default;
};

// Where the API server is, and the identity with which it is called.
struct Connection {
  http::Endpoint endpoint;
  std::optional<http::Proxy> proxy;
  std::string path_prefix;  // path of the server URL; precedes the path of each request
  Material ca;
  bool verify = true;
  std::string tls_server_name;
  Material client_cert;
  Material client_key;
  Material token;  // bearer token
  // Expiry of an id-token that only kubectl renews (auth-provider oidc). After it, requests fail with
  // Errc::unavailable.
  std::optional<WallTime> token_expires;
  std::string username, password;  // for basic authentication
  std::optional<ExecPlugin> exec;
  std::string impersonate_user;
  std::vector<std::string> impersonate_groups;
  std::string impersonate_uid;
  std::vector<std::pair<std::string, std::string>> impersonate_extra;
  std::string default_namespace = "default";
  bool of_a_pod = false;  // true: the credentials are the ServiceAccount of the pod in which this process runs
  std::vector<std::string> kubeconfigs;  // the files that were read
  std::string origin;  // source of the connection, for messages: "kubeconfig /home/me/.kube/config, context prod"
};

// kubectl's connection flags. Empty means not given.
struct ConnectionFlags {
  std::string kubeconfig, context, cluster, user, ns, server, token, certificate_authority, client_certificate,
      client_key;
  std::string tls_server_name, as, as_uid, username, password;
  std::vector<std::string> as_groups;
  std::vector<std::pair<std::string, std::string>> as_user_extra;
  bool insecure_skip_tls_verify = false;
};

// What the functions that find a connection use of the process and the machine. It is a parameter, so that tests do not
// depend on the environment.
struct Environment {
  std::map<std::string, std::string> variables;
  std::string home;
  std::string service_account_dir = "/var/run/secrets/kubernetes.io/serviceaccount";
  static Environment of_process();
  std::string get(const std::string& name) const;
};

// Returns every path on this machine that the connection needs, now or when it is made again: kubeconfigs,
// certificates, keys, tokens, and the credential plugin with its arguments that are absolute paths. Pure.
std::vector<std::string> files_of(const Connection& connection);

// Uses the first source that exists, in kubectl's order: --kubeconfig, $KUBECONFIG (merged), ~/.kube/config,
// in-cluster. If --kubeconfig is given, its file must exist. Flags override the settings of the source.
Result<Connection> discover(const ConnectionFlags& flags, const Environment& environment);
// Uses the first source that exists, in the order of an agent: --kubeconfig, $KUBECONFIG, in-cluster, the first
// existing file of `kubelet_files`. If --kubeconfig or $KUBECONFIG is set, at least one of its files must exist. Does
// not use ~/.kube/config: an agent that root starts by hand must not act as the administrator.
Result<Connection> discover_for_agent(const std::string& kubeconfig, const Environment& environment,
                                      const std::vector<std::string>& kubelet_files);
// Returns the connection of the ServiceAccount of the pod in which this process runs. Precondition: the variable
// KUBERNETES_SERVICE_HOST is set.
Result<Connection> in_cluster(const Environment& environment);
// Loads one or several files, merged as kubectl does: the first file that sets a value wins. Missing files are skipped
// if at least one exists.
Result<Connection> load_kubeconfig(const std::vector<std::string>& files, const ConnectionFlags& flags);

// Sets the proxy of the connection, as kubectl does. Pure. The proxy-url of the cluster's entry, which the connection
// already has, comes first. Otherwise HTTPS_PROXY or https_proxy applies, by the rules of Go's httpproxy. NO_PROXY
// lists exceptions: names with their subdomains, addresses and networks, each with or without a port, or everything
// ("*"). The host localhost, loopback addresses and endpoints without TLS are reached directly. Fails with
// Errc::unavailable if the variable is not a valid proxy URL.
Result<> choose_proxy(Connection& connection, const Environment& environment);

}  // namespace haulout::k8s
