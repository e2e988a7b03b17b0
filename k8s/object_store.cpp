#include "k8s/object_store.hpp"

#include <algorithm>

#include "k8s/list_budget.hpp"
#include "k8s/objects.hpp"

namespace haulout::k8s {
namespace {

constexpr std::size_t remembered_deletions = 1024;  // limit, to bound the memory; at the limit all are forgotten

template <class T>
std::pair<std::string_view, std::string_view> name_of(const T& object) {
  if constexpr (requires { object.ns; }) {
    return {object.name, object.ns};
  } else {
    return {object.name, {}};
  }
}

}  // namespace

template <class T>
std::size_t ObjectStore<T>::HashOfName::operator()(Place one) const {
  return (*this)(name_of(one->second));
}

template <class T>
bool ObjectStore<T>::EqualNames::operator()(Place one, Place other) const {
  return name_of(one->second) == name_of(other->second);
}

template <class T>
bool ObjectStore<T>::EqualNames::operator()(Place one, const Name& name) const {
  return name_of(one->second) == name;
}

template <class T>
void ObjectStore<T>::put(T object) {
  const auto deletion = deleted_.find(object.uid);
  if (deletion != deleted_.end() && !is_older(deletion->second, object.resource_version)) return;
  keep(std::move(object), Tell::changes);
}

template <class T>
void ObjectStore<T>::erase(const std::string& uid, const std::string& resource_version) {
  if (deleted_.size() >= remembered_deletions) deleted_.clear();
  std::string& deletion = deleted_[uid];
  if (is_older(deletion, resource_version)) deletion = resource_version;
  drop(uid);
}

template <class T>
void ObjectStore<T>::heard_of(const std::string& uid) {
  if (listening_ > 0) heard_.insert(uid);
}

template <class T>
void ObjectStore<T>::replace(std::vector<T> listed) {
  take_over(std::move(listed), {}, Tell::changes);
  deleted_.clear();
}

template <class T>
void ObjectStore<T>::overlay(std::vector<T> listed) {
  for (const T& object : listed)
    if (!heard_.contains(object.uid)) deleted_.erase(object.uid);
  take_over(std::move(listed), heard_, Tell::all);
}

template <class T>
void ObjectStore<T>::take_over(std::vector<T> listed, const std::set<std::string>& but, Tell tell) {
  std::set<std::string> uids;
  if (!objects_.empty())
    for (const T& object : listed) uids.insert(object.uid);
  std::vector<std::string> missing;
  for (const auto& [uid, object] : objects_)
    if (!uids.contains(uid) && !but.contains(uid)) missing.push_back(uid);
  for (const std::string& uid : missing) drop(uid);
  for (T& object : listed) {
    if (but.contains(object.uid)) continue;
    // Skips the object if the store has another one of this name that has appeared in a watch event since the list was
    // requested: that one is probably newer. If it is not, the watch delivers this object soon.
    const auto namesake = but.empty() ? names_.end() : names_.find(name_of(object));
    if (namesake != names_.end() && but.contains((*namesake)->first)) continue;
    keep(std::move(object), tell);
  }
}

// Adds or updates an object. The pages of a list can be of different moments, so that a list contains an object and its
// successor of the same name. The one that comes later in the list stays.
template <class T>
void ObjectStore<T>::keep(T object, Tell tell) {
  auto known = objects_.find(object.uid);
  if (known == objects_.end()) drop_namesakes(object);
  if (wanted_ && !wanted_(object)) return drop(object.uid);
  // Compares the whole objects, not only the resourceVersion: an etcd that was restored from a backup uses the same
  // resourceVersions again, for other states of the objects.
  if (known != objects_.end() && known->second == object && tell == Tell::changes) return;
  news_ = true;
  memory_ += memory_of(object);
  if (known == objects_.end()) {
    auto uid = object.uid;
    known = objects_.emplace(std::move(uid), std::move(object)).first;
    names_.insert(known);
  } else {
    // The API allows no change of a name. But a server that sends one must not break `names_`.
    memory_ -= memory_of(known->second);
    const bool renamed = name_of(known->second) != name_of(object);
    if (renamed) forget_name(known);
    known->second = std::move(object);
    if (renamed) names_.insert(known);
  }
  on_change_(known->first, &known->second);
}

template <class T>
void ObjectStore<T>::drop(const std::string& uid) {
  const auto known = objects_.find(uid);
  if (known == objects_.end()) return;
  memory_ -= memory_of(known->second);
  forget_name(known);
  objects_.erase(known);
  news_ = true;
  on_change_(uid, nullptr);
}

template <class T>
void ObjectStore<T>::forget_name(Place known) {
  const auto [begin, end] = names_.equal_range(known);
  names_.erase(std::find(begin, end, known));
}

template <class T>
void ObjectStore<T>::drop_namesakes(const T& object) {
  for (auto before = names_.find(name_of(object)); before != names_.end(); before = names_.find(name_of(object)))
    drop(std::string((*before)->first));
}

template class ObjectStore<Pod>;
template class ObjectStore<Replica>;
template class ObjectStore<Node>;
template class ObjectStore<PodDisruptionBudget>;
template class ObjectStore<VolumeAttachment>;
template class ObjectStore<Lease>;
template class ObjectStore<ConfigMap>;
template class ObjectStore<EvictionRequest>;
template class ObjectStore<EvictionProcess>;

}  // namespace haulout::k8s
