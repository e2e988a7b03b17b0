#include "tests/fuzz/whole.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  for (const char* kind : {"Deployment", "ReplicaSet", "StatefulSet", "Scale"})
    is_whole(k8s::decode_workload(input, kind));
  const auto scalable = k8s::decode_scalable(input);
  if (!scalable) return;
  for (const auto& [kind, resource] : *scalable) must(!kind.empty() && !resource.empty(), "a kind and its resource");
}

static const Target target("workloads", one);

}  // namespace haulout::fuzz
