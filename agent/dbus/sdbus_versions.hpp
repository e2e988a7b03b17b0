// What differs between sdbus-c++ 1.2 (Debian 12) and 2.x (Debian 13), in one form for both. Other files do not depend
// on the version, except tests/agent/dbus/sdbus_server.hpp, which has the same for services.
#pragma once

#include <sdbus-c++/sdbus-c++.h>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// The library has no macro with its version. This header exists since 2.0.
#if __has_include(<sdbus-c++/VTableItems.h>)
#define HAULOUT_SDBUS_2
#endif

namespace haulout::agent::sdbus_versions {

// As in 1.2. The handlers of 2.x take the message and the error by value.
using MessageHandler = std::function<void(sdbus::Message&)>;
using ReplyHandler = std::function<void(sdbus::MethodReply&, const sdbus::Error*)>;

#ifdef HAULOUT_SDBUS_2

// Each kind of name has its own type.
using sdbus::InterfaceName;
using sdbus::MethodName;
using sdbus::ServiceName;

inline void call_method(sdbus::IProxy& proxy, const sdbus::MethodCall& call, ReplyHandler handler,
                        std::uint64_t timeout) {
  const auto on_reply = [handler = std::move(handler)](sdbus::MethodReply reply, std::optional<sdbus::Error> failure) {
    handler(reply, failure ? &*failure : nullptr);
  };
  proxy.callMethodAsync(call, on_reply, timeout);
}

inline sdbus::Slot add_match(sdbus::IConnection& connection, const std::string& match, MessageHandler handler) {
  const auto on_message = [handler = std::move(handler)](sdbus::Message message) { handler(message); };
  return connection.addMatch(match, on_message, sdbus::return_slot);
}

// Nothing watches `eventFd` of the poll data. The library writes to it when a call leaves messages in its queues or
// makes its timeout sooner, so that the event loop looks again. Bus calls BusLink::nudge() for that, because 1.2 has no
// such descriptor. processPendingEvent() reads what was written.
inline bool process_pending(sdbus::IConnection& connection) {
  return connection.processPendingEvent();
}

inline std::uint64_t timeout_of(const sdbus::IConnection::PollData& poll) {
  return static_cast<std::uint64_t>(poll.timeout.count());
}

template <class T>
void enter_variant(sdbus::Message& message) {
  message.enterVariant<T>();
}

#else  // 1.2

using InterfaceName = std::string;
using MethodName = std::string;
using ServiceName = std::string;

inline void call_method(sdbus::IProxy& proxy, const sdbus::MethodCall& call, ReplyHandler handler,
                        std::uint64_t timeout) {
  proxy.callMethod(call, std::move(handler), timeout);
}

inline sdbus::Slot add_match(sdbus::IConnection& connection, const std::string& match, MessageHandler handler) {
  return connection.addMatch(match, std::move(handler));
}

inline bool process_pending(sdbus::IConnection& connection) {
  return connection.processPendingRequest();
}

inline std::uint64_t timeout_of(const sdbus::IConnection::PollData& poll) {
  return poll.timeout_usec;
}

template <class T>
void enter_variant(sdbus::Message& message) {
  message.enterVariant(sdbus::signature_of<T>::str());
}

#endif

// Returns true if `signal` has this name. The name is a std::string in 1.2 and a const char* in 2.x.
inline bool is_signal(const sdbus::Message& signal, std::string_view name) {
  return std::string_view(signal.getMemberName()) == name;
}

}  // namespace haulout::agent::sdbus_versions
