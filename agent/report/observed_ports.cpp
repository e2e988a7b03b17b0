#include "agent/report/observed_ports.hpp"

namespace haulout::agent {

boost::asio::awaitable<Pending> ObservedBackend::pending(TimePoint deadline) {
  Pending pending = co_await inner_.pending(deadline);
  tell_(pending);
  co_return pending;
}

Task<Turn> ObservedSlots::take(TimePoint deadline) {
  auto turn = co_await inner_.take(deadline);
  if (turn) tell_(turn->ours);
  co_return turn;
}

Task<Turn> ObservedSlots::confirm(TimePoint deadline) {
  auto turn = co_await inner_.confirm(deadline);
  if (turn) tell_(turn->ours);
  co_return turn;
}

Task<> ObservedSlots::release(TimePoint deadline) {
  auto released = co_await inner_.release(deadline);
  if (released) tell_(false);
  co_return released;
}

Task<http::Response> ObservedTransport::round_trip(http::Request request, TimePoint deadline) {
  RequestEnd end{.method = request.method, .target = request.target};
  auto response = co_await inner_.round_trip(std::move(request), deadline);
  if (response) {
    end.status = response->status;
  } else {
    end.failure = response.error().code();
  }
  tell_(end);
  co_return response;
}

Task<std::unique_ptr<http::BodyStream>> ObservedTransport::open(http::Request request, TimePoint deadline) {
  RequestEnd end{.method = request.method, .target = request.target};
  auto stream = co_await inner_.open(std::move(request), deadline);
  if (stream) {
    end.status = (*stream)->head().status;
  } else {
    end.failure = stream.error().code();
  }
  tell_(end);
  co_return stream;
}

}  // namespace haulout::agent
