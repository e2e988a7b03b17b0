// Secondary index over the store, updated with every write, so that a search by label, controller, node or the like
// needs no full scan. Pure.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/objects.hpp"

namespace haulout::sim {

enum class By {
  label,       // "key=value": all objects, once for each of their labels
  controller,  // UID of the controlling owner, empty without one: pods, ReplicaSets
  node,        // spec.nodeName, empty for an unbound pod: pods
  claim,       // name of a mounted PersistentVolumeClaim: pods
  disrupted,   // "True": pods whose condition DisruptionTarget is True
  demand,      // a label that the selector demands, as in `label`; empty without one: PodDisruptionBudgets
  claim_ref,   // "namespace/name" of the claim in spec.claimRef: PersistentVolumes
  volume,      // name of the attached PersistentVolume: VolumeAttachments
};

std::string label_term(const std::string& key, const std::string& value);

class Index {
 public:
  using Objects = std::map<Key, Object>;

  // Updates the index for a write that replaces `before` with `after`. `before` is null for a new object, `after` for a
  // deleted one.
  void change(const Key& key, const Object& before, const Object& after);
  const Objects& find(By by, const std::string& value) const;

 private:
  using Term = std::pair<By, std::string>;
  static std::vector<Term> terms_of(const Key& key, const Object& object);

  std::map<Term, Objects> objects_;
};

}  // namespace haulout::sim
