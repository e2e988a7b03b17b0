// Services: the struct, its place in the API and its decoder. Pure.
#pragma once

#include "k8s/label_selector.hpp"
#include "k8s/pod.hpp"

namespace haulout::k8s {

// A Service, and the pods to which it sends requests.
struct Service {
  std::string ns;
  std::string name;
  std::string uid;
  std::optional<LabelSelector> selector;  // absent if the endpoints of the Service are managed by other means

  std::string key() const { return ns + "/" + name; }
  bool selects(const Pod& pod) const { return pod.ns == ns && selector && selector->matches(pod.labels); }
};

template <>
struct Kind<Service> {
  static constexpr std::string_view name = "Service";
  static constexpr Api api{"v1", "services", Scope::namespaced, Names::of_objects, "Service", "Services"};
  static constexpr std::array<std::string_view, 1> dropped = {"managedFields"};

  // An empty selector is read as no selector.
  static void read(const codec::Object& json, Service& service) {
    codec::read_identity(json.object("metadata"), service);
    std::vector<LabelSelector::Requirement> requirements;
    for (auto& [key, value] : json.object("spec").strings("selector"))
      requirements.push_back({key, LabelSelector::Operator::in, {value}});
    if (!requirements.empty()) service.selector = LabelSelector(std::move(requirements));
  }
};

}  // namespace haulout::k8s
