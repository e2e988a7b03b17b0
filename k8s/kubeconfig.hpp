// The kubeconfig file as data: decoding, merging, and the choice of a Connection from it. Pure: no file is read here.
// Failures are Errc::unavailable with the file, the cause and the way out, and hold nothing secret.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "k8s/credentials.hpp"

namespace haulout::k8s {

struct KubeconfigCluster {
  std::string file;  // where it was read, for messages
  std::string server;
  std::string tls_server_name;
  std::string proxy_url;
  std::string certificate_authority;       // absolute path
  std::string certificate_authority_data;  // base64
  bool insecure_skip_tls_verify = false;
  bool disable_compression = false;
  std::string exec_config_json;  // the extension that is meant for exec plugins
};

struct KubeconfigExec {
  std::string api_version, command, install_hint, interactive_mode;
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  bool provide_cluster_info = false;
};

struct KubeconfigUser {
  std::string file;
  std::string client_certificate, client_certificate_data;
  std::string client_key, client_key_data;
  std::string token, token_file;
  std::string username, password;
  std::string as, as_uid;
  std::vector<std::string> as_groups;
  std::vector<std::pair<std::string, std::string>> as_user_extra;
  std::string auth_provider;  // its name
  std::string id_token;       // of auth-provider oidc
  std::optional<WallTime> id_token_expires;
  std::optional<KubeconfigExec> exec;
};

struct KubeconfigContext {
  std::string file;
  std::string cluster, user, ns;
};

struct Kubeconfig {
  std::vector<std::string> files;
  std::string current_context;
  std::map<std::string, KubeconfigCluster> clusters;
  std::map<std::string, KubeconfigUser> users;
  std::map<std::string, KubeconfigContext> contexts;

  bool empty() const { return current_context.empty() && clusters.empty() && users.empty() && contexts.empty(); }
};

// YAML or JSON. Relative paths in it become absolute, seen from the directory of `file`. An empty text is an empty
// kubeconfig; unknown fields are ignored.
Result<Kubeconfig> decode_kubeconfig(std::string_view text, const std::string& file);
// What `into` has already set stays; entries of the maps are taken whole or not at all.
void merge_kubeconfig(Kubeconfig& into, Kubeconfig from);
// What a plugin with provideClusterInfo is told, without the CA.
std::string cluster_info_json(const KubeconfigCluster& cluster);

// The context, cluster and user that kubectl would choose, with the flags applied.
Result<Connection> connection_of(const Kubeconfig& config, const ConnectionFlags& flags);
// Flags on top of a connection that came from elsewhere (in-cluster).
Result<> apply_flags(Connection& connection, const ConnectionFlags& flags);

}  // namespace haulout::k8s
