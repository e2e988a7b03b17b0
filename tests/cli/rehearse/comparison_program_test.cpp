// Runs `haulout rehearse --all --compare` and `--plan` on snapshots, and compares their rows with rehearsals of one
// setting.
#include "cli/rehearse/comparison_program.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "agent/process/process.hpp"
#include "base/files.hpp"
#include "cli/options/command_line.hpp"
#include "cli/rehearse/rehearsal_text.hpp"
#include "cli/rehearse/rehearse_program.hpp"
#include "rehearse/stage.hpp"
#include "retry/real_clock.hpp"
#include "tests/k8s/temp_dir.hpp"
#include "tests/rehearse/a_snapshot.hpp"
#include "tests/support/text_sink.hpp"

namespace haulout::cli {
namespace {

using namespace std::chrono_literals;
using haulout::testing::TextSink;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::json;

// Four nodes with two CPUs each, and a ReplicaSet with a pod of half a CPU on three of them.
class ComparisonTest : public ::testing::Test, protected rehearse::ASnapshot {
 protected:
  ComparisonTest() {
    for (const char* name : {"n1", "n2", "n3", "n4"}) add_node(name, "2");
    items.push_back(workload("ReplicaSet", "web", {{"replicas", 3}}));
    for (int i = 1; i <= 3; ++i)
      items.push_back(pod(fmt::format("web-{}", i), "ReplicaSet", "web", "500m", fmt::format("n{}", i)));
  }

  void leave_out(bool (*unwanted)(const Json&)) {
    items.erase(std::remove_if(items.begin(), items.end(), unwanted), items.end());
  }
  // Returns the exit code.
  int run(const std::vector<std::string>& more) {
    EXPECT_TRUE(write_whole_file(path_, document()));
    std::vector<std::string> args = {"rehearse", "--all", "-f", path_};
    args.insert(args.end(), more.begin(), more.end());
    auto parsed = parse_command_line("haulout", args);
    if (const auto* immediate = std::get_if<Immediate>(&parsed)) {
      ADD_FAILURE() << immediate->err;
      return -1;
    }
    const int out = ::memfd_create("out", MFD_CLOEXEC), err = ::memfd_create("err", MFD_CLOEXEC);
    agent::FdSink out_sink(out), err_sink(err);
    agent::Process process{context_.get_executor(), clock_, rng_, out_sink, err_sink, {}, "haulout"};
    const int code = rehearse(process, std::get<Settings>(parsed), [](auto) {
      ADD_FAILURE() << "nothing is read from a cluster";
      return 0;
    });
    out_.text = written_to(out);
    err_.text = written_to(err);
    return code;
  }
  Json report_of(std::vector<std::string> more, int code = agent::exit_done) {
    more.insert(more.end(), {"-o", "json"});
    EXPECT_EQ(run(more), code) << err_.text;
    return Json::parse(out_.text);
  }
  static std::vector<std::string> values_of(const Json& report) {
    std::vector<std::string> values;
    for (const Json& setting : report["settings"]) values.push_back(setting["value"]);
    return values;
  }

  // Returns what was written to the file, and closes it.
  static std::string written_to(int file) {
    std::string text(1'000'000, '\0');
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::pread(file, text.data(), text.size(), 0))));
    ::close(file);
    return text;
  }

  const testing::TempDir directory_;
  const std::string path_ = directory_ / "snapshot.json";
  TextSink out_, err_;
  boost::asio::io_context context_{1};
  RealClock clock_;
  SeededRng rng_{1};
};

TEST_F(ComparisonTest, ATableWithARowForEachSetting) {
  EXPECT_EQ(run({"--compare=max-unavailable=1,2,100%"}), agent::exit_not_done)
      << "with the last one, pods have no room";
  const std::string text = out_.text;
  EXPECT_THAT(text, HasSubstr("MAX-UNAVAILABLE  TIME"));
  for (const char* row : {"\n1                ", "\n2                ", "\n100%             "})
    EXPECT_THAT(text, HasSubstr(row));
  EXPECT_THAT(text, HasSubstr("0 of 4"));
  EXPECT_THAT(text, HasSubstr("shop/ReplicaSet/web 0 of 3 Ready"));
  EXPECT_THAT(text,
              HasSubstr("max-unavailable=100%:\n  shop/ReplicaSet/web has no budget, and none of its 3 replicas is "
                        "Ready after "));
  EXPECT_THAT(text, HasSubstr("  without capacity: shop/ReplicaSet/web 3 pods, up to "));
  EXPECT_THAT(text, HasSubstr("assumed:\n"));
  EXPECT_THAT(text, Not(HasSubstr("plan:")));
  EXPECT_THAT(err_.text,
              AllOf(HasSubstr("rehearsed max-unavailable=1: "), HasSubstr("rehearsed max-unavailable=100%: ")));
}

TEST_F(ComparisonTest, EachSettingIsInTheReport) {
  const Json report = report_of({"--compare", "max-unavailable=2,1"});
  EXPECT_EQ(report["kind"], "FleetComparison");
  EXPECT_THAT(values_of(report), ElementsAre("2", "1"));
  EXPECT_EQ(report["plan"], nullptr);
  EXPECT_EQ(report["settings"][0]["mostOutOfService"], 2);
  EXPECT_EQ(report["settings"][1]["mostOutOfService"], 1);
  EXPECT_LT(report["settings"][0]["seconds"], report["settings"][1]["seconds"]);
  EXPECT_THAT(report["settings"][0]["notUpdated"], IsEmpty());
  EXPECT_EQ(report["assumptions"]["rebootSeconds"], 180.0);
}

// With all four nodes at a time there is no room, with three all pods of the ReplicaSet may be down.
TEST_F(ComparisonTest, ThePlanIsTheFastestThatHarmsNobody) {
  const Json report = report_of({"--plan"});
  const Json plan = report["plan"];
  EXPECT_THAT(values_of(report), Not(IsEmpty()));
  EXPECT_EQ(values_of(report).front(), "1");
  EXPECT_TRUE(std::is_sorted(report["settings"].begin(), report["settings"].end(), [](const Json& a, const Json& b) {
    return std::stoi(a["value"].get<std::string>()) < std::stoi(b["value"].get<std::string>());
  }));
  ASSERT_TRUE(plan["value"].is_string()) << report;
  EXPECT_EQ(plan["slowest"], "1");
  ASSERT_TRUE(plan["nextFaster"].is_string()) << report;
  EXPECT_EQ(std::stoi(plan["nextFaster"].get<std::string>()), std::stoi(plan["value"].get<std::string>()) + 1);
  EXPECT_THAT(plan["objections"], Not(IsEmpty()));
  EXPECT_EQ(run({"--plan"}), agent::exit_done);
  EXPECT_THAT(out_.text,
              AllOf(HasSubstr("plan: max-unavailable=" + plan["value"].get<std::string>() + " ("),
                    HasSubstr(") is the fastest setting that harms no workload and leaves capacity for all pods\n"),
                    HasSubstr("the next faster one, max-unavailable=" + plan["nextFaster"].get<std::string>() + " ("),
                    HasSubstr("shop/ReplicaSet/web")));
}

TEST_F(ComparisonTest, ThePlanAmongTheComparedSettings) {
  const Json report = report_of({"--plan", "--compare=max-unavailable=4,1"});
  EXPECT_THAT(values_of(report), ElementsAre("4", "1"));
  EXPECT_EQ(report["plan"]["value"], "1");
  EXPECT_EQ(report["plan"]["nextFaster"], "4");
  EXPECT_EQ(report["plan"]["objections"][0]["kind"], "owner");
  EXPECT_EQ(report["plan"]["objections"][0]["subject"], "shop/ReplicaSet/web");
}

TEST_F(ComparisonTest, NoSettingQualifies) {
  for (const char* name : {"web-2", "web-3"}) item(name)["spec"]["nodeName"] = "n1";
  const Json report = report_of({"--plan"}, agent::exit_not_done);
  EXPECT_THAT(values_of(report), ElementsAre("1"));
  EXPECT_EQ(report["plan"]["value"], nullptr);
  EXPECT_EQ(report["plan"]["objections"][0]["kind"], "owner");
  EXPECT_EQ(run({"--plan"}), agent::exit_not_done);
  EXPECT_THAT(out_.text, HasSubstr("plan: no setting qualifies. Even max-unavailable=1 ("));
}

// Nothing would replace the pods, so every setting would seem to harm nothing, also one with all nodes at once.
TEST_F(ComparisonTest, ASnapshotWithoutControllersHasNoPlan) {
  leave_out([](const Json& each) { return each["kind"] == "ReplicaSet"; });
  EXPECT_EQ(run({"--plan"}), agent::exit_connection);
  EXPECT_THAT(
      err_.text,
      AllOf(HasSubstr("a plan is not possible: pod shop/web-1 belongs to a ReplicaSet, and the snapshot has no "
                      "ReplicaSets, so nothing would replace its pods; make the snapshot by kubectl get nodes,"),
            Not(HasSubstr("rehearsed"))));
  EXPECT_EQ(run({"--compare=max-unavailable=1"}), agent::exit_done) << "a table is no recommendation";
}

TEST_F(ComparisonTest, AFasterSettingThatIsNotNeeded) {
  leave_out([](const Json& each) { return each["kind"] == "ReplicaSet" || each["kind"] == "Pod"; });
  items.push_back(pod("lone", "Job", "lone", "500m", "n1"));
  const Json report = report_of({"--plan"});
  EXPECT_EQ(report["plan"]["value"], "4");
  EXPECT_EQ(report["plan"]["nextFaster"], nullptr);
  EXPECT_THAT(report["plan"]["objections"], IsEmpty());
  run({"--plan"});
  EXPECT_THAT(out_.text, HasSubstr("no rehearsed setting is faster\n"));
}

TEST_F(ComparisonTest, NodesThatAreLeftOutOrDoNotFinish) {
  silence("n4");
  item("n3")["spec"]["unschedulable"] = true;
  EXPECT_EQ(run({"--compare=max-unavailable=2,3"}), agent::exit_not_done);
  EXPECT_THAT(out_.text, HasSubstr("left out of every rehearsal: n4 (it is not Ready)\n"));
  EXPECT_THAT(out_.text, HasSubstr("\n2                -  "));
  EXPECT_THAT(out_.text, AllOf(HasSubstr("3 of 3"), HasSubstr("1 of 3"), HasSubstr("  not updated: n3\n")));
}

// Each option that can be compared makes a difference.
TEST_F(ComparisonTest, EveryOptionThatCanBeComparedHasAnEffect) {
  for (int i = 0; i < 4; ++i) {
    items.push_back(pod(fmt::format("web-x{}", i), "ReplicaSet", "web", "100m", "n4"));
    item(fmt::format("n{}", i + 1))["metadata"]["labels"]["rank"] = std::to_string(9 - i);
  }
  items.push_back(workload("Deployment", "front", {{"replicas", 7}}));
  item("web")["spec"]["replicas"] = 7;
  item("web")["metadata"]["ownerReferences"] = {
      {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", "front"}, {"uid", "front"}, {"controller", true}}};
  for (const char* values : {"max-unavailable=1,2", "max-concurrent=1,unlimited", "soak=0s,10m", "surge=off,all",
                             "roll-out-order=any,label:rank"}) {
    const Json settings = report_of({std::string("--compare=") + values})["settings"];
    ASSERT_THAT(settings, SizeIs(2)) << values;
    Json first = settings[0], second = settings[1];
    first.erase("value");
    second.erase("value");
    EXPECT_NE(first, second) << values;
  }
}

TEST_F(ComparisonTest, AConfigurationThatIsInvalidWithASetting) {
  const std::string config = directory_ / "haulout.yaml";
  ASSERT_TRUE(write_whole_file(config, "slots: none\n"));
  for (const char* flag : {"--plan", "--compare=max-unavailable=1,2"}) {
    EXPECT_EQ(run({flag, "--config=" + config}), agent::exit_usage) << flag;
    EXPECT_THAT(err_.text, AllOf(HasSubstr("error: "), HasSubstr("max-unavailable"), HasSubstr("slots"))) << flag;
  }
  ASSERT_TRUE(write_whole_file(config, "slots: fleetlock\nfleetlock-url: http://lock.example\n"));
  EXPECT_EQ(run({"--plan", "--config=" + config}), agent::exit_usage);
  EXPECT_THAT(err_.text, HasSubstr("FleetLock"));
}

TEST_F(ComparisonTest, ASnapshotThatCannotBeUsed) {
  items = Json::array();
  add_node("n1", "2");
  EXPECT_EQ(run({"--plan"}), agent::exit_connection);
  EXPECT_THAT(err_.text, HasSubstr("the snapshot has no pods"));
}

// A world of a few nodes, with workloads, budgets, cordons and dead nodes.
void fill(rehearse::ASnapshot& world, Rng& rng) {
  const auto some = [&rng](std::uint64_t low, std::uint64_t high) { return rng.between(low, high); };
  const std::uint64_t nodes = some(2, 4);
  const auto node = [&] { return fmt::format("n{}", some(1, nodes)); };
  for (std::uint64_t i = 1; i <= nodes; ++i) world.add_node(fmt::format("n{}", i), std::to_string(some(1, 4)));
  if (some(0, 3) == 0) world.silence(node());
  if (some(0, 3) == 0) world.item(node())["spec"]["unschedulable"] = true;
  for (std::uint64_t i = some(1, 4); i > 0; --i) {
    const std::string name = fmt::format("app{}", i);
    const char* kind = some(0, 2) == 0 ? "StatefulSet" : "ReplicaSet";
    const std::uint64_t replicas = some(1, 4);
    world.items.push_back(world.workload(kind, name, {{"replicas", replicas}}));
    for (std::uint64_t j = 0; j < replicas; ++j)
      world.items.push_back(world.pod(fmt::format("{}-{}", name, j), kind, name, "500m", node()));
    if (some(0, 2) == 0) {
      world.add_narrow_budget(name);
      world.items.back()["metadata"]["name"] = name;
    }
  }
}

TEST_F(ComparisonTest, ARowIsTheReportOfItsSettingAlone) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    rehearse::ASnapshot world;
    fill(world, rng);
    rehearse::FleetInput input;
    input.give_up = 1h;
    input.snapshot.read_at = WallTime(std::chrono::seconds(1'800'000'000));
    input.snapshot.documents = {{world.document()}};
    RehearseSettings settings;
    settings.plan = true;
    agent::AgentConfig config;
    Console console(out_, err_);
    // The search chooses the settings; each of its rows is then rehearsed alone.
    auto comparison = compare_fleets(console, settings, {{"2", config}}, input);
    ASSERT_TRUE(comparison) << comparison.error().message();
    for (const ComparedSetting& row : comparison->settings) {
      rehearse::FleetInput alone = input;
      alone.config.max_unavailable = row.value;
      const auto rehearsal = rehearse_fleet(std::move(alone));
      ASSERT_TRUE(rehearsal);
      EXPECT_EQ(row.figures, rehearse::figures_of(*rehearsal)) << row.value;
      EXPECT_EQ(row.exit_code, exit_code(*rehearsal)) << row.value;
    }
    const rehearse::Choice& choice = comparison->choice.value();
    const auto& reference = comparison->settings[choice.reference].figures;
    if (choice.best) EXPECT_THAT(objections(comparison->settings[*choice.best].figures, reference), IsEmpty());
    if (choice.next_faster)
      EXPECT_THAT(objections(comparison->settings[*choice.next_faster].figures, reference), Not(IsEmpty()));
    EXPECT_THAT(comparison_lines(*comparison), Not(IsEmpty()));
    EXPECT_TRUE(Json::accept(comparison_json(*comparison)));
  }
}

}  // namespace
}  // namespace haulout::cli
