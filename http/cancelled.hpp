// For Asio operations that return their error code as a value. Throws boost::system::system_error if the code says that
// the operation was cancelled, so that the cancellation unwinds the coroutine. Otherwise does nothing. No I/O.
#pragma once

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

namespace haulout::http {

inline void unwind_if_cancelled(const boost::system::error_code& failure) {
  if (failure == boost::asio::error::operation_aborted) throw boost::system::system_error(failure);
}

}  // namespace haulout::http
