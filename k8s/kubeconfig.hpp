// Decodes and merges the text of kubeconfig files, and makes a Connection from them. Pure: it reads no files. Fails
// with Errc::unavailable. The message has the file, the cause and the remedy, and contains no secrets.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "k8s/credentials.hpp"

namespace haulout::k8s {

struct KubeconfigCluster {
  std::string file;  // the file that the entry was read from, for messages
  std::string server;
  std::string tls_server_name;
  std::string proxy_url;
  std::string certificate_authority;       // absolute path
  std::string certificate_authority_data;  // base64
  bool insecure_skip_tls_verify = false;
  bool disable_compression = false;
  std::string exec_config_json;  // JSON of the extension that is meant for exec plugins
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
  std::string auth_provider;  // name of the auth-provider
  std::string id_token;       // the id-token of auth-provider oidc
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

// Decodes YAML or JSON. Relative paths become absolute, based on the directory of `file`. An empty text is an empty
// kubeconfig. Unknown fields are ignored.
Result<Kubeconfig> decode_kubeconfig(std::string_view text, const std::string& file);
// Adds the values of `from` that `into` does not have yet. An entry of the maps is added as a whole or not at all.
void merge_kubeconfig(Kubeconfig& into, Kubeconfig from);
// Returns the cluster information for a plugin with provideClusterInfo as JSON, without the CA.
std::string cluster_info_json(const KubeconfigCluster& cluster);

// Chooses context, cluster and user as kubectl does, and applies the flags.
Result<Connection> connection_of(const Kubeconfig& config, const ConnectionFlags& flags);
// Applies the flags to a connection. connection_of() does this itself; a connection of in_cluster() needs it.
Result<> apply_flags(Connection& connection, const ConnectionFlags& flags);

}  // namespace haulout::k8s
