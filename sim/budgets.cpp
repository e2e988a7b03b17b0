#include "sim/budgets.hpp"

#include <algorithm>

#include "sim/selectors.hpp"

namespace haulout::sim {

std::vector<Object> pods_of_budget(const Store& store, const Json& budget) {
  Selection selection;
  selection.resource = "pods";
  selection.ns = ns_of(budget);
  selection.labels = Selector::from_object(at(budget, "/spec/selector"));
  return store.select(selection);
}

std::vector<Object> budgets_of_pod(const Store& store, const Json& pod) {
  const std::string ns = ns_of(pod);
  std::vector<Object> result;
  const auto collect = [&](const std::string& demand) {
    for (Object& budget : store.list("poddisruptionbudgets", ns, By::demand, demand))
      if (Selector::from_object(at(*budget, "/spec/selector")).matches(pod)) result.push_back(std::move(budget));
  };
  collect("");
  const Json& labels = at(pod, "/metadata/labels");
  if (labels.is_object())
    for (const auto& [key, value] : labels.items())
      if (value.is_string()) collect(label_term(key, value.get<std::string>()));
  std::sort(result.begin(), result.end(),
            [](const Object& one, const Object& other) { return name_of(*one) < name_of(*other); });
  return result;
}

}  // namespace haulout::sim
