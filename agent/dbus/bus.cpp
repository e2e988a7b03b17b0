#include "agent/dbus/bus.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "agent/dbus/bus_address.hpp"
#include "agent/dbus/bus_error.hpp"
#include "agent/dbus/bus_link.hpp"
#include "agent/dbus/bus_probe.hpp"
#include "base/scope_exit.hpp"
#include "retry/backoff.hpp"
#include "retry/notifier.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// A running bus answers within a millisecond.
constexpr std::chrono::seconds probe_limit{5};
constexpr BackoffOptions reconnect{std::chrono::milliseconds(100), 2.0, std::chrono::seconds(30),
                                   BackoffOptions::Jitter::equal};
// A connection that lasted this long resets the reconnect backoff.
constexpr std::chrono::seconds settled{10};
// sdbus-c++ treats this value as "no timeout". Bus::exchange() enforces the deadline instead.
constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

// Errors by which a send fails before it has sent one byte of the message.
bool is_broken(const sdbus::Error& failure) {
  const std::string& name = failure.getName();
  return name == bus_error::disconnected || name == "System.Error.ENOTCONN" || name == "System.Error.ECONNRESET" ||
         name == "System.Error.EPIPE";
}

}  // namespace

// One method call in progress. It is in Bus::calls_ for as long as the frame of its coroutine lives.
struct Bus::Call {
  Call(Bus& owner, BusMethod asked, Write arguments, Read answer)
      : bus(owner),
        wake(owner.executor_),
        method(std::move(asked)),
        write(std::move(arguments)),
        read(std::move(answer)) {
    bus.calls_.insert(this);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { bus.calls_.erase(this); }

  // Sends over `link`. Returns false if the link is broken; then nothing was sent. Stores any other failure in
  // `outcome` and returns true.
  bool send();
  void replied(sdbus::MethodReply& reply, const sdbus::Error* failure);

  Bus& bus;
  Notifier wake;
  BusMethod method;
  Write write;
  Read read;
  std::optional<Result<>> outcome;
  std::shared_ptr<BusLink> link;         // the link over which the call was last sent
  std::unique_ptr<sdbus::IProxy> proxy;  // receives the reply; destroyed before `link`, never inside the reply callback
};

bool Bus::Call::send() {
  try {
    proxy = sdbus::createProxy(link->connection(), method.service, method.path);
    auto message = proxy->createMethodCall(method.interface, method.name);
    write(message);
    const auto on_reply = [this](sdbus::MethodReply& reply, const sdbus::Error* failure) { replied(reply, failure); };
    proxy->callMethod(message, on_reply, no_limit);
  } catch (const sdbus::Error& failure) {
    if (is_broken(failure)) return false;
    outcome = bus_failure(method.what(), failure);
  }
  return true;
}

void Bus::Call::replied(sdbus::MethodReply& reply, const sdbus::Error* failure) {
  if (failure != nullptr)
    outcome = bus_failure(method.what(), *failure);
  else if (read(reply))
    outcome = Result<>();
  else
    outcome = Error(Errc::decode, method.what() + " answered with types other than the documented ones");
  wake.notify();
}

Bus::Bus(asio::any_io_executor executor, Clock& clock, Rng& rng, std::vector<std::string> addresses)
    : executor_(std::move(executor)), clock_(clock), rng_(rng), addresses_(std::move(addresses)) {}

Bus::~Bus() = default;

std::string Bus::unique_name() const {
  return link_ ? link_->unique_name() : std::string();
}

void Bus::tell_all() {
  for (Call* const call : calls_) call->wake.notify();
  for (const BusListener* const listener : listeners_) listener->on_connection();
}

void Bus::subscribe(const BusListener& listener) {
  link_->listen(&listener, listener.matches, listener.on_signal);
}

void Bus::use(std::shared_ptr<BusLink> link) {
  link_ = std::move(link);
  if (link_)
    for (const BusListener* const listener : listeners_) subscribe(*listener);
  tell_all();
}

Task<std::shared_ptr<BusLink>> Bus::connect() {
  std::string causes;
  for (const std::string& address : addresses_) {
    Result<> answers;
    if (const auto path = socket_path_of(address))
      answers = co_await probe_bus(clock_, *path, saturating_add(clock_.now(), probe_limit));
    auto link = answers ? BusLink::open(executor_, address) : Result<std::shared_ptr<BusLink>>(answers.error());
    if (link) co_return link;
    causes += (causes.empty() ? "" : "; ") + link.error().message();
  }
  co_return Error(Errc::unreachable, causes);
}

asio::awaitable<void> Bus::run() {
  // Drops the connection when run() ends, also by cancellation, because only run() serves it.
  const ScopeExit drop_link([this] {
    if (link_) use(nullptr);
  });
  Backoff backoff(reconnect);
  while (true) {
    auto link = co_await connect();
    if (link) {
      const TimePoint since = clock_.now();
      problem_.clear();
      use(*link);
      problem_ = co_await link_->pump(clock_);
      use(nullptr);
      if (clock_.now() - since >= settled) backoff.reset();
    } else {
      problem_ = link.error().message();
    }
    co_await clock_.sleep_until(saturating_add(clock_.now(), backoff.next(rng_)));
  }
}

Task<> Bus::send(Call& call, TimePoint deadline) {
  while (true) {
    // Never sends again over the link that broke.
    while (!link_ || link_ == call.link) {
      const bool woken = co_await call.wake.wait_until(clock_, deadline);
      if (!woken && (!link_ || link_ == call.link))
        co_return Error(Errc::unavailable, fmt::format("no connection to the system bus: {}",
                                                       problem_.empty() ? "it was not established in time" : problem_));
    }
    call.proxy.reset();
    call.link = link_;
    if (call.send()) {
      call.link->nudge();
      co_return Result<>();
    }
    call.link->fail("the connection was lost");
  }
}

Task<> Bus::exchange(BusMethod method, Write write, Read read, TimePoint deadline) {
  Call call(*this, std::move(method), std::move(write), std::move(read));
  const std::string what = call.method.what();
  auto sent = co_await send(call, deadline);
  if (!sent) co_return std::move(sent).error().with_context(what);
  while (!call.outcome) {
    const bool woken = co_await call.wake.wait_until(clock_, deadline);
    if (call.outcome) break;
    if (link_ != call.link) co_return Error(Errc::reset, what + ": the bus closed the connection before the answer");
    if (!woken) co_return Error(Errc::timeout, what + ": no answer before the deadline");
  }
  co_return *std::move(call.outcome);
}

Listening::Listening(Bus& bus, BusListener listener) : bus_(bus), listener_(std::move(listener)) {
  bus_.listeners_.insert(&listener_);
  if (bus_.link_) bus_.subscribe(listener_);
}

Listening::~Listening() {
  bus_.listeners_.erase(&listener_);
  if (bus_.link_) bus_.link_->forget(&listener_);
}

}  // namespace haulout::agent
