#include "k8s/kubeconfig.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  auto config = k8s::decode_kubeconfig(input, "/home/me/.kube/config");
  if (!config) return must(!config.error().message().empty(), "an error says what it is");
  k8s::Kubeconfig merged;
  k8s::merge_kubeconfig(merged, *config);
  must(merged.current_context == config->current_context && merged.contexts.size() == config->contexts.size() &&
           merged.clusters.size() == config->clusters.size() && merged.users.size() == config->users.size(),
       "merged into nothing, a kubeconfig is itself");
  for (const auto& [name, cluster] : merged.clusters) std::ignore = k8s::cluster_info_json(cluster);
  const auto connection = k8s::connection_of(merged, {});
  if (connection) must(!connection->endpoint.host.empty(), "a connection leads somewhere");
}

static const Target target("kubeconfig", one);

}  // namespace haulout::fuzz
