// Label selectors and field selectors, by which a request or another object selects objects. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "placement/selector.hpp"
#include "sim/objects.hpp"

namespace haulout::sim {

using placement::Selector;

// The query option ?fieldSelector=. As in the API, it compares fields only for equality or inequality.
class FieldSelector {
 public:
  // Parses the selector. If it is invalid, returns nullopt and sets *problem to the real server's message.
  static std::optional<FieldSelector> parse(std::string_view text, const ResourceInfo& info, std::string* problem);
  bool matches(const Json& object) const;
  // Returns the value that the field at the JSON pointer must have; nullopt if the selector requires none.
  std::optional<std::string> demand(std::string_view pointer) const;

 private:
  struct Term {
    std::string pointer;
    std::string value;
    bool negated;
  };
  std::vector<Term> terms_;
};

// The objects that a list or watch selects.
struct Selection {
  std::string resource;
  std::string ns;
  Selector labels = Selector::from_object(Json::object());
  FieldSelector fields;
  bool narrowed = false;  // true if there is a field or label selector

  bool matches(const Json& object) const {
    return (ns.empty() || ns_of(object) == ns) && labels.matches(object) && fields.matches(object);
  }
};

}  // namespace haulout::sim
