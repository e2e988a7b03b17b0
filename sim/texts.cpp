#include "sim/texts.hpp"

namespace haulout::sim {
namespace {

std::string as_item(const Json& object) {
  std::string text = "{";
  for (const auto& [key, value] : object.items()) {
    if (key == "kind" || key == "apiVersion") continue;
    if (text.size() > 1) text += ',';
    text += Json(key).dump() + ':' + value.dump();
  }
  return text + '}';
}

}  // namespace

const std::string& Texts::of(const Object& object) {
  const auto known = entries_.find(object.get());
  if (known != entries_.end()) return known->second.text;
  if (entries_.size() >= most) entries_.clear();
  std::string text = form_ == Form::item ? as_item(*object) : object->dump();
  return entries_.emplace(object.get(), Entry{object, std::move(text)}).first->second.text;
}

}  // namespace haulout::sim
