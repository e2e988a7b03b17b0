// Secondary index over the objects in the store, updated with every write, so that a search by label, controller, node
// or the like needs no full scan. Each enumerator of By names one search: the form of the searched value, and the kinds
// that it finds. Pure.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/objects.hpp"

namespace haulout::sim {

enum class By {
  label,       // "key=value": all objects, each under every of its labels
  controller,  // UID of the controlling owner; empty if there is none: pods, ReplicaSets
  node,        // spec.nodeName; empty finds the unbound pods: pods
  claim,       // name of a mounted PersistentVolumeClaim: pods
  disrupted,   // "True": pods whose condition DisruptionTarget is True
  // One "key=value" that the selector demands; empty if it demands none: PodDisruptionBudgets.
  demand,
  claim_ref,  // "namespace/name" of the claim in spec.claimRef: PersistentVolumes
  volume,     // name of the attached PersistentVolume: VolumeAttachments
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
