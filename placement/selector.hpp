// Label selectors, both as objects and as text. Pure.
#pragma once

#include <string_view>

#include "k8s/label_selector.hpp"
#include "placement/objects.hpp"

namespace haulout::placement {

class Selector {
 public:
  // Reads the object form: matchLabels and matchExpressions. Null matches nothing, {} matches everything. A value that
  // is not a string matches no label.
  static Selector from_object(const Json& selector);
  // Reads the text form of ?labelSelector=. Returns nothing if it cannot be parsed.
  static std::optional<Selector> from_text(std::string_view text);

  // Returns labels and values that every match must have. The selector may have further requirements.
  std::vector<std::pair<std::string, std::string>> demands() const;

  bool matches_labels(const Json& labels) const;
  bool matches(const Json& object) const { return matches_labels(at(object, "/metadata/labels")); }

 private:
  bool nothing_ = false;
  k8s::LabelSelector requirements_;
};

}  // namespace haulout::placement
