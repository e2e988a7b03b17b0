#include "agent/dbus/logind.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/dbus/bus.hpp"

namespace haulout::agent {
namespace {

using ::testing::HasSubstr;

TEST(CanReboot, OnlyYesPermits) {
  EXPECT_TRUE(judge_can_reboot("yes", 0));
  for (const char* const answer : {"no", "challenge", "na", "", "YES", "maybe"})
    EXPECT_EQ(judge_can_reboot(answer, 0).error().code(), Errc::unavailable) << answer;
}

TEST(CanReboot, WhatWantsAPasswordSaysWhoWeAre) {
  for (const char* const answer : {"no", "challenge"})
    EXPECT_THAT(judge_can_reboot(answer, 100000).error().message(), HasSubstr("uid 100000")) << answer;
}

TEST(CanReboot, AnswersAboutInhibitorsAreLeftToTheListOfThem) {
  EXPECT_TRUE(judge_can_reboot("inhibitor-blocked", 0));
  EXPECT_TRUE(judge_can_reboot("challenge-inhibitor-blocked", 0));
}

TEST(Inhibitors, ShutdownIsAWordInAList) {
  for (const char* const what : {"shutdown", "sleep:shutdown", "shutdown:idle", "a:shutdown:b"})
    EXPECT_TRUE(names_shutdown(what)) << what;
  for (const char* const what : {"", "sleep", "shutdowns", "handle-shutdown", ":"})
    EXPECT_FALSE(names_shutdown(what)) << what;
}

TEST(Inhibitors, OnlyThoseThatBlockAShutdownStop) {
  const Inhibitor delay{"shutdown", "kubelet", "pods", "delay", 0, 1};
  const Inhibitor sleep{"sleep", "nm", "wifi", "block", 0, 2};
  const Inhibitor block{"sleep:shutdown", "apt", "upgrading", "block", 1000, 77};
  const Inhibitor weak{"shutdown", "gdm", "session", "block-weak", 0, 78};
  EXPECT_TRUE(judge_inhibitors({}));
  EXPECT_TRUE(judge_inhibitors({delay, sleep}));
  const auto blocked = judge_inhibitors({delay, block, sleep, weak});
  EXPECT_EQ(blocked.error().code(), Errc::unavailable);
  for (const char* const part : {"apt", "upgrading", "77", "gdm"})
    EXPECT_THAT(blocked.error().message(), HasSubstr(part));
  EXPECT_THAT(blocked.error().message(), ::testing::Not(HasSubstr("kubelet")));
}

TEST(SystemState, RunningAndDegradedAreTheEndOfABoot) {
  EXPECT_TRUE(judge_system_state("running").value());
  EXPECT_TRUE(judge_system_state("degraded").value());
  EXPECT_FALSE(judge_system_state("initializing").value());
  EXPECT_FALSE(judge_system_state("starting").value());
  for (const char* const state : {"maintenance", "stopping", "offline", "unknown", ""})
    EXPECT_EQ(judge_system_state(state).error().code(), Errc::unavailable) << state;
}

// Only a loaded kernel leads to a kexec. Everything else is an ordinary reboot, and the words say why.
TEST(Kexec, OnlyALoadedKernelIsUsed) {
  using Loaded = Result<std::optional<std::string>>;
  const Loaded unreadable = Error(Errc::unavailable, "cannot read it: Permission denied");
  struct Row {
    Loaded loaded;
    bool kexec;
    const char* why;
  };
  for (const Row& row : {Row{Loaded("1\n"), true, "kexec into the loaded kernel"},
                         {Loaded("1"), true, "kexec into the loaded kernel"},
                         {Loaded("0\n"), false, "no kernel is loaded: /sys/x contains \"0\""},
                         {Loaded(""), false, "no kernel is loaded: /sys/x contains \"\""},
                         {Loaded("11"), false, "contains \"11\""},
                         {Loaded("yes"), false, "contains \"yes\""},
                         {Loaded(std::nullopt), false, "/sys/x does not exist"},
                         {unreadable, false, "Permission denied"}}) {
    const KexecPlan plan = plan_kexec(row.loaded, "/sys/x");
    EXPECT_EQ(plan.kexec, row.kexec) << row.why;
    EXPECT_THAT(plan.words, HasSubstr(row.why));
    EXPECT_EQ(plan.words.starts_with("logind instead of kexec, because "), !row.kexec) << plan.words;
  }
}

Error refusal(std::string_view name) {
  Error error(Errc::status, "x");
  error.peer.emplace();
  error.peer->reason = name;
  return error;
}

TEST(Refusals, SayWhatToDo) {
  for (const auto name : {bus_error::access_denied, bus_error::interactive_authorization}) {
    const Error explained = explain_refusal("logind", refusal(name));
    EXPECT_EQ(explained.code(), Errc::unavailable);
    for (const char* const trap : {"AppArmor", "Unconfined", "spc_t", "super_t", "hostUsers"})
      EXPECT_THAT(explained.message(), HasSubstr(trap));
  }
  for (const auto name : {bus_error::service_unknown, bus_error::name_has_no_owner})
    EXPECT_THAT(explain_refusal("logind", refusal(name)).message(), HasSubstr("--reboot-method"));
  EXPECT_EQ(explain_refusal("logind", refusal("org.example.Other")).code(), Errc::status);
  EXPECT_EQ(explain_refusal("logind", Error(Errc::timeout, "x")).code(), Errc::timeout);
}

}  // namespace
}  // namespace haulout::agent
