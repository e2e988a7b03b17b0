// Which objects a request or an object of the cluster means: label selectors in both forms and field selectors. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "k8s/label_selector.hpp"
#include "sim/objects.hpp"

namespace haulout::sim {

class Selector {
 public:
  // The object form: matchLabels and matchExpressions. Null matches nothing, {} everything.
  static Selector from_object(const Json& selector);
  // The text form of ?labelSelector=; nothing when it does not parse.
  static std::optional<Selector> from_text(std::string_view text);

  bool matches_labels(const Json& labels) const;
  bool matches(const Json& object) const { return matches_labels(at(object, "/metadata/labels")); }

 private:
  bool nothing_ = false;
  k8s::LabelSelector requirements_;
};

// ?fieldSelector=: equality only, as the API has it.
class FieldSelector {
 public:
  // On failure *problem is the server's message.
  static std::optional<FieldSelector> parse(std::string_view text, const ResourceInfo& info, std::string* problem);
  bool matches(const Json& object) const;

 private:
  struct Term {
    std::string pointer;
    std::string value;
    bool negated;
  };
  std::vector<Term> terms_;
};

// What a list or watch selects.
struct Selection {
  std::string resource;
  std::string ns;
  Selector labels = Selector::from_object(Json::object());
  FieldSelector fields;
  bool narrowed = false;  // by a field or label selector

  bool matches(const Json& object) const {
    return (ns.empty() || ns_of(object) == ns) && labels.matches(object) && fields.matches(object);
  }
};

}  // namespace haulout::sim
