#include "http/race.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <boost/asio/this_coro.hpp>

#include "retry/deadline.hpp"
#include "retry/notifier.hpp"
#include "retry/task_group.hpp"

namespace haulout::http {
namespace asio = boost::asio;
namespace {

using asio::ip::tcp;
using Address = asio::ip::address;

class Race {
 public:
  Race(const asio::any_io_executor& executor, Clock& clock, RaceLimits limits, const ConnectOne& connect_one,
       tcp::socket& socket, std::vector<Trial>& trials)
      : clock_(clock), limits_(limits), connect_one_(connect_one), socket_(socket), trials_(trials), news_(executor) {}

  asio::awaitable<void> run(TaskGroup& group, const std::vector<Address>& addresses);
  const std::optional<Address>& winner() const { return winner_; }

 private:
  asio::awaitable<void> try_one(std::size_t index);

  Clock& clock_;
  RaceLimits limits_;
  const ConnectOne& connect_one_;
  tcp::socket& socket_;
  std::vector<Trial>& trials_;
  Notifier news_;  // notified when an address has connected, failed or timed out
  std::size_t under_way_ = 0;
  std::optional<Address> winner_;
};

asio::awaitable<void> Race::run(TaskGroup& group, const std::vector<Address>& addresses) {
  for (const Address& address : addresses) {
    const std::size_t index = trials_.size();
    trials_.push_back({address, {}});
    ++under_way_;
    group.spawn(try_one(index));
    const TimePoint next = saturating_add(clock_.now(), limits_.next_after);
    bool early = true;
    while (early && !winner_ && !trials_[index].failure) early = co_await news_.wait_until(clock_, next);
    if (winner_) co_return;
  }
  while (!winner_ && under_way_ > 0) co_await news_.wait_until(clock_, TimePoint::max());
}

asio::awaitable<void> Race::try_one(std::size_t index) {
  const Address address = trials_[index].address;
  tcp::socket socket(co_await asio::this_coro::executor);
  auto connected =
      co_await with_deadline(clock_, saturating_add(clock_.now(), limits_.per_address), connect_one_(socket, address));
  --under_way_;
  if (winner_) co_return;
  if (connected) {
    socket_ = std::move(socket);
    winner_ = address;
  } else {
    const bool silent = connected.error().code() == Errc::timeout;
    const double seconds = std::chrono::duration<double>(limits_.per_address).count();
    trials_[index].failure = silent ? fmt::format("no reaction within {:g} s", seconds) : connected.error().message();
  }
  news_.notify();
}

}  // namespace

std::vector<Address> order_of_trial(std::vector<Address> addresses, const std::optional<Address>& preferred) {
  const auto first = std::find(addresses.begin(), addresses.end(), preferred);
  if (first != addresses.end()) std::rotate(addresses.begin(), first, first + 1);
  std::vector<Address> others;
  std::vector<Address> order;
  for (const Address& one : addresses) (one.is_v6() == addresses.front().is_v6() ? order : others).push_back(one);
  for (std::size_t i = 0; i < others.size(); ++i)
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(std::min(2 * i + 1, order.size())), others[i]);
  return order;
}

std::string in_words(const std::vector<Trial>& trials, std::string_view host) {
  constexpr std::size_t most = 4;  // number of attempts that are shown; enough to show the cause
  std::string words;
  for (std::size_t i = 0; i < std::min(trials.size(), most); ++i) {
    const std::string address = trials[i].address.to_string();
    if (i > 0) words += "; ";
    if (address != host) words += address + ": ";
    words += trials[i].failure.value_or("no reaction yet");
  }
  if (trials.size() > most) words += fmt::format("; and {} more", trials.size() - most);
  return words;
}

Task<Address> connect_to_first(Clock& clock, RaceLimits limits, std::string host, std::vector<Address> addresses,
                               ConnectOne connect_one, tcp::socket& socket, std::vector<Trial>* trials) {
  Race race(co_await asio::this_coro::executor, clock, limits, connect_one, socket, *trials);
  co_await with_task_group([&](TaskGroup& group) { return race.run(group, addresses); });
  if (race.winner()) co_return *race.winner();
  co_return Error(Errc::unreachable, in_words(*trials, host));
}

}  // namespace haulout::http
