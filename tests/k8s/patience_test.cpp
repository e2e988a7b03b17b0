#include "k8s/patience.hpp"

namespace haulout::k8s {
namespace {

using namespace std::chrono_literals;

const TimePoint start{};

Error answered(int code, std::optional<std::chrono::milliseconds> retry_after = std::nullopt) {
  Error error(Errc::status, "answered");
  error.peer.emplace().code = code;
  error.peer->structured = true;
  error.retry_after = retry_after;
  return error;
}

struct Row {
  const char* what;
  Error error;
  bool at_first;  // the request is tried again before any request of the client has succeeded
  bool afterwards;
};

TEST(Patience, WhatIsTriedAgain) {
  const std::vector<Row> rows = {{"refused", Error(Errc::unreachable, ""), true, true},
                                 {"silent", Error(Errc::timeout, ""), true, true},
                                 {"reset", Error(Errc::reset, ""), true, true},
                                 {"busy", answered(429), true, true},
                                 {"restarting", answered(503), true, true},
                                 {"one 403", answered(403), true, true},
                                 {"no such name", Error(Errc::dns, ""), false, true},
                                 {"certificate", Error(Errc::tls, ""), false, true},
                                 {"login page", Error(Errc::decode, ""), false, true},
                                 {"401", answered(401), false, true},
                                 {"plugin", Error(Errc::unavailable, ""), false, true},
                                 {"not there", answered(404), false, false},
                                 {"rejected", answered(422), false, false}};
  SeededRng rng(1);
  for (const Row& row : rows)
    for (const bool reached : {false, true}) {
      PatientCall call({start + 1h}, reached, start);
      EXPECT_EQ(call.next_try(row.error, start, rng).has_value(), reached ? row.afterwards : row.at_first)
          << row.what << (reached ? " afterwards" : " at first");
    }
}

TEST(Patience, ARefusalIsBelievedTheSecondTime) {
  SeededRng rng(1);
  PatientCall call({start + 1h}, true, start);
  EXPECT_TRUE(call.next_try(answered(403), start, rng));
  EXPECT_FALSE(call.next_try(answered(403), start + 1s, rng));
}

TEST(Patience, SilenceHasItsLimitAndAServerThatAnswersHasNot) {
  SeededRng rng(1);
  PatientCall call({start + 1h}, false, start);
  EXPECT_EQ(call.attempt_until(start), start + 10s);
  EXPECT_FALSE(call.next_try(Error(Errc::unreachable, ""), start + 10s, rng));
  EXPECT_TRUE(call.next_try(answered(503), start + 10s, rng));
  EXPECT_EQ(call.attempt_until(start + 10s), start + 50s) << "past the limit a try has its time";
}

TEST(Patience, P10_RetryAfterIsObeyedOrItIsTheEnd) {
  SeededRng rng(1);
  PatientCall call({start + 30s}, false, start);
  EXPECT_GE(call.next_try(answered(429, 7s), start, rng).value(), start + 7s);
  EXPECT_FALSE(call.next_try(answered(429, 40s), start, rng));
}

}  // namespace
}  // namespace haulout::k8s
