// Tests `haulout status` against a simulated cluster.
#include "cli/people/status_job.hpp"
#include "tests/cli/people/people_fixture.hpp"

namespace haulout::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

struct StatusTest : PeopleTest {
  void add_turn(const std::string& node) {
    const std::string uid = cluster.get("nodes", "", node)["metadata"]["uid"];
    add({{"apiVersion", "coordination.k8s.io/v1"},
         {"kind", "Lease"},
         {"metadata",
          {{"name", "haulout-default-0"}, {"namespace", "haulout"}, {"labels", {{"haulout.dev/pool", "default"}}}}},
         {"spec", {{"holderIdentity", node + "/" + uid}}}});
  }
};

TEST_F(StatusTest, TheFleetAtAGlance) {
  set_state("n1", "draining", "BlockedByBudget");
  set_state("n2", "waiting", "WaitingForSlot");
  annotate("n1", {{"haulout.dev/message", "pod shop/web-0 is blocked"}});
  add_turn("n1");
  EXPECT_EQ(command({"status"}), 0);
  EXPECT_THAT(text.text,
              AllOf(StartsWith("NAME   STATE"), HasSubstr("\nn1     draining   BlockedByBudget"),
                    HasSubstr("\nn2     waiting    WaitingForSlot"), HasSubstr("\nn3     <none>"),
                    HasSubstr("3 nodes: 1 waiting, 1 draining, 1 without an agent"),
                    HasSubstr("n1 holds slot haulout-default-0, draining (BlockedByBudget): pod shop/web-0")));
  EXPECT_THAT(errors.text, IsEmpty());
}

TEST_F(StatusTest, SomeNodesAndOneThatIsUnknown) {
  EXPECT_EQ(command({"status", "n2", "n9"}), 1);
  EXPECT_THAT(text.text, AllOf(HasSubstr("\nn2 "), Not(HasSubstr("\nn1 "))));
  EXPECT_THAT(errors.text, HasSubstr("n9"));
  label("n3", {{"pool", "web"}});
  EXPECT_EQ(command({"status", "-l", "pool=web"}), 0);
  EXPECT_THAT(text.text, AllOf(HasSubstr("\nn3 "), HasSubstr("1 node: ")));
  EXPECT_EQ(command({"status", "-l", "pool=none"}), 0);
  EXPECT_THAT(errors.text, HasSubstr("pool=none"));
}

// Agents and people write times by the server's clock, or by a clock that agrees with it. So the command must not
// compare them with its own clock.
TEST_F(StatusTest, AClockThatIsWrongChangesNothing) {
  agent::Record record;
  record.state = agent::State::soaking;
  record.since = clock.wall_now() - 3min;
  record.deadline = clock.wall_now() + 2min;
  set_state("n1", "soaking", "Soaking");
  annotate("n1", {{"haulout.dev/record", encode_record(record)},
                  {"haulout.dev/pause", agent::format_pause_annotation({"maintenance", clock.wall_now() + 5min})}});
  for (const Duration wrong : {-10h, 10h}) {
    own_clock.shift_wall(wrong);
    EXPECT_EQ(command({"status"}, 1s), 143);
    EXPECT_THAT(text.text, AllOf(HasSubstr("  3m"), HasSubstr("maintenance"), Not(HasSubstr("check that it runs")),
                                 Not(HasSubstr("<invalid>"))));
    EXPECT_EQ(command({"status", "-w"}, 1s), 143);
    EXPECT_THAT(text.text, AllOf(HasSubstr("  3m"), HasSubstr("maintenance"), Not(HasSubstr("check that it runs"))));
    own_clock.shift_wall(-wrong);
  }
}

// A user who may only read Nodes sees the Nodes, and the command names what it could not read.
TEST_F(StatusTest, WithLittlePermission) {
  set_state("n1", "idle");
  cluster.forbid("list", "leases");
  cluster.forbid("get", "configmaps");
  EXPECT_EQ(command({"status"}), 0);
  EXPECT_THAT(text.text, AllOf(HasSubstr("1 up to date"), HasSubstr("holders of slots cannot be read"),
                               HasSubstr("pauses cannot be read")));
  cluster.forbid("list", "nodes");
  EXPECT_EQ(command({"status"}), 3);
}

TEST_F(StatusTest, AsJson) {
  set_state("n1", "draining", "BlockedByBudget");
  add_turn("n1");
  annotate("n2", {{"haulout.dev/pause", "; disk"}});
  EXPECT_EQ(command({"status", "-o", "json"}), 0);
  EXPECT_THAT(text.text, IsEmpty());
  const Json list = Json::parse(out.text);
  EXPECT_EQ(list["apiVersion"], "haulout.dev/v1alpha1");
  EXPECT_EQ(list["kind"], "NodeStatusList");
  EXPECT_EQ(list["summary"]["counts"], (Json{{"draining", 1}, {"withoutAnAgent", 2}}));
  const Json& first = list["items"][0];
  EXPECT_EQ(first["state"], "draining");
  EXPECT_EQ(first["reason"], "BlockedByBudget");
  EXPECT_EQ(first["rebootRequired"], true);
  EXPECT_EQ(first["slot"], "haulout-default-0");
  EXPECT_EQ(list["items"][1]["state"], nullptr);
  EXPECT_EQ(list["items"][1]["pause"]["reason"], "disk");
}

TEST_F(StatusTest, AWatchPrintsARowForEveryChange) {
  set_state("n1", "idle");
  cluster.after(10s, [&] { set_state("n1", "pending", "Paused"); });
  cluster.after(15s,
                [&] { cluster.patch("nodes", "", "n2", {{"metadata", {{"labels", {{"haulout.dev/pool", "web"}}}}}}); });
  cluster.after(20s, [&] { cluster.remove("nodes", "", "n3"); });
  cluster.after(30s, [&] {
    cluster.create("configmaps", {{"apiVersion", "v1"},
                                  {"kind", "ConfigMap"},
                                  {"metadata", {{"name", "haulout"}, {"namespace", "haulout"}}},
                                  {"data", {{"pause", R"({"reason":"incident"})"}}}});
  });
  cluster.after(40s, [&] { cluster.patch("configmaps", "haulout", "haulout", {{"data", {{"pause", nullptr}}}}); });
  EXPECT_EQ(command({"status", "-w"}, 1min), 143);
  const std::string& t = text.text;
  const auto at = [&](const char* what) { return t.find(what); };
  EXPECT_LT(at("NAME "), at("n1     idle"));
  EXPECT_LT(at("n1     idle"), at("n1     pending              Paused"));
  EXPECT_LT(at("n1     pending"), at("n3     <deleted>"));
  EXPECT_LT(at("<deleted>"), at("the cluster is paused: incident"));
  EXPECT_LT(at("the cluster is paused"), at("neither the cluster nor a pool is paused"));
  EXPECT_NE(at("neither the cluster"), std::string::npos);
  EXPECT_EQ(t.find("n2     "), t.rfind("n2     ")) << "nothing happened to it that a row shows";
}

TEST_F(StatusTest, AWatchSeesWhatIsSelectedAgain) {
  const auto label = [this](const char* role) {
    cluster.patch("nodes", "", "n1", {{"metadata", {{"labels", {{"role", role}}}}}});
  };
  set_state("n1", "idle");
  label("web");
  cluster.after(10s, [=] { label("db"); });
  cluster.after(20s, [=] { label("web"); });
  cluster.after(30s, [&] { set_state("n1", "pending"); });
  EXPECT_EQ(command({"status", "-w", "-l", "role=web"}, 1min), 143);
  EXPECT_THAT(text.text, ::testing::ContainsRegex("n1 +idle(.|\n)*n1 +<deleted>(.|\n)*n1 +idle(.|\n)*n1 +pending"));
}

TEST_F(StatusTest, AWatchAsJsonIsOneObjectPerLine) {
  set_state("n1", "idle");
  cluster.after(10s, [&] { set_state("n1", "pending", "Paused"); });
  cluster.after(20s, [&] { cluster.remove("nodes", "", "n1"); });
  EXPECT_EQ(command({"status", "-w", "-o", "json", "n1"}, 1min), 143);
  std::istringstream lines(out.text);
  std::vector<std::string> types;
  for (std::string line; std::getline(lines, line);) {
    const Json change = Json::parse(line);
    EXPECT_EQ(change["object"]["kind"], "NodeStatus");
    EXPECT_EQ(change["object"]["name"], "n1");
    types.push_back(change["type"]);
  }
  EXPECT_THAT(types, AllOf(::testing::SizeIs(::testing::Ge(3u)), ::testing::Contains("MODIFIED")));
  EXPECT_EQ(types.front(), "ADDED");
  EXPECT_EQ(types.back(), "DELETED");
}

// The reader of the output ends early, as in `status -w | grep -m1 pending`. The command must end then, although
// nothing changes in the cluster any more.
TEST_F(StatusTest, AWatchEndsWhenItsReaderHasGone) {
  struct Leaving final : agent::Sink {
    bool read = true;
    void write(std::string_view) override {}
    bool has_reader() override { return read; }
  };
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"status", "-w"}, {"status", "-w", "-o", "json"}}) {
    Leaving reader;
    cluster.after(10s, [&reader] { reader.read = false; });
    Tools mine{client, clock, rng, console, reader, denied, "haulout"};
    StatusJob job(mine, settings_of(args), {});
    const TimePoint began = clock.now();
    std::optional<TimePoint> ended;
    const auto timed = [&]() -> boost::asio::awaitable<void> {
      const auto body = [&](TaskGroup& group) -> boost::asio::awaitable<void> {
        group.spawn(cluster.run());
        co_await job.run();
        ended = clock.now();
      };
      co_await with_task_group(body);
    };
    run(timed());
    ASSERT_TRUE(ended);
    EXPECT_LE(*ended - began, Duration(12s));
    EXPECT_EQ(job.finish(std::nullopt), 0);
  }
}

TEST_F(StatusTest, AWatchSurvivesTheServerAndSaysSo) {
  set_state("n1", "idle");
  cluster.after(10s, [&] { cluster.restart(20s); });
  cluster.after(60s, [&] { set_state("n1", "pending"); });
  EXPECT_EQ(command({"status", "-w"}, 3min), 143);
  EXPECT_THAT(errors.text,
              AllOf(HasSubstr("the Nodes cannot be watched now: "), HasSubstr("the Nodes are watched again")));
  EXPECT_THAT(text.text, HasSubstr("n1     pending"));
}

TEST_F(StatusTest, AWatchThatIsRefusedEnds) {
  cluster.forbid("list", "nodes");
  EXPECT_EQ(command({"status", "-w"}), 3);
  EXPECT_THAT(errors.text, HasSubstr("forbidden"));
  cluster.permit("list", "nodes");
  cluster.forbid("list", "leases");
  cluster.forbid("list", "configmaps");
  EXPECT_EQ(command({"status", "-w"}, 30s), 143) << "the rest is not needed";
  EXPECT_THAT(text.text, HasSubstr("n1     <none>"));
}

TEST_F(StatusTest, ATerminalIsRedrawnInPlace) {
  set_state("n1", "idle");
  cluster.after(5s, [&] { set_state("n1", "draining"); });
  const auto measure = [] { return Terminal{100, 24, true, true}; };
  StatusJob job(tools(), settings_of({"status", "-w"}), measure);
  EXPECT_EQ(run_job(job, {.interrupt = 10s}), 143);
  EXPECT_THAT(text.text, AllOf(HasSubstr("\x1b[32midle"), HasSubstr("\x1b[36mdraining"), HasSubstr("\x1b[J")));
  EXPECT_THAT(text.text.substr(text.text.rfind("\x1b[J")), HasSubstr("1 draining, 2 without an agent"));
}

}  // namespace
}  // namespace haulout::cli
