// Handles cancellation in operations that report failures as values: throws, so that a cancellation unwinds the
// coroutine as everywhere else. No I/O.
#pragma once

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

namespace haulout::http {

inline void unwind_if_cancelled(const boost::system::error_code& failure) {
  if (failure == boost::asio::error::operation_aborted) throw boost::system::system_error(failure);
}

}  // namespace haulout::http
