// Task<T>: a coroutine that returns a value or an Error (base/result.hpp). CO_CHECK and CO_TRY return the Error of a
// failed Result from such a coroutine to its caller.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "base/result.hpp"

namespace haulout {

template <class T = void>
using Task = boost::asio::awaitable<Result<T>>;

}  // namespace haulout

// CO_CHECK(expression) returns from the coroutine with the Error of `expression`, if it failed. CO_TRY(auto x,
// expression) does the same, and otherwise declares x with the value.
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
