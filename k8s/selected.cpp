#include "k8s/selected.hpp"

#include <fmt/format.h>

#include "k8s/codec_objects.hpp"
#include "k8s/label_selector.hpp"
#include "k8s/list_budget.hpp"

namespace haulout::k8s {
namespace {

constexpr std::string_view by_name = "metadata.name=";
constexpr std::string_view by_node = "spec.nodeName=";

Error about_others(std::string_view kind, const std::string& name, std::string_view field, const std::string& value,
                   std::string_view wanted) {
  return Error(Errc::decode, fmt::format("the server's answer contains other objects: {} {} has {}{}, requested was "
                                         "{}; does a proxy in between ignore field selectors?",
                                         kind, name, field, value.empty() ? "(none)" : value, wanted));
}

}  // namespace

template <class T>
Result<> check_selected(std::string_view field_selector, const T& object) {
  if (field_selector.starts_with(by_name)) {
    const auto wanted = field_selector.substr(by_name.size());
    if (object.name != wanted) return about_others(codec::kind_of<T>, object.name, by_name, object.name, wanted);
  }
  if constexpr (requires { object.node_name; }) {
    if (field_selector.starts_with(by_node)) {
      const auto wanted = field_selector.substr(by_node.size());
      if (object.node_name != wanted)
        return about_others(codec::kind_of<T>, object.name, by_node, object.node_name, wanted);
    }
  }
  return {};
}

Result<> check_labels(std::string_view label_selector, const std::vector<Node>& nodes) {
  const auto selector = parse_label_selector(label_selector);
  if (!selector) return {};
  for (const Node& node : nodes)
    if (!selector->matches(node.labels) && !labels_may_be_cut(node))
      return Error(Errc::decode, fmt::format("the server's answer contains other objects: Node {} lacks the requested "
                                             "labels ({}); does a proxy in between ignore label selectors?",
                                             node.name, label_selector));
  return {};
}

Result<Node> only_named(std::string_view name, Result<Node> answer) {
  if (!answer || answer->name == name) return answer;
  return about_others(codec::kind_of<Node>, answer->name, by_name, answer->name, name);
}

template Result<> check_selected(std::string_view, const Pod&);
template Result<> check_selected(std::string_view, const Node&);
template Result<> check_selected(std::string_view, const PodDisruptionBudget&);
template Result<> check_selected(std::string_view, const VolumeAttachment&);
template Result<> check_selected(std::string_view, const Lease&);
template Result<> check_selected(std::string_view, const ConfigMap&);

}  // namespace haulout::k8s
