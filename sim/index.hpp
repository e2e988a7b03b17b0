// Which objects say a thing, kept up with every change, so that nobody has to look through all of them for it. Pure.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/objects.hpp"

namespace haulout::sim {

enum class By {
  label,       // "key=value": every object by each of its labels
  controller,  // the UID of the owner that controls it, empty without one: pods, ReplicaSets
  node,        // spec.nodeName, empty while it has none: pods
  claim,       // the name of a PersistentVolumeClaim that it mounts: pods
  disrupted,   // "True": pods with condition DisruptionTarget
  demand,      // a label that each of its pods has, as in `label`, empty if there is none: PodDisruptionBudgets
  claim_ref,   // "namespace/name" of the claim that it is bound to: PersistentVolumes
  volume,      // the PersistentVolume that it attaches: VolumeAttachments
};

std::string label_term(const std::string& key, const std::string& value);

class Index {
 public:
  using Objects = std::map<Key, Object>;

  // The object was `before` and is `after`; null: it was not, or is no longer, there.
  void change(const Key& key, const Object& before, const Object& after);
  const Objects& find(By by, const std::string& value) const;

 private:
  using Term = std::pair<By, std::string>;
  static std::vector<Term> terms_of(const Key& key, const Object& object);

  std::map<Term, Objects> objects_;
};

}  // namespace haulout::sim
