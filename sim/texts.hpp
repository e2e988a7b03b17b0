// Objects as JSON text, made once for each state of an object: lists, watches and reads give out the same ones again
// and again.
#pragma once

#include <string>
#include <unordered_map>

#include "sim/objects.hpp"

namespace haulout::sim {

class Texts {
 public:
  enum class Form {
    whole,
    item,  // as a list carries it: without kind and apiVersion
  };
  explicit Texts(Form form) : form_(form) {}

  // Valid until the next call.
  const std::string& of(const Object& object);

 private:
  struct Entry {
    Object object;  // kept, so that no other object takes its address
    std::string text;
  };
  static constexpr std::size_t most = 500;
  Form form_;
  std::unordered_map<const Json*, Entry> entries_;
};

}  // namespace haulout::sim
