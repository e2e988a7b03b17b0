// Gates that answer as a test says.
#pragma once

#include <boost/asio/this_coro.hpp>
#include <functional>
#include <vector>

#include "agent/gates/gate_keeper.hpp"
#include "retry/notifier.hpp"

namespace haulout::fleet {

// What the gates of a whole fleet go by, and who waits for its next change.
class GateNews {
 public:
  std::uint64_t edition() const { return edition_; }
  void publish() {
    ++edition_;
    for (Notifier* reader : readers_) reader->notify();
  }
  boost::asio::awaitable<void> after(std::uint64_t edition, Clock& clock) {
    Notifier reader(co_await boost::asio::this_coro::executor);
    const auto leave = [this](Notifier* who) { std::erase(readers_, who); };
    const std::unique_ptr<Notifier, decltype(leave)> listed(&reader, leave);
    readers_.push_back(&reader);
    while (edition_ == edition) co_await reader.wait_until(clock, TimePoint::max());
  }

 private:
  std::uint64_t edition_ = 0;
  std::vector<Notifier*> readers_;  // as they came: a run does not depend on addresses
};

// Without news they claim every 30 s that something may have changed.
class ScriptedGates final : public agent::GateKeeper {
 public:
  using Answer = std::function<agent::GateAnswer(const agent::GateQuestion&)>;
  ScriptedGates(Clock& clock, Answer answer, GateNews* news = nullptr)
      : clock_(clock), answer_(std::move(answer)), news_(news) {}
  boost::asio::awaitable<agent::GateAnswer> ask(agent::GateQuestion question, TimePoint) override {
    if (news_) read_ = news_->edition();
    co_return answer_(question);
  }
  boost::asio::awaitable<void> changed() override {
    if (!news_) co_return co_await clock_.sleep_until(clock_.now() + std::chrono::seconds(30));
    co_await news_->after(read_, clock_);
    read_ = news_->edition();
  }

 private:
  Clock& clock_;
  Answer answer_;
  GateNews* news_;
  std::uint64_t read_ = 0;
};

}  // namespace haulout::fleet
