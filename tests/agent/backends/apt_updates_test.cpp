#include "agent/backends/apt_updates.hpp"

#include <gmock/gmock.h>

#include "retry/rng.hpp"

namespace haulout::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::size_t pick(Rng& rng, std::size_t below) {
  return rng.between(std::uint64_t{0}, std::uint64_t{below - 1});
}

// Lines of apt 2.6.1 on Debian 12.
constexpr const char* debian = R"(NOTE: This is only a simulation!
      apt-get needs root privileges for real execution.
Reading package lists...
Calculating upgrade...
The following NEW packages will be installed:
  linux-image-6.1.0-30-amd64
Inst libc6 [2.36-9+deb12u8] (2.36-9+deb12u9 Debian:12.9/stable [amd64]) [libc-bin:amd64 ]
Conf libc6 (2.36-9+deb12u9 Debian:12.9/stable [amd64]) [libc-bin:amd64 ]
Inst libc-bin [2.36-9+deb12u8] (2.36-9+deb12u9 Debian:12.9/stable [amd64])
Inst linux-image-6.1.0-30-amd64 (6.1.124-1 Debian:12.9/stable, Debian-Security:12/stable-security [amd64])
Inst openssl [3.0.15-1~deb12u1] (3.0.16-1~deb12u1 Debian-Security:12/stable-security [amd64])
Conf libc-bin (2.36-9+deb12u9 Debian:12.9/stable [amd64])
Conf linux-image-6.1.0-30-amd64 (6.1.124-1 Debian:12.9/stable, Debian-Security:12/stable-security [amd64])
Conf openssl (3.0.16-1~deb12u1 Debian-Security:12/stable-security [amd64])
)";

TEST(AptSimulation, NamesWhatWouldBeInstalled) {
  const auto plan = parse_simulation(debian);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_THAT(plan->updates, ElementsAre(AptUpdate{"libc6", "2.36-9+deb12u8", "2.36-9+deb12u9", false},
                                         AptUpdate{"libc-bin", "2.36-9+deb12u8", "2.36-9+deb12u9", false},
                                         AptUpdate{"linux-image-6.1.0-30-amd64", "", "6.1.124-1", true},
                                         AptUpdate{"openssl", "3.0.15-1~deb12u1", "3.0.16-1~deb12u1", true}));
  EXPECT_THAT(plan->unfinished, IsEmpty());
  EXPECT_THAT(plan->removed, IsEmpty());
}

TEST(AptSimulation, KnowsTheSecurityArchivesOfUbuntu) {
  const auto plan = parse_simulation(
      "Inst libssl3:i386 [3.0.2-0ubuntu1.18] (3.0.2-0ubuntu1.19 Ubuntu:22.04/jammy-updates, "
      "Ubuntu:22.04/jammy-security [i386])\n"
      "Inst vim [2:8.2-1] (2:8.2-2 Ubuntu:22.04/jammy-updates [amd64])\n"
      "Inst bash [1] (2 Debian-Security:testing-security [all])\n"
      "Inst odd [1] (2 Not-a-security [all])\n");
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_THAT(only_security(*plan).updates,
              ElementsAre(AptUpdate{"libssl3:i386", "3.0.2-0ubuntu1.18", "3.0.2-0ubuntu1.19", true},
                          AptUpdate{"bash", "1", "2", true}));
}

// An update may need a package that is not installed yet. apt installs that by itself and marks it as automatic. If the
// agent named it as an argument, apt would mark it as chosen by a person. So only_security() leaves
// such a package out.
TEST(AptSimulation, ANewPackageIsNoSecurityUpdateByItself) {
  EXPECT_THAT(only_security(*parse_simulation(debian)).updates, SizeIs(1));
}

TEST(AptSimulation, WhatIsOnlyConfiguredWasInterrupted) {
  const auto plan = parse_simulation("Conf openssl (3.0.16-1 Debian:12/stable [amd64])\nRemv old [1.0]\n");
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->unfinished, ElementsAre("openssl"));
  EXPECT_THAT(plan->removed, ElementsAre("old"));
  const Updates updates = updates_of(*plan);
  EXPECT_EQ(updates.need, Need::yes);
  EXPECT_THAT(updates.first, ElementsAre("openssl (not configured)"));
}

TEST(AptSimulation, NothingToDoIsNo) {
  for (const char* text : {"", "Reading package lists...\n0 upgraded, 0 newly installed, 0 to remove\n"}) {
    const auto plan = parse_simulation(text);
    ASSERT_TRUE(plan);
    EXPECT_EQ(updates_of(*plan), (Updates{.need = Need::no}));
  }
}

// The names and versions in a line about a package become arguments of apt-get and parts of messages. So a line with
// any other text in their place, or without them, is an error.
TEST(AptSimulation, AnythingElseIsAnError) {
  for (const std::string line : {
           "Inst",
           "Inst ",
           "Inst openssl",
           "Inst openssl [1] ",
           "Inst openssl [1](2 D:1/s [all])",
           "Inst openssl [1] (",
           "Inst openssl [1] (2 D:1/s [all]",
           "Inst openssl [1] ( D:1/s [all])",
           "Inst openssl [1 (2 D:1/s [all])",
           "Inst -o (2 D:1/s [all])",
           "Inst --allow-downgrades [1] (2 D:1/s [all])",
           "Inst open;ssl [1] (2 D:1/s [all])",
           "Inst openssl [$(id)] (2 D:1/s [all])",
           "Inst openssl [1] (2;rm D:1/s [all])",
           "Inst openssl [1] (-2 D:1/s [all])",
           "Inst op\x1b[1m [1] (2 D:1/s [all])",
           "Conf",
           "Conf -x (2 D:1/s [all])",
           "Remv /etc/passwd [1]",
       }) {
    const auto plan = parse_simulation("Inst good [1] (2 D:1/s [all])\n" + line + "\n");
    ASSERT_FALSE(plan) << line;
    EXPECT_EQ(plan.error().code(), Errc::decode);
    EXPECT_THAT(plan.error().message(), HasSubstr("cannot read"));
  }
}

// P12: whatever apt prints, the result is a list of updates with safe names and versions, or an error.
TEST(AptSimulation, HostileTextIsNeverAnArgument) {
  SeededRng rng{7};
  const std::string_view letters = "Inst Conf[]()~:+-./;$ \n\t\"'\\aA0\xff\x1b";
  std::size_t plans = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = i % 2 == 0 ? "Inst " : std::string(debian).substr(0, pick(rng, 900));
    for (std::uint64_t n = pick(rng, 30); n > 0; --n) text += letters[pick(rng, letters.size())];
    const auto plan = parse_simulation(text);
    if (!plan) continue;
    ++plans;
    for (const AptUpdate& update : plan->updates)
      for (const std::string& word : {update.package, update.to}) {
        ASSERT_FALSE(word.empty());
        ASSERT_TRUE(std::isalnum(static_cast<unsigned char>(word.front()))) << text;
        ASSERT_EQ(word.find_first_of(" ;$\n\t\"'\\()[]/\xff\x1b"), std::string::npos) << text;
      }
    ASSERT_LE(updates_of(*plan).first.size(), named_updates);
  }
  EXPECT_GT(plans, 100u);
}

TEST(AptSimulation, MessagesNameTheFirstFew) {
  AptPlan plan;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) plan.updates.push_back({name, "1", "2", false});
  plan.updates[0].from.clear();
  const Updates updates = updates_of(plan);
  EXPECT_EQ(updates.count, 7u);
  EXPECT_THAT(updates.first, ElementsAre("a 2 (new)", "b 1 to 2", "c 1 to 2", "d 1 to 2", "e 1 to 2"));
}

TEST(AptSimulation, KnowsWhatWasInstalledAutomatically) {
  const AptPlan plan{.updates = {{"openssl", "1", "2", true}, {"vim", "1", "2", true}, {"libc6:i386", "1", "2", true}}};
  EXPECT_THAT(automatic(plan, "adduser\nlibc6:i386\nopenssl"), ElementsAre("openssl", "libc6:i386"));
  EXPECT_THAT(automatic(plan, ""), IsEmpty());
}

// P4: an update counts as installed only if apt does not offer it any more.
TEST(AptSimulation, WhatStillWaitsWasNotInstalled) {
  const AptPlan wanted{.updates = {{"openssl", "1", "2", false}, {"vim", "1", "2", false}}};
  EXPECT_EQ(still_waiting(wanted, {}), "");
  EXPECT_EQ(still_waiting(wanted, wanted), "openssl 1 to 2, vim 1 to 2");
  EXPECT_EQ(still_waiting(wanted, {.unfinished = {"vim"}}), "vim (not configured)");
  // A version that became available during the installation does not count as one that was wanted.
  EXPECT_EQ(still_waiting(wanted, {.updates = {{"openssl", "2", "3", false}, {"bash", "1", "2", false}}}), "");
}

}  // namespace
}  // namespace haulout::agent
