// Writes the objects by which people control agents: an annotation of a Node, or a key of the ConfigMap `haulout`. Each
// write carries the resourceVersion that was read, so that the server rejects it with 409 after a concurrent change.
// The function then reads again and retries until the deadline. It sends no write if the object already has the value.
// Fails with the errors of the client. Cancellable. Borrows the client and the random number generator.
#pragma once

#include <optional>
#include <string>

#include "k8s/client.hpp"
#include "k8s/objects.hpp"
#include "retry/rng.hpp"

namespace haulout::cli {

struct NodeChange {
  k8s::Node node;                     // the Node after the change
  std::optional<std::string> before;  // value of the annotation before the change; unset: it did not exist
  bool changed = false;
};
// Sets the annotation `key` of the Node, or removes it if `value` is unset.
Task<NodeChange> change_annotation(k8s::Client& client, Rng& rng, std::string node, std::string key,
                                   std::optional<std::string> value, TimePoint deadline);

struct EntryChange {
  std::map<std::string, std::string> data;  // all entries of the ConfigMap after the change
  std::optional<std::string> before;
  bool changed = false;
};
// Sets `key` in the ConfigMap `haulout` of the namespace `ns`, or removes it if `value` is unset. Creates the ConfigMap
// if it does not exist and `value` is set.
Task<EntryChange> change_entry(k8s::Client& client, Rng& rng, std::string ns, std::string key,
                               std::optional<std::string> value, TimePoint deadline);

// The two functions below return the merge patches of these changes (change_json.cpp). A patch contains the
// resourceVersion of the object that was read, so that the server rejects it with 409 if the object has changed. Pure.
//
// Returns a patch that sets the annotation `key` of the Node, or removes it if `value` is unset.
std::string annotation_patch(const k8s::Node& node, std::string_view key, const std::optional<std::string>& value);
// Returns a patch that sets `key` in the data of the ConfigMap, or removes it if `value` is unset.
std::string entry_patch(const k8s::ConfigMap& config_map, std::string_view key,
                        const std::optional<std::string>& value);

}  // namespace haulout::cli
