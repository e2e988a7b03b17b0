#include "agent/service/start_patience.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;

TEST(StartPatienceTest, AnAttemptThatRanOutOfTimeGetsTwiceAsLong) {
  StartPatience patience;
  std::vector<Duration> limits;
  for (int attempt = 0; attempt < 6; ++attempt) {
    limits.push_back(patience.limit());
    patience.failed(Error(Errc::timeout, "slow"));
  }
  EXPECT_EQ(limits, (std::vector<Duration>{30s, 1min, 2min, 4min, 8min, 8min}));
}

TEST(StartPatienceTest, AServerThatIsAwayIsAskedAsBefore) {
  StartPatience patience;
  for (const Errc code : {Errc::unreachable, Errc::unavailable, Errc::reset}) patience.failed(Error(code, "away"));
  EXPECT_EQ(patience.limit(), StartPatience::first);
}

}  // namespace
}  // namespace haulout::agent
