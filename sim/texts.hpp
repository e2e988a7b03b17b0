// A cache of objects as JSON text. The text is made once for each state of an object, because lists and watches send
// the same states many times. No I/O.
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
  explicit Texts(Form form) : form_(form) {}

  // Returns the JSON text of the object. The reference is valid until the next call.
  const std::string& of(const Object& object);

 private:
  struct Entry {
    Object object;  // kept, so that no other object can get its address, the key of this entry
    std::string text;
  };
  static constexpr std::size_t most = 500;
  Form form_;
  std::unordered_map<const Json*, Entry> entries_;
};

}  // namespace haulout::sim
