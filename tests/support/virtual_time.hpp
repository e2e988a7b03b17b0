// A fixture in virtual time. run(coroutine) runs the coroutine to its end. It fails the test if the coroutine hangs,
// throws, or leaves a sleeper behind.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <optional>

#include "sim/virtual_clock.hpp"

namespace haulout::testing {

class VirtualTimeTest : public ::testing::Test {
 protected:
  boost::asio::io_context context{1};
  sim::VirtualClock clock{context};
  const TimePoint start = clock.now();

  Duration elapsed() const { return clock.now() - start; }

  // Runs the coroutine to its end. Fails the test if the coroutine does not end.
  template <class T>
  T run(boost::asio::awaitable<T> coroutine) {
    std::optional<T> result;
    std::exception_ptr failure;
    bool ended = false;
    boost::asio::co_spawn(context, std::move(coroutine), [&](std::exception_ptr thrown, T value) {
      ended = true;
      failure = thrown;
      result.emplace(std::move(value));
    });
    finish(ended, failure);
    return std::move(*result);
  }
  void run(boost::asio::awaitable<void> coroutine) {
    std::exception_ptr failure;
    bool ended = false;
    boost::asio::co_spawn(context, std::move(coroutine), [&](std::exception_ptr thrown) {
      ended = true;
      failure = thrown;
    });
    finish(ended, failure);
  }

 private:
  void finish(bool& ended, std::exception_ptr& failure) {
    const auto stop = clock.run(start + std::chrono::hours(24 * 7));
    if (failure) std::rethrow_exception(failure);
    if (!ended) {
      ADD_FAILURE() << "the coroutine never ended ("
                    << (stop == sim::VirtualClock::Stop::idle ? "deadlock" : "livelock") << ") after "
                    << std::chrono::duration_cast<std::chrono::seconds>(elapsed()).count() << " virtual s";
      throw std::runtime_error("hung");
    }
    EXPECT_EQ(clock.sleepers(), 0u) << "a sleeper was left behind";
  }
};

}  // namespace haulout::testing
