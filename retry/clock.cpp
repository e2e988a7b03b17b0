#include "retry/clock.hpp"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

namespace haulout {

boost::asio::awaitable<void> Clock::sleep_until(TimePoint when) {
  if (!co_await doze_until(when)) throw boost::system::system_error(boost::asio::error::operation_aborted);
}

}  // namespace haulout
