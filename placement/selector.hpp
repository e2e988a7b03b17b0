// Label selectors in both forms: as objects have them, and as text. Pure.
#pragma once

#include <string_view>

#include "k8s/label_selector.hpp"
#include "placement/objects.hpp"

namespace haulout::placement {

class Selector {
 public:
  // The object form: matchLabels and matchExpressions. Null matches nothing, {} everything. A value that is no
  // string is no label's.
  static Selector from_object(const Json& selector);
  // The text form of ?labelSelector=; nothing when it does not parse.
  static std::optional<Selector> from_text(std::string_view text);

  // Labels and values that everything it matches has; there may be more to it.
  std::vector<std::pair<std::string, std::string>> demands() const;

  bool matches_labels(const Json& labels) const;
  bool matches(const Json& object) const { return matches_labels(at(object, "/metadata/labels")); }

 private:
  bool nothing_ = false;
  k8s::LabelSelector requirements_;
};

}  // namespace haulout::placement
