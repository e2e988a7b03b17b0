// Decorators that report the answers of the agent's ports to a function. Each borrows the port that it decorates, and
// is cancellable as the port is.
#pragma once

#include <functional>

#include "agent/ports/backend.hpp"
#include "agent/ports/slots.hpp"

namespace haulout::agent {

class ObservedBackend final : public Backend {
 public:
  ObservedBackend(Backend& inner, std::function<void(const Pending&)> tell) : inner_(inner), tell_(std::move(tell)) {}

  std::string name() const override { return inner_.name(); }
  boost::asio::awaitable<Pending> pending(TimePoint deadline) override;
  Task<std::string> booted(TimePoint deadline) override { return inner_.booted(deadline); }
  Task<> apply(std::string target, TimePoint deadline) override { return inner_.apply(std::move(target), deadline); }
  boost::asio::awaitable<void> changed() override { return inner_.changed(); }

 private:
  Backend& inner_;
  std::function<void(const Pending&)> tell_;
};

class ObservedSlots final : public Slots {
 public:
  // Calls `tell` after each answer that shows whether this node holds the slot.
  ObservedSlots(Slots& inner, std::function<void(bool)> tell) : inner_(inner), tell_(std::move(tell)) {}

  std::string name() const override { return inner_.name(); }
  void remember(const std::string& slot) override { inner_.remember(slot); }
  Task<Turn> take(TimePoint deadline) override;
  Task<Turn> confirm(TimePoint deadline) override;
  Task<> release(TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override { return inner_.changed(); }

 private:
  Slots& inner_;
  std::function<void(bool)> tell_;
};

}  // namespace haulout::agent
