// A cache of objects as JSON text. The text is made once for each state of an object, because answers, lists and
// watches send the same state many times. Pure; throws what json_text() throws.
#pragma once

#include <string>
#include <unordered_map>

#include "sim/objects.hpp"

namespace haulout::sim {

class Texts {
 public:
  enum class Form {
    whole,
    item,  // as an entry of a list: without kind and apiVersion
  };
  // `most`: how many texts are kept. A list of a large fleet has some thousand objects: if they do not all fit, every
  // list makes all texts anew.
  Texts(Form form, std::size_t most) : form_(form), most_(most) {}

  // Returns the JSON text of the object. The reference is valid until the next call.
  const std::string& of(const Object& object);

 private:
  struct Entry {
    Object object;  // owned, so that no other object gets its address, which is the key of this entry
    std::string text;
  };
  Form form_;
  std::size_t most_;
  std::unordered_map<const Json*, Entry> entries_;
};

}  // namespace haulout::sim
