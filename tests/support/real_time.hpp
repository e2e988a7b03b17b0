// A fixture in real time, for tests that use the kernel: files, child processes, sockets. run(coroutine) runs the
// coroutine to its end. It throws, and so fails the test, if that takes more than 60 s. The fixture never sleeps.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <optional>

#include "retry/real_clock.hpp"

namespace haulout::testing {

class RealTimeTest : public ::testing::Test {
 protected:
  boost::asio::io_context context{1};
  RealClock clock;

  // A deadline that a successful run never reaches.
  TimePoint soon() const { return clock.now() + std::chrono::seconds(50); }

  template <class T>
  T run(boost::asio::awaitable<T> coroutine) {
    std::optional<T> result;
    std::exception_ptr failure;
    boost::asio::co_spawn(context, std::move(coroutine), [&](std::exception_ptr thrown, T value) {
      failure = thrown;
      result.emplace(std::move(value));
    });
    finish(failure);
    if (!result) throw std::runtime_error("hung");
    return std::move(*result);
  }
  void run(boost::asio::awaitable<void> coroutine) {
    std::exception_ptr failure;
    bool ended = false;
    boost::asio::co_spawn(context, std::move(coroutine), [&](std::exception_ptr thrown) {
      failure = thrown;
      ended = true;
    });
    finish(failure);
    if (!ended) throw std::runtime_error("hung");
  }

 private:
  void finish(std::exception_ptr& failure) {
    context.restart();
    context.run_for(std::chrono::seconds(60));
    if (failure) std::rethrow_exception(failure);
  }
};

}  // namespace haulout::testing
