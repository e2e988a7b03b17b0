// Cancellation, where an operation reports its failure as a value: it unwinds the coroutine, as everywhere else.
#pragma once

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

namespace haulout::http {

inline void unwind_if_cancelled(const boost::system::error_code& failure) {
  if (failure == boost::asio::error::operation_aborted) throw boost::system::system_error(failure);
}

}  // namespace haulout::http
