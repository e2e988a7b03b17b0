#include "agent/backends/file_backend.hpp"

#include <boost/asio/this_coro.hpp>

#include "agent/backends/sentinel.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

FileBackend::FileBackend(HostRoot root, Clock& clock, Rng& rng, std::string sentinel)
    : root_(std::move(root)), clock_(clock), rng_(rng), sentinel_(std::move(sentinel)), watch_(root_, {sentinel_}) {}

asio::awaitable<Pending> FileBackend::pending(TimePoint) {
  watch_.arm(co_await asio::this_coro::executor);
  co_return read_sentinel(root_, sentinel_);
}

Task<std::string> FileBackend::booted(TimePoint) {
  co_return std::string();
}

Task<> FileBackend::apply(std::string, TimePoint) {
  co_return Result<>();
}

asio::awaitable<void> FileBackend::changed() {
  return watch_.changed(clock_, rng_);
}

}  // namespace haulout::agent
