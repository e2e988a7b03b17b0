#include "sim/store.hpp"

#include <fmt/format.h>

#include "k8s/codec.hpp"

namespace haulout::sim {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(','), text.size());
    const auto part = trimmed(text.substr(0, end));
    if (!part.empty()) parts.push_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// Returns one of the labels that the budget's selector requires, which is enough to find the budget. Returns an empty
// string if the selector requires none.
std::string demand_of(const Json& budget) {
  const auto demands = Selector::from_object(at(budget, "/spec/selector")).demands();
  return demands.empty() ? std::string() : label_term(demands.front().first, demands.front().second);
}

}  // namespace

namespace {
// Returns the JSON pointer of a field label; empty if field selectors of the resource do not support it.
std::string field_pointer(std::string_view label, const ResourceInfo& info) {
  if (label == "metadata.name") return "/metadata/name";
  if (label == "metadata.namespace") return "/metadata/namespace";
  if (info.resource == "pods" && label == "spec.nodeName") return "/spec/nodeName";
  if (info.resource == "pods" && label == "status.phase") return "/status/phase";
  return {};
}
}  // namespace

std::optional<FieldSelector> FieldSelector::parse(std::string_view text, const ResourceInfo& info,
                                                  std::string* problem) {
  FieldSelector result;
  for (const auto term : split(text)) {
    const auto equals = term.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      *problem = fmt::format("invalid selector: '{}'; can't understand '{}'", text, term);
      return std::nullopt;
    }
    const bool negated = term[equals - 1] == '!';
    const auto label = term.substr(0, equals - (negated ? 1 : 0));
    std::string_view value = term.substr(equals + 1);
    if (!value.empty() && value.front() == '=') value.remove_prefix(1);
    std::string pointer = field_pointer(label, info);
    if (pointer.empty()) {
      *problem =
          info.resource == "pods"
              ? fmt::format("field label not supported: {}", label)
              : fmt::format("\"{}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                            label);
      return std::nullopt;
    }
    result.terms_.push_back({std::move(pointer), std::string(value), negated});
  }
  return result;
}

std::optional<std::string> FieldSelector::demand(std::string_view pointer) const {
  for (const Term& term : terms_)
    if (term.pointer == pointer && !term.negated) return term.value;
  return std::nullopt;
}

bool FieldSelector::matches(const Json& object) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    return is_text(object, term.pointer.c_str(), term.value) != term.negated;
  });
}

std::string label_term(const std::string& key, const std::string& value) {
  return key + '=' + value;
}

std::vector<Index::Term> Index::terms_of(const Key& key, const Object& object) {
  std::vector<Term> terms;
  if (!object) return terms;
  const std::string& resource = key.resource;
  const Json& labels = at(*object, "/metadata/labels");
  if (labels.is_object())
    for (const auto& [label, value] : labels.items())
      if (value.is_string()) terms.emplace_back(By::label, label_term(label, value.get<std::string>()));
  if (resource == "pods" || resource == "replicasets")
    terms.emplace_back(By::controller, text(controller_of(*object), "/uid"));
  if (resource == "pods") {
    terms.emplace_back(By::node, text(*object, "/spec/nodeName"));
    for (std::string& claim : claims_of(*object)) terms.emplace_back(By::claim, std::move(claim));
    if (text(condition(*object, "DisruptionTarget"), "/status") == "True") terms.emplace_back(By::disrupted, "True");
  }
  if (resource == "poddisruptionbudgets") terms.emplace_back(By::demand, demand_of(*object));
  if (resource == "persistentvolumes")
    terms.emplace_back(By::claim_ref,
                       text(*object, "/spec/claimRef/namespace") + '/' + text(*object, "/spec/claimRef/name"));
  if (resource == "volumeattachments")
    terms.emplace_back(By::volume, text(*object, "/spec/source/persistentVolumeName"));
  return terms;
}

namespace {

// Returns true if the index has the same terms for both states of an object.
bool has_same_terms(const std::string& resource, const Json& before, const Json& after) {
  const auto same = [&](const char* path) { return at(before, path) == at(after, path); };
  if (!same("/metadata/labels")) return false;
  if (resource == "pods")
    return same("/metadata/ownerReferences") && same("/spec/nodeName") && same("/spec/volumes") &&
           at(condition(before, "DisruptionTarget"), "/status") == at(condition(after, "DisruptionTarget"), "/status");
  if (resource == "replicasets") return same("/metadata/ownerReferences");
  return same("/spec/selector") && same("/spec/claimRef") && same("/spec/source");
}

}  // namespace

void Index::change(const Entry& entry, const Object& before, const Object& after) {
  const Key& key = entry.first;
  if (before && after && has_same_terms(key.resource, *before, *after)) return;
  const std::vector<Term> terms = terms_of(key, after), terms_before = terms_of(key, before);
  const auto has = [](const std::vector<Term>& all, const Term& term) {
    return std::find(all.begin(), all.end(), term) != all.end();
  };
  for (const Term& term : terms_before) {
    const auto found = found_.find(term);
    if (found == found_.end() || has(terms, term)) continue;
    const auto of_namespace = found->second.by_namespace.find(key.ns);
    if (of_namespace == found->second.by_namespace.end()) continue;
    found->second.size -= of_namespace->second.erase(&entry);
    if (of_namespace->second.empty()) found->second.by_namespace.erase(of_namespace);
    if (found->second.size == 0) found_.erase(found);
  }
  for (const Term& term : terms) {
    if (has(terms_before, term)) continue;
    Found& found = found_[term];
    found.size += found.by_namespace[key.ns].insert(&entry).second ? 1 : 0;
  }
}

const Index::Found& Index::find(By by, const std::string& value) const {
  static const Found nothing;
  const auto found = found_.find({by, value});
  return found == found_.end() ? nothing : found->second;
}

Object Store::get(const Key& key) const {
  const auto found = entries_.find(&key);
  return found == entries_.end() ? nullptr : found->second->second;
}

std::vector<Object> Store::list(std::string_view resource, std::string_view ns) const {
  std::vector<Object> result;
  const auto belongs = [&](const Key& key) { return key.resource == resource && (ns.empty() || key.ns == ns); };
  for (auto place = objects_.lower_bound(Key{std::string(resource), std::string(ns), {}});
       place != objects_.end() && belongs(place->first); ++place)
    result.push_back(place->second);
  listed_ += result.size();
  return result;
}

std::vector<Object> Store::in(const Index::Found& found, std::string_view resource, std::string_view ns) const {
  std::vector<const Index::Entry*> entries;
  const auto collect = [&](const std::unordered_set<const Index::Entry*>& of_namespace) {
    for (const Index::Entry* entry : of_namespace)
      if (entry->first.resource == resource) entries.push_back(entry);
  };
  if (ns.empty()) {
    for (const auto& [name, of_namespace] : found.by_namespace) collect(of_namespace);
  } else if (const auto of_namespace = found.by_namespace.find(ns); of_namespace != found.by_namespace.end()) {
    collect(of_namespace->second);
  }
  std::ranges::sort(entries, {}, [](const Index::Entry* entry) -> const Key& { return entry->first; });
  std::vector<Object> result;
  result.reserve(entries.size());
  for (const Index::Entry* entry : entries) result.push_back(entry->second);
  listed_ += result.size();
  return result;
}

std::vector<Object> Store::list(std::string_view resource, std::string_view ns, By by, const std::string& value) const {
  return in(index_.find(by, value), resource, ns);
}

std::vector<Object> Store::candidates(const Selection& selection) const {
  const ResourceInfo* info = find_resource(selection.resource);
  const auto name = selection.fields.demand("/metadata/name");
  if (name && info && info->namespaced == !selection.ns.empty()) {
    const Object object = get({selection.resource, selection.ns, *name});
    listed_ += object ? 1 : 0;
    return object ? std::vector{object} : std::vector<Object>();
  }
  const Index::Found* fewest = nullptr;
  const auto narrow = [&](By by, const std::string& value) {
    const Index::Found& found = index_.find(by, value);
    if (found.size < (fewest ? fewest->size : objects_.size())) fewest = &found;
  };
  for (const auto& [key, value] : selection.labels.demands()) narrow(By::label, label_term(key, value));
  if (const auto node = selection.fields.demand("/spec/nodeName")) narrow(By::node, *node);
  return fewest ? in(*fewest, selection.resource, selection.ns) : list(selection.resource, selection.ns);
}

std::vector<Object> Store::select(const Selection& selection) const {
  std::vector<Object> objects = candidates(selection);
  if (!selection.is_whole()) std::erase_if(objects, [&](const Object& object) { return !selection.matches(*object); });
  return objects;
}

void Store::put(const Key& key, const Object& before, const Object& after) {
  auto found = entries_.find(&key);
  if (found == entries_.end()) {
    if (!after) return;
    const auto entry = objects_.try_emplace(key).first;
    found = entries_.emplace(&entry->first, entry).first;
  }
  const auto entry = found->second;
  index_.change(*entry, before, after);
  if (after) {
    entry->second = after;
  } else {
    entries_.erase(found);
    objects_.erase(entry);
  }
}

std::string Store::new_uid() {
  const std::uint64_t high = rng_.next(), low = rng_.next();
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff, high & 0xfff,
                     0x8000 | ((low >> 48) & 0x3fff), low & 0xffff'ffff'ffff);
}

void Store::record(ChangeType type, Key key, Object object, Object before) {
  history_.push_back({type, revision_, clock_.now(), std::move(key), std::move(object), std::move(before), false});
  while (history_.size() > longest_history ||
         (history_.size() > enough_history_ && clock_.now() - history_.front().time > history_age_)) {
    history_start_ = history_.front().revision;
    history_.pop_front();
  }
  const Change& change = history_.back();
  for (const auto& listener : listeners_) listener(change);
}

Object Store::create(std::string_view resource, Json object) {
  const ResourceInfo* info = find_resource(resource);
  Key key{std::string(resource), info->namespaced ? object["metadata"].value("namespace", "default") : "",
          object["metadata"].value("name", "")};
  if (entries_.contains(&key)) return nullptr;
  object["kind"] = info->kind;
  object["apiVersion"] = info->api_version();
  Json& metadata = object["metadata"];
  if (info->namespaced) metadata["namespace"] = key.ns;
  if (metadata.value("uid", "").empty()) metadata["uid"] = new_uid();
  if (!metadata.contains("creationTimestamp")) metadata["creationTimestamp"] = k8s::format_time(clock_.wall_now());
  if (!metadata.contains("generation")) metadata["generation"] = 1;
  metadata["resourceVersion"] = std::to_string(++revision_);
  Object stored = object_from(std::move(object));
  put(key, nullptr, stored);
  record(ChangeType::added, std::move(key), stored, nullptr);
  return stored;
}

Object Store::update(const Key& key, Json object) {
  Object before = get(key);
  if (!before) return nullptr;
  object["metadata"]["resourceVersion"] = before->at("metadata").at("resourceVersion");
  if (object == *before) return before;
  // The last finalizer was removed from a terminating object: the real server removes the object, and its DELETED event
  // has the state before this update.
  if (terminating(object) && has_finalizers(*before) && !has_finalizers(object) &&
      number(object, "/metadata/deletionGracePeriodSeconds") == 0)
    return remove(key);
  if (key.resource != "pods" && key.resource != "nodes" && at(object, "/spec") != at(*before, "/spec"))
    object["metadata"]["generation"] = number(*before, "/metadata/generation", 1) + 1;
  object["metadata"]["resourceVersion"] = std::to_string(++revision_);
  Object stored = object_from(std::move(object));
  put(key, before, stored);
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
  const Object before = get(key);
  if (!before) return nullptr;
  Json last = *before;
  last["metadata"]["resourceVersion"] = std::to_string(++revision_);
  Object stored = object_from(std::move(last));
  put(key, before, nullptr);
  record(ChangeType::deleted, key, stored, before);
  return stored;
}

void Store::restore(std::uint64_t revision) {
  std::map<Key, Object> lost;
  while (!history_.empty() && history_.back().revision > revision) {
    const Change& change = history_.back();
    const Object now = get(change.key);
    lost.try_emplace(change.key, now);
    put(change.key, now, change.before);
    history_.pop_back();
  }
  revision_ = revision;
  forget_history();
  for (const auto& [key, before] : lost) tell_restored(key, before, get(key));
}

void Store::tell_restored(const Key& key, const Object& before, const Object& now) {
  const auto tell = [&](ChangeType type, const Object& object, const Object& earlier) {
    const Change change{type, revision_, clock_.now(), key, object, earlier, true};
    for (const auto& listener : listeners_) listener(change);
  };
  if (before == now) return;
  const bool same = before && now && before->at("metadata").at("uid") == now->at("metadata").at("uid");
  if (same) return tell(ChangeType::modified, now, before);
  if (before) tell(ChangeType::deleted, before, before);
  if (now) tell(ChangeType::added, now, nullptr);
}

}  // namespace haulout::sim
