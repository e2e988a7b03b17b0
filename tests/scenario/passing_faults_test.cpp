// Temporary faults of the connection, one kind at a time. The drain waits until the fault ends and reports no success
// before. Also tests faults that waiting cannot resolve.
#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::Outcome;
using drain::PodOutcome;
using sim::FaultKind;
using ::testing::Gt;
using ::testing::SizeIs;

struct Row {
  const char* what;
  sim::Fault fault;
  const char* verb = "";
  const char* resource = "";
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.what;
}

// All watches end after 3 s. From then on the fault strikes each matching request for 30 s.
class PassingFaults : public Scenario, public ::testing::WithParamInterface<Row> {
 protected:
  drain::Report drain_through(const Row& row) {
    options.max_concurrent = 2;
    add_pods(6, {.grace = 4});
    way = &faults;
    after(3s, [this, row] {
      faults.add({.verb = row.verb, .resource = row.resource, .until = clock.now() + 30s, .fault = row.fault});
      cluster.drop_connections();
    });
    return drain();
  }
  sim::FaultTransport faults{cluster.api(), clock, world_rng};
};

TEST_P(PassingFaults, AreWaitedFor) {
  const auto report = drain_through(GetParam());
  EXPECT_THAT(report, Ended(Outcome::drained));
  for (const auto& one : report.pods) EXPECT_EQ(one.outcome, PodOutcome::evicted) << one.name;
  EXPECT_THAT(pods_on("n1"), SizeIs(0));
  EXPECT_THAT(faults.struck(), SizeIs(Gt(1u)));
  EXPECT_LT(took(), 3min);
}

INSTANTIATE_TEST_SUITE_P(
    Table, PassingFaults,
    ::testing::Values(
        Row{"no name server", {.kind = FaultKind::dns}}, Row{"a certificate of another CA", {.kind = FaultKind::tls}},
        Row{"no HTTP", {.kind = FaultKind::protocol}},
        Row{"a token file half written", {.kind = FaultKind::credentials}},
        Row{"one connection", {.kind = FaultKind::crowded, .most_streams = 1}},
        Row{"a hidden 500", {.kind = FaultKind::hidden_error, .code = 500}},
        Row{"a hidden 503", {.kind = FaultKind::hidden_error, .code = 503}},
        Row{"no kind", {.kind = FaultKind::no_kind, .after_pieces = 0}},
        Row{"no uid", {.kind = FaultKind::no_uid, .after_pieces = 0}},
        Row{"a revision of the future", {.kind = FaultKind::future}, "list"},
        Row{"500 within watches", {.kind = FaultKind::error_event, .code = 500, .after_pieces = 0}},
        Row{"429 within watches", {.kind = FaultKind::error_event, .code = 429, .after_pieces = 0}},
        Row{"401 within watches", {.kind = FaultKind::error_event, .code = 401, .after_pieces = 0}},
        Row{"no such path, once synced", {.kind = FaultKind::server_error, .code = 404, .plain = true}, "watch"},
        Row{"409 of evictions", {.kind = FaultKind::server_error, .code = 409}, "create", "pods/eviction"},
        Row{"422 of evictions", {.kind = FaultKind::server_error, .code = 422}, "create", "pods/eviction"},
        Row{"408", {.kind = FaultKind::server_error, .code = 408}},
        Row{"500 of an etcd without a leader", {.kind = FaultKind::server_error, .code = 500}},
        Row{"504 as text", {.kind = FaultKind::server_error, .code = 504, .plain = true}},
        Row{"425", {.kind = FaultKind::server_error, .code = 425}},
        Row{"522 of a load balancer", {.kind = FaultKind::server_error, .code = 522, .proxy = true}}));

// Promise P10: the dry run obeys Retry-After.
TEST_F(Scenario, ADryRunLeavesAServerAloneThatAsksForIt) {
  sim::FaultTransport faults{cluster.api(), clock, world_rng};
  way = &faults;
  options.dry_run = drain::DryRunMode::server;
  add_pods(2);
  faults.add({.verb = "create",
              .resource = "pods/eviction",
              .count = 3,
              .fault = {.kind = FaultKind::throttle, .retry_after = "7"}});
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_THAT(faults.struck(), SizeIs(3));
  EXPECT_GE(took(), 21s);
}

// Answers that stay the same however often the drain retries. The drain ends and reports them.
class HopelessAnswers : public Scenario, public ::testing::WithParamInterface<int> {};

TEST_P(HopelessAnswers, EndADrainThatHasNotBegun) {
  sim::FaultTransport faults{cluster.api(), clock, world_rng};
  way = &faults;
  add_pods(2);
  const bool plain = GetParam() == 404 || GetParam() == 414 || GetParam() == 431;
  faults.add({.verb = "list",
              .resource = "pods",
              .fault = {.kind = FaultKind::server_error, .code = GetParam(), .plain = plain}});
  EXPECT_THAT(drain(), Ended(Outcome::failed));
  EXPECT_LT(took(), 1s);
  EXPECT_THAT(evictions(), SizeIs(0));
  EXPECT_FALSE(unschedulable());
}

INSTANTIATE_TEST_SUITE_P(Table, HopelessAnswers,
                         ::testing::Values(400, 404, 405, 406, 413, 414, 415, 422, 431, 501, 505));

}  // namespace
}  // namespace haulout::scenario
