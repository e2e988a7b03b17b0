#include "http/dial.hpp"

#include <gmock/gmock.h>

#include "retry/deadline.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::http {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;
using asio::ip::make_address;
using Address = asio::ip::address;
using ::testing::ElementsAre;

std::vector<Address> addresses(std::initializer_list<const char*> texts) {
  std::vector<Address> found;
  for (const char* text : texts) found.push_back(make_address(text));
  return found;
}

TEST(OrderOfTrial, TheFamiliesTakeTurnsAfterThePreferredOne) {
  const struct {
    std::vector<Address> given;
    const char* preferred;
    std::vector<Address> wanted;
  } cases[] = {
      {{}, nullptr, {}},
      {addresses({"10.0.0.1"}), nullptr, addresses({"10.0.0.1"})},
      {addresses({"fd00::1", "fd00::2", "fd00::3", "10.0.0.1"}), nullptr,
       addresses({"fd00::1", "10.0.0.1", "fd00::2", "fd00::3"})},
      {addresses({"10.0.0.1", "fd00::1", "fd00::2", "fd00::3"}), nullptr,
       addresses({"10.0.0.1", "fd00::1", "fd00::2", "fd00::3"})},
      {addresses({"10.0.0.1", "10.0.0.2", "fd00::1", "fd00::2"}), nullptr,
       addresses({"10.0.0.1", "fd00::1", "10.0.0.2", "fd00::2"})},
      {addresses({"fd00::1", "fd00::2", "10.0.0.1", "10.0.0.2"}), "10.0.0.2",
       addresses({"10.0.0.2", "fd00::1", "10.0.0.1", "fd00::2"})},
      {addresses({"10.0.0.1", "10.0.0.2", "10.0.0.3"}), "10.0.0.2", addresses({"10.0.0.2", "10.0.0.1", "10.0.0.3"})},
      {addresses({"10.0.0.1", "10.0.0.2"}), "10.9.9.9", addresses({"10.0.0.1", "10.0.0.2"})},
  };
  for (const auto& one : cases) {
    const std::optional<Address> preferred =
        one.preferred ? std::optional<Address>(make_address(one.preferred)) : std::nullopt;
    EXPECT_EQ(order_of_trial(one.given, preferred), one.wanted);
  }
}

TEST(TrialsInWords, EachIsNamedUpToFour) {
  std::vector<Trial> trials = {{make_address("10.0.0.1"), "connection refused"}, {make_address("fd00::1"), {}}};
  EXPECT_EQ(in_words(trials, "api.test"), "10.0.0.1: connection refused; fd00::1: no reaction yet");
  EXPECT_EQ(in_words({{make_address("10.0.0.1"), "connection refused"}}, "10.0.0.1"), "connection refused");
  for (int i = 2; i < 9; ++i) trials.push_back({make_address("10.0.0." + std::to_string(i)), "refused"});
  EXPECT_EQ(in_words(trials, "api.test"),
            "10.0.0.1: connection refused; fd00::1: no reaction yet; 10.0.0.2: refused; 10.0.0.3: refused; and 5 more");
}

class Race : public haulout::testing::VirtualTimeTest {
 protected:
  // How an address behaves: the time until it reacts, and whether it accepts the connection.
  struct Behaviour {
    Duration after = 24h;
    bool connects = true;
  };
  std::map<Address, Behaviour> behaviours;
  std::vector<std::pair<Duration, std::string>> begun;
  int alive = 0;
  std::vector<Trial> trials;

  Task<> connect_one(Address address) {
    struct Alive {
      int& count;
      explicit Alive(int& counter) : count(counter) { ++count; }
      ~Alive() { --count; }
    } const guard(alive);
    begun.emplace_back(elapsed(), address.to_string());
    const Behaviour behaviour = behaviours[address];
    if (behaviour.after > 0s) co_await clock.sleep_until(clock.now() + behaviour.after);
    if (!behaviour.connects) co_return Error(Errc::unreachable, "refused");
    co_return Result<>();
  }
  Task<Address> connect_to(std::vector<Address> all) {
    asio::ip::tcp::socket socket(context);
    co_return co_await connect_to_first(
        clock, {300ms, 5s}, "api.test", std::move(all),
        [this](asio::ip::tcp::socket&, Address address) { return connect_one(address); }, socket, &trials);
  }
  Result<Address> winner_of(std::vector<Address> all) {
    auto winner = run(connect_to(std::move(all)));
    EXPECT_EQ(alive, 0) << "an attempt outlived the race";
    return winner;
  }
};

TEST_F(Race, SilentAddressesCostAMomentEach) {
  const auto all = addresses({"fd00::1", "fd00::2", "fd00::3", "10.0.0.1"});
  behaviours[all[3]] = {20ms};
  const auto winner = winner_of(all);
  ASSERT_TRUE(winner);
  EXPECT_EQ(*winner, all[3]);
  EXPECT_EQ(elapsed(), 920ms);
}

TEST_F(Race, ARefusalBeginsTheNextAtOnce) {
  const auto all = addresses({"10.0.0.1", "10.0.0.2", "10.0.0.3"});
  behaviours[all[0]] = {10ms, false};
  behaviours[all[1]] = {0ms, false};
  behaviours[all[2]] = {5ms};
  EXPECT_EQ(*winner_of(all), all[2]);
  EXPECT_EQ(elapsed(), 15ms);
}

TEST_F(Race, OnlyThatOfTheLastOneToBeginHastensTheNext) {
  const auto all = addresses({"10.0.0.1", "10.0.0.2", "10.0.0.3"});
  behaviours[all[0]] = {400ms, false};
  behaviours[all[2]] = {10ms};
  EXPECT_EQ(*winner_of(all), all[2]);
  EXPECT_THAT(begun,
              ElementsAre(std::pair(0ms, "10.0.0.1"), std::pair(300ms, "10.0.0.2"), std::pair(600ms, "10.0.0.3")));
}

TEST_F(Race, AnEarlierOneMayStillWin) {
  const auto all = addresses({"10.0.0.1", "10.0.0.2"});
  behaviours[all[0]] = {400ms};
  behaviours[all[1]] = {200ms};
  EXPECT_EQ(*winner_of(all), all[0]);
  EXPECT_EQ(elapsed(), 400ms);
}

TEST_F(Race, OneThatReactsLeavesTheOthersInPeace) {
  const auto all = addresses({"10.0.0.1", "10.0.0.2"});
  behaviours[all[0]] = {100ms};
  EXPECT_EQ(*winner_of(all), all[0]);
  EXPECT_EQ(begun.size(), 1u);
}

TEST_F(Race, TwoInTheSameInstantHaveOneWinner) {
  const auto all = addresses({"10.0.0.1", "10.0.0.2"});
  behaviours[all[0]] = {500ms};
  behaviours[all[1]] = {200ms};
  EXPECT_TRUE(winner_of(all));
  EXPECT_EQ(elapsed(), 500ms);
}

TEST_F(Race, WhereNoneReactsEachHasItsLimitAndIsNamed) {
  const auto all = addresses({"fd00::1", "10.0.0.1", "fd00::2"});
  behaviours[all[1]] = {0ms, false};
  const auto winner = winner_of(all);
  ASSERT_FALSE(winner);
  EXPECT_EQ(winner.error().code(), Errc::unreachable);
  EXPECT_EQ(winner.error().message(),
            "fd00::1: no reaction within 5 s (wrong address, machine down, or a firewall drops the packets); 10.0.0.1: "
            "refused; "
            "fd00::2: no reaction within 5 s (wrong address, machine down, or a firewall drops the packets)");
  EXPECT_EQ(elapsed(), 5300ms);
}

TEST_F(Race, ADeadlineEndsAllAndLeavesWhatIsKnown) {
  const auto all = addresses({"fd00::1", "10.0.0.1", "fd00::2", "10.0.0.2"});
  behaviours[all[1]] = {0ms, false};
  const auto winner = run(with_deadline(clock, start + 400ms, connect_to(all)));
  ASSERT_FALSE(winner);
  EXPECT_EQ(winner.error().code(), Errc::timeout);
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(in_words(trials, "api.test"), "fd00::1: no reaction yet; 10.0.0.1: refused; fd00::2: no reaction yet");
}

}  // namespace
}  // namespace haulout::http
