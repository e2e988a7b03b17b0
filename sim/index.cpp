#include "sim/index.hpp"

#include "sim/selectors.hpp"

namespace haulout::sim {
namespace {

// One of the labels that the budget's selector demands; any of them is enough to find the budget.
std::string demand_of(const Json& budget) {
  const auto demands = Selector::from_object(at(budget, "/spec/selector")).demands();
  return demands.empty() ? std::string() : label_term(demands.front().first, demands.front().second);
}

}  // namespace

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

void Index::change(const Key& key, const Object& before, const Object& after) {
  std::vector<Term> terms = terms_of(key, after);
  for (const Term& term : terms_of(key, before)) {
    const auto found = objects_.find(term);
    if (found == objects_.end() || std::count(terms.begin(), terms.end(), term) > 0) continue;
    found->second.erase(key);
    if (found->second.empty()) objects_.erase(found);
  }
  for (Term& term : terms) objects_[std::move(term)].insert_or_assign(key, after);
}

const Index::Objects& Index::find(By by, const std::string& value) const {
  static const Objects nothing;
  const auto found = objects_.find({by, value});
  return found == objects_.end() ? nothing : found->second;
}

}  // namespace haulout::sim
