#include "agent/dbus/bus.hpp"

#include <fmt/format.h>
#include <sdbus-c++/Error.h>
#include <limits>

#include "agent/dbus/bus_link.hpp"
#include "base/ascii.hpp"
#include "base/scope_exit.hpp"
#include "base/text.hpp"
#include "retry/backoff.hpp"
#include "retry/notifier.hpp"

namespace haulout::agent {

namespace {

// Returns true for bytes that are written unescaped in an address ("Server addresses" in the D-Bus specification); all
// others are written as %XX.
bool stands_for_itself(char c) {
  return is_alphanumeric(c) || std::string_view("-_/.\\*").find(c) != std::string_view::npos;
}

std::string unix_address(std::string_view path) {
  std::string out = "unix:path=";
  for (const char c : path) {
    if (stands_for_itself(c))
      out += c;
    else
      out += fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

std::optional<std::string> unescaped(std::string_view value) {
  std::string out;
  for (std::size_t at = 0; at < value.size(); ++at) {
    if (value[at] != '%') {
      out += value[at];
      continue;
    }
    const auto byte = at + 2 < value.size() ? parse_number<unsigned>(value.substr(at + 1, 2), 16) : std::nullopt;
    if (!byte) return std::nullopt;
    out += static_cast<char>(*byte);
    at += 2;
  }
  return out;
}

}  // namespace

std::vector<std::string> system_bus_addresses(std::string_view host_root, const char* environment) {
  std::vector<std::string> out;
  std::string_view rest = environment == nullptr ? "" : environment;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    if (end > 0) out.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (!out.empty()) return out;
  while (host_root.ends_with('/')) host_root.remove_suffix(1);
  for (const char* const path : {"/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket"})
    out.push_back(unix_address(std::string(host_root) + path));
  return out;
}

std::optional<std::string> socket_path_of(std::string_view address) {
  if (!address.starts_with("unix:")) return std::nullopt;
  address.remove_prefix(5);
  while (!address.empty()) {
    const std::size_t end = std::min(address.find(','), address.size());
    const std::string_view pair = address.substr(0, end);
    if (pair.starts_with("path=")) return unescaped(pair.substr(5));
    address.remove_prefix(std::min(end + 1, address.size()));
  }
  return std::nullopt;
}

Error bus_failure(const std::string& what, const sdbus::Error& failure) {
  const std::string& name = failure.getName();
  // The library's own timeouts are not used, so NoReply and Disconnected both mean that the connection or the peer was
  // closed.
  if (name == bus_error::no_reply || name == bus_error::disconnected)
    return Error(Errc::reset, fmt::format("{}: the service or the connection ended before the answer: {}", what,
                                          failure.getMessage()));
  Error out(Errc::status, fmt::format("{}: {} ({})", what, failure.getMessage(), name));
  out.peer.emplace();
  out.peer->reason = name;
  out.peer->message = failure.getMessage();
  out.peer->structured = true;
  return out;
}

bool is_bus_error(const Error& error, std::string_view name) {
  return error.code() == Errc::status && error.peer && error.peer->reason == name;
}

bool is_absent(const Error& error) {
  return is_bus_error(error, bus_error::service_unknown) || is_bus_error(error, bus_error::name_has_no_owner) ||
         (error.code() == Errc::status && error.peer &&
          error.peer->reason.starts_with("org.freedesktop.DBus.Error.Spawn."));
}

std::string container_traps() {
  return "in a pod, AppArmor or SELinux may forbid access to the host's bus: with AppArmor (Ubuntu, Debian) set "
         "securityContext.appArmorProfile.type to Unconfined, with SELinux (RHEL, Fedora, MicroOS) "
         "securityContext.seLinuxOptions.type to spc_t, on Bottlerocket to super_t; run as uid 0 of the host (not with "
         "hostUsers: false)";
}

namespace asio = boost::asio;

namespace {

// Time limit of probe_bus(). A running bus answers within a millisecond.
constexpr std::chrono::seconds probe_limit{5};
// Backoff between attempts to connect.
constexpr BackoffOptions reconnect{std::chrono::milliseconds(100), 2.0, std::chrono::seconds(30),
                                   BackoffOptions::Jitter::equal};
// A connection that lasted this long resets the reconnect backoff.
constexpr std::chrono::seconds settled{10};
// sdbus-c++ treats this value as "no timeout". Bus::exchange() enforces the deadline instead.
constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

// Returns true for errors by which a send fails before it has sent one byte of the message.
bool is_broken(const sdbus::Error& failure) {
  const std::string& name = failure.getName();
  return name == bus_error::disconnected || name == "System.Error.ENOTCONN" || name == "System.Error.ECONNRESET" ||
         name == "System.Error.EPIPE";
}

}  // namespace

// One method call in progress. It is registered in Bus::calls_ as long as this object exists.
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
    proxy = sdbus::createProxy(link->connection(), sdbus_versions::ServiceName(method.service),
                               sdbus::ObjectPath(method.path));
    auto message = proxy->createMethodCall(sdbus_versions::InterfaceName(method.interface),
                                           sdbus_versions::MethodName(method.name));
    write(message);
    const auto on_reply = [this](sdbus::MethodReply& reply, const sdbus::Error* failure) { replied(reply, failure); };
    sdbus_versions::call_method(*proxy, message, on_reply, no_limit);
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
    outcome = Error(Errc::decode, method.what() + ": the answer has an unexpected D-Bus type");
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
  // Drop the connection when run() ends, also by cancellation, because only run() serves it.
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
    // Never send the call again over the link that broke.
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
