#include "sim/texts.hpp"

#include "sim/json_text.hpp"

namespace haulout::sim {

const std::string& Texts::of(const Object& object) {
  const auto known = entries_.find(object.get());
  if (known != entries_.end()) return known->second.text;
  if (entries_.size() >= most_) entries_.clear();
  std::string text = form_ == Form::item ? item_text(*object) : json_text(*object);
  return entries_.emplace(object.get(), Entry{object, std::move(text)}).first->second.text;
}

}  // namespace haulout::sim
