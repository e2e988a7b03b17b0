// Where the API server is and who we are there.
//
// Sources: a kubeconfig as kubectl reads it, the in-cluster ServiceAccount, the kubelet's kubeconfig. A Connection is
// plain data about where credentials come from; AuthTransport (auth_transport.hpp) turns it into requests and follows
// rotation. Errors are Errc::unavailable (file missing, unreadable, not YAML, unknown context, unsupported setting);
// each names the file, the cause and the way out. Nothing secret is ever part of a message.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "http/client.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::k8s {

struct ExecPlugin {
  std::string api_version;  // client.authentication.k8s.io/v1 or v1beta1
  std::string command;      // absolute, or looked up in PATH
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  std::string install_hint;
  bool provide_cluster_info = false;
  std::string cluster_info_json;  // spec.cluster of the ExecCredential handed to the plugin, without the CA
  enum class InteractiveMode { never, if_available, always } interactive_mode = InteractiveMode::never;
};

// A value that is either given inline or read from a file each time it is needed (files rotate). With both, the file is
// read, and `data` stands in until that has worked once, as with client-go.
struct Material {
  std::string data;
  std::string file;
  bool empty() const { return data.empty() && file.empty(); }
  bool operator==(const Material&) const = default;
};

struct Connection {
  http::Endpoint endpoint;
  std::optional<http::Proxy> proxy;
  std::string path_prefix;  // of the server URL
  Material ca;
  bool verify = true;
  std::string tls_server_name;
  Material client_cert;
  Material client_key;
  Material token;  // bearer
  // Of an id-token that something else renews (auth-provider oidc): it is of no use any more from then on.
  std::optional<WallTime> token_expires;
  std::string username, password;  // basic
  std::optional<ExecPlugin> exec;
  std::string impersonate_user;
  std::vector<std::string> impersonate_groups;
  std::string impersonate_uid;
  std::vector<std::pair<std::string, std::string>> impersonate_extra;
  std::string default_namespace = "default";
  bool of_a_pod = false;  // the ServiceAccount's of the pod that this runs in
  std::string origin;     // "kubeconfig /home/me/.kube/config, context prod" — for messages
};

// kubectl's connection flags; empty means not given.
struct ConnectionFlags {
  std::string kubeconfig, context, cluster, user, ns, server, token, certificate_authority, client_certificate,
      client_key;
  std::string tls_server_name, as, as_uid, username, password;
  std::vector<std::string> as_groups;
  std::vector<std::pair<std::string, std::string>> as_user_extra;
  bool insecure_skip_tls_verify = false;
};

// What discovery may look at; passed in so that tests need no environment.
struct Environment {
  std::map<std::string, std::string> variables;
  std::string home;
  std::string service_account_dir = "/var/run/secrets/kubernetes.io/serviceaccount";
  static Environment of_process();
  std::string get(const std::string& name) const;
};

// kubectl's order: --kubeconfig, $KUBECONFIG (merged), ~/.kube/config, in-cluster; flags override what was found.
Result<Connection> discover(const ConnectionFlags& flags, const Environment& environment);
// An agent's order: --kubeconfig, $KUBECONFIG, in-cluster, the first of `kubelet_files` that exists. Nobody's
// ~/.kube/config: an agent that root starts by hand must not act as the administrator.
Result<Connection> discover_for_agent(const std::string& kubeconfig, const Environment& environment,
                                      const std::vector<std::string>& kubelet_files);
Result<Connection> in_cluster(const Environment& environment);
// One or several files, merged as kubectl does: the first to set a value wins. Missing files are skipped as long as one
// is there.
Result<Connection> load_kubeconfig(const std::vector<std::string>& files, const ConnectionFlags& flags);

}  // namespace haulout::k8s
