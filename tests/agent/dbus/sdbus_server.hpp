// What differs between sdbus-c++ 1.2 (Debian 12) and 2.x (Debian 13) for services, in one form for both. Only the fake
// services of the tests offer objects on a bus. For clients see agent/dbus/sdbus_versions.hpp.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "agent/dbus/sdbus_versions.hpp"

namespace haulout::testing {

#ifdef HAULOUT_SDBUS_2

using PropertyName = sdbus::PropertyName;
using ErrorName = sdbus::Error::Name;

#else

using PropertyName = std::string;
using ErrorName = std::string;

#endif

inline sdbus::Error dbus_error(const char* name, const std::string& message) {
  return sdbus::Error(ErrorName(name), message);
}

// Declares what one interface of an object has. After the last interface, call offer().
class FakeInterface {
 public:
  FakeInterface(sdbus::IObject& object, std::string name) : object_(object), name_(std::move(name)) {}

#ifdef HAULOUT_SDBUS_2
  template <class Handler>
  void method(const char* name, Handler handler) {
    object_.addVTable(sdbus::registerMethod(name).implementedAs(std::move(handler))).forInterface(name_);
  }
  template <class Getter>
  void property(const char* name, Getter getter) {
    object_.addVTable(sdbus::registerProperty(name).withGetter(std::move(getter))).forInterface(name_);
  }
  template <class... Values>
  void signal(const char* name) {
    object_.addVTable(sdbus::registerSignal(name).withParameters<Values...>()).forInterface(name_);
  }
#else
  template <class Handler>
  void method(const char* name, Handler handler) {
    object_.registerMethod(name).onInterface(name_).implementedAs(std::move(handler));
  }
  template <class Getter>
  void property(const char* name, Getter getter) {
    object_.registerProperty(name).onInterface(name_).withGetter(std::move(getter));
  }
  template <class... Values>
  void signal(const char* name) {
    object_.registerSignal(name).onInterface(name_).template withParameters<Values...>();
  }
#endif

 private:
  sdbus::IObject& object_;
  std::string name_;
};

// Makes the declared interfaces known to the bus. 2.x has done that with each of them.
inline void offer([[maybe_unused]] sdbus::IObject& object) {
#ifndef HAULOUT_SDBUS_2
  object.finishRegistration();
#endif
}

}  // namespace haulout::testing
