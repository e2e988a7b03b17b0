// Parses label selectors, from JSON objects and from text, and matches labels against them. Pure.
#pragma once

#include <string_view>

#include "k8s/label_selector.hpp"
#include "placement/objects.hpp"

namespace haulout::placement {

class Selector {
 public:
  // Parses the object form: matchLabels and matchExpressions. Null matches nothing, {} matches everything. A value that
  // is not a string matches no label.
  static Selector from_object(const Json& selector);
  // Parses the text form of ?labelSelector=. Returns nullopt if it is not valid.
  static std::optional<Selector> from_text(std::string_view text);

  // Returns labels, with their values, that every matching object has. The selector may have further requirements.
  std::vector<std::pair<std::string, std::string>> demands() const;

  bool matches_everything() const { return !nothing_ && requirements_.empty(); }
  bool matches_labels(const Json& labels) const;
  bool matches(const Json& object) const { return matches_labels(at(object, "/metadata/labels")); }

 private:
  bool nothing_ = false;
  k8s::LabelSelector requirements_;
};

}  // namespace haulout::placement
