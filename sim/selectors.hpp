// Which objects a request or an object of the cluster means: label selectors in both forms and field selectors. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "placement/selector.hpp"
#include "sim/objects.hpp"

namespace haulout::sim {

using placement::Selector;

// ?fieldSelector=: equality only, as the API has it.
class FieldSelector {
 public:
  // On failure *problem is the server's message.
  static std::optional<FieldSelector> parse(std::string_view text, const ResourceInfo& info, std::string* problem);
  bool matches(const Json& object) const;
  // The value that everything it matches has there.
  std::optional<std::string> demand(std::string_view pointer) const;

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
