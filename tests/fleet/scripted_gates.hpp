// Gates whose answers the test decides. No I/O. Waiting for a change can be cancelled. Borrows the clock and the
// GateNews.
#pragma once

#include <boost/asio/this_coro.hpp>
#include <functional>
#include <vector>

#include "agent/gates/gate_keeper.hpp"
#include "retry/notifier.hpp"

namespace haulout::fleet {

// A counter of changes to the gates of a whole fleet. Wakes all gates that wait for the next change.
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
  std::vector<Notifier*> readers_;  // in the order in which they came, so that a run does not depend on addresses
};

// Without a GateNews, changed() returns every 30 s.
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
