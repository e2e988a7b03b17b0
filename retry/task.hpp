// A coroutine that yields a value or an expected failure, and how it hands a failure to its caller.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "base/result.hpp"

namespace haulout {

template <class T = void>
using Task = boost::asio::awaitable<Result<T>>;

}  // namespace haulout

// The two macros of this tree: hand a failure to the caller. CO_TRY(auto x, expression) declares x from the value.
#define HAULOUT_JOIN_(a, b) a##b
#define HAULOUT_JOIN(a, b) HAULOUT_JOIN_(a, b)
#define CO_CHECK(expression)                                            \
  do {                                                                  \
    auto co_check_result = (expression);                                \
    if (!co_check_result) co_return std::move(co_check_result).error(); \
  } while (0)
#define CO_TRY_IMPL(tmp, declaration, expression) \
  auto tmp = (expression);                        \
  if (!tmp) co_return std::move(tmp).error();     \
  declaration = *std::move(tmp)
#define CO_TRY(declaration, expression) CO_TRY_IMPL(HAULOUT_JOIN(co_try_, __COUNTER__), declaration, expression)
