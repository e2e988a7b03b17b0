// Changes what people write to steer agents: one annotation of a Node, or one key of the ConfigMap `haulout`. Guarded
// by what was read; whoever writes in between makes it read again, until the deadline. Nothing is sent when it stands
// there already. Failures are those of the client. Cancellable.
#pragma once

#include <optional>
#include <string>

#include "k8s/client.hpp"
#include "retry/rng.hpp"

namespace haulout::cli {

inline constexpr std::string_view config_map_name = "haulout";

struct NodeChange {
  k8s::Node node;                     // as it is now
  std::optional<std::string> before;  // the value that stood there
  bool changed = false;
};
// No value: the annotation goes.
Task<NodeChange> change_annotation(k8s::Client& client, Rng& rng, std::string node, std::string key,
                                   std::optional<std::string> value, TimePoint deadline);

struct EntryChange {
  std::map<std::string, std::string> data;  // of the whole ConfigMap, as it is now
  std::optional<std::string> before;
  bool changed = false;
};
// No value: the key goes. A ConfigMap that is not there is created when there is a value.
Task<EntryChange> change_entry(k8s::Client& client, Rng& rng, std::string ns, std::string key,
                               std::optional<std::string> value, TimePoint deadline);

}  // namespace haulout::cli
