// Gates that answer as a test says.
#pragma once

#include <functional>

#include "agent/gate_keeper.hpp"

namespace haulout::fleet {

class ScriptedGates final : public agent::GateKeeper {
 public:
  using Answer = std::function<agent::GateAnswer(const agent::GateQuestion&)>;
  ScriptedGates(Clock& clock, Answer answer) : clock_(clock), answer_(std::move(answer)) {}
  boost::asio::awaitable<agent::GateAnswer> ask(agent::GateQuestion question, TimePoint) override {
    co_return answer_(question);
  }
  boost::asio::awaitable<void> changed() override {
    co_await clock_.sleep_until(clock_.now() + std::chrono::seconds(30));
  }

 private:
  Clock& clock_;
  Answer answer_;
};

}  // namespace haulout::fleet
