#include "sim/store.hpp"

#include <fmt/format.h>

#include "k8s/codec.hpp"

namespace haulout::sim {

Object Store::get(const Key& key) const {
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : found->second;
}

std::vector<Object> Store::list(std::string_view resource, std::string_view ns) const {
  std::vector<Object> result;
  for (auto entry = objects_.lower_bound(Key{std::string(resource), std::string(ns), {}}); entry != objects_.end();
       ++entry) {
    if (entry->first.resource != resource || (!ns.empty() && entry->first.ns != ns)) break;
    result.push_back(entry->second);
  }
  return result;
}

std::string Store::new_uid() {
  const std::uint64_t high = rng_.next(), low = rng_.next();
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff, high & 0xfff,
                     0x8000 | ((low >> 48) & 0x3fff), low & 0xffff'ffff'ffff);
}

void Store::record(ChangeType type, Key key, Object object, Object before) {
  history_.push_back({type, revision_, clock_.now(), std::move(key), std::move(object), std::move(before)});
  if (history_.size() > longest_history) {
    history_start_ = history_.front().revision;
    history_.pop_front();
  }
  const Change change = history_.back();
  for (const auto& listener : listeners_) listener(change);
}

Object Store::create(std::string_view resource, Json object) {
  const ResourceInfo* info = find_resource(resource);
  Json& metadata = object["metadata"];
  Key key{std::string(resource), info->namespaced ? metadata.value("namespace", "default") : "",
          metadata.value("name", "")};
  if (objects_.count(key)) return nullptr;
  object["kind"] = info->kind;
  object["apiVersion"] = info->api_version();
  if (info->namespaced) metadata["namespace"] = key.ns;
  if (!metadata.contains("uid")) metadata["uid"] = new_uid();
  if (!metadata.contains("creationTimestamp")) metadata["creationTimestamp"] = k8s::format_time(clock_.wall_now());
  if (!metadata.contains("generation")) metadata["generation"] = 1;
  metadata["resourceVersion"] = std::to_string(++revision_);
  auto stored = std::make_shared<const Json>(std::move(object));
  objects_.emplace(key, stored);
  record(ChangeType::added, std::move(key), stored, nullptr);
  return stored;
}

Object Store::update(const Key& key, Json object) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return nullptr;
  Object before = found->second;
  object["metadata"]["resourceVersion"] = before->at("metadata").at("resourceVersion");
  if (object == *before) return before;
  // The last finalizer of an object that only waited for it: storage drops the object, and the event shows it as it
  // was.
  if (terminating(object) && has_finalizers(*before) && !has_finalizers(object) &&
      number(object, "/metadata/deletionGracePeriodSeconds") == 0)
    return remove(key);
  if (at(object, "/spec") != at(*before, "/spec") && key.resource != "pods" && key.resource != "nodes")
    object["metadata"]["generation"] = number(*before, "/metadata/generation", 1) + 1;
  object["metadata"]["resourceVersion"] = std::to_string(++revision_);
  auto stored = std::make_shared<const Json>(std::move(object));
  found->second = stored;
  record(ChangeType::modified, key, stored, before);
  return stored;
}

Object Store::modify(const Key& key, const std::function<void(Json&)>& change) {
  const Object before = get(key);
  if (!before) return nullptr;
  Json object = *before;
  change(object);
  return update(key, std::move(object));
}

Object Store::remove(const Key& key) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return nullptr;
  const Object before = found->second;
  Json last = *before;
  last["metadata"]["resourceVersion"] = std::to_string(++revision_);
  auto stored = std::make_shared<const Json>(std::move(last));
  objects_.erase(found);
  record(ChangeType::deleted, key, stored, before);
  return stored;
}

void Store::restore(std::uint64_t revision) {
  while (!history_.empty() && history_.back().revision > revision) {
    const Change& change = history_.back();
    if (change.before)
      objects_[change.key] = change.before;
    else
      objects_.erase(change.key);
    history_.pop_back();
  }
  revision_ = revision;
  forget_history();
}

}  // namespace haulout::sim
