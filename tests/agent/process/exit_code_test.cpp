#include "agent/process/process.hpp"

#include <csignal>
#include <fstream>
#include <set>
#include <sstream>

namespace haulout::agent {
namespace {

using drain::Outcome;

drain::Report report_of(Outcome outcome, bool connection_failed = false) {
  drain::Report report;
  report.outcome = outcome;
  report.connection_failed = connection_failed;
  return report;
}

TEST(ExitCodeTest, OfOneReport) {
  const std::vector<std::tuple<Outcome, bool, int>> rows = {
      {Outcome::drained, false, 0},   {Outcome::blocked, false, 1},   {Outcome::refused, false, 1},
      {Outcome::cancelled, false, 1}, {Outcome::node_gone, false, 1}, {Outcome::failed, false, 1},
      {Outcome::failed, true, 3},     {Outcome::blocked, true, 1},
  };
  for (const auto& [outcome, connection_failed, code] : rows)
    EXPECT_EQ(exit_code(report_of(outcome, connection_failed)), code) << drain::to_string(outcome);
}

TEST(ExitCodeTest, OfSeveralReportsTheLargest) {
  EXPECT_EQ(exit_code(std::vector<drain::Report>{}), 0);
  EXPECT_EQ(exit_code({report_of(Outcome::drained), report_of(Outcome::drained)}), 0);
  EXPECT_EQ(exit_code({report_of(Outcome::drained), report_of(Outcome::blocked), report_of(Outcome::drained)}), 1);
  EXPECT_EQ(exit_code({report_of(Outcome::failed, true), report_of(Outcome::refused)}), 3);
}

TEST(ExitCodeTest, OfAnError) {
  const auto status = [](int http_status, bool structured = true) {
    Error error(Errc::status, "said no");
    error.peer.emplace().code = http_status;
    error.peer->structured = structured;
    return error;
  };
  const std::vector<std::pair<Error, int>> rows = {
      {status(404), 1},
      {status(409), 1},
      {status(500), 1},
      {status(404, false), 3},  // a page of a proxy, not of an API server
      {status(502, false), 3},
      {status(401), 3},
      {status(403), 3},
      {Error(Errc::dns, ""), 3},
      {Error(Errc::tls, ""), 3},
      {Error(Errc::reset, ""), 3},
      {Error(Errc::unreachable, ""), 3},
      {Error(Errc::decode, ""), 3},
      {Error(Errc::protocol, ""), 3},
      {Error(Errc::timeout, ""), 3},
      {Error(Errc::unavailable, ""), 3},
      {Error(Errc::invalid, ""), 2},
  };
  for (const auto& [error, code] : rows) EXPECT_EQ(exit_code(error), code) << to_string(error.code());
}

// systemd does not start the agent again after exit code 2 (see haulout.service). So a service that has begun never
// ends with that code.
TEST(ExitCodeTest, OfAServiceThatHasBegunIsNeverWrongUsage) {
  EXPECT_EQ(exit_code_of_service(Error(Errc::invalid, "")), 1);
  EXPECT_EQ(exit_code_of_service(Error(Errc::unavailable, "")), 3);
}

TEST(ExitCodeTest, OfASignalAsAShellCountsIt) {
  EXPECT_EQ(exit_code_of_signal(SIGHUP), 129);
  EXPECT_EQ(exit_code_of_signal(SIGINT), 130);
  EXPECT_EQ(exit_code_of_signal(SIGTERM), 143);
}

// The unit must call the exit codes of signals a success. Otherwise each `systemctl stop`, upgrade and shutdown would
// leave a failed unit.
TEST(ExitCodeTest, TheUnitTakesTheEndByASignalForASuccess) {
  std::ifstream unit(HAULOUT_PACKAGING_DIR "/systemd/haulout.service");
  std::set<int> successes, not_started_again;
  for (std::string line; std::getline(unit, line);) {
    const auto read = [&line](std::string_view key, std::set<int>& into) {
      if (!line.starts_with(key)) return;
      std::istringstream codes(line.substr(key.size()));
      for (int code = 0; codes >> code;) into.insert(code);
    };
    read("SuccessExitStatus=", successes);
    read("RestartPreventExitStatus=", not_started_again);
  }
  std::set<int> of_signals;
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) of_signals.insert(exit_code_of_signal(signal));
  EXPECT_EQ(successes, of_signals);
  EXPECT_EQ(not_started_again, std::set<int>{exit_usage});
}

}  // namespace
}  // namespace haulout::agent
