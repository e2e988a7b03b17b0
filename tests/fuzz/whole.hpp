// Checks, with must(), what must hold for every object that a decoder accepts. No I/O.
#pragma once

#include "k8s/codec.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

template <class T>
void is_whole(const Result<T>& object) {
  if (object) must(!object->name.empty() && !object->uid.empty(), "an object has a name and a UID");
}

template <class T>
void are_whole(const Result<k8s::List<T>>& list) {
  if (!list) return;
  for (const T& item : list->items) must(!item.name.empty() && !item.uid.empty(), "an item has a name and a UID");
}

}  // namespace haulout::fuzz
