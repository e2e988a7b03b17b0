// Tests `haulout migrate kured`: its exit codes, its output, the DaemonSet in the cluster, and kured's lock.
#include "cli/migrate/migrate_program.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "base/files.hpp"
#include "cli/migrate/kured_lock.hpp"
#include "retry/real_clock.hpp"
#include "tests/cli/command_fixture.hpp"
#include "tests/cli/migrate/kured_fixture.hpp"
#include "tests/k8s/temp_dir.hpp"

namespace haulout::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class MigrateFileTest : public ::testing::Test {
 protected:
  ~MigrateFileTest() override {
    ::close(err_);
    ::close(out_);
  }

  int command(const std::vector<std::string>& more) {
    for (const int fd : {out_, err_}) EXPECT_EQ(::ftruncate(fd, 0), 0);
    std::vector<std::string> args = {"migrate", "kured", "-f", path_};
    args.insert(args.end(), more.begin(), more.end());
    agent::FdSink out(out_), err(err_);
    agent::Process process{context_.get_executor(), clock_, rng_, out, err, {}, "haulout"};
    for (const int fd : {out_, err_}) ::lseek(fd, 0, SEEK_SET);
    return migrate(process, std::get<Settings>(parse_command_line("haulout", args)), [](auto) {
      ADD_FAILURE() << "nothing is read from a cluster";
      return 0;
    });
  }
  int migrated_file(const std::string& text, const std::vector<std::string>& more = {}) {
    EXPECT_TRUE(write_whole_file(path_, text));
    return command(more);
  }
  static std::string text_of(int fd) {
    std::string text(1 << 16, '\0');
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::pread(fd, text.data(), text.size(), 0))));
    return text;
  }
  std::string output() const { return text_of(out_); }
  std::string errors() const { return text_of(err_); }

  const testing::TempDir directory_;
  const std::string path_ = directory_ / "kured.yaml";
  int out_ = ::memfd_create("out", MFD_CLOEXEC), err_ = ::memfd_create("err", MFD_CLOEXEC);
  boost::asio::io_context context_{1};
  RealClock clock_;
  SeededRng rng_{1};
};

TEST_F(MigrateFileTest, EverythingHasACounterpart) {
  EXPECT_EQ(migrated_file("configuration: {concurrency: 2, period: 1h}"), agent::exit_done);
  EXPECT_THAT(output(),
              AllOf(StartsWith("# The configuration of Haulout's agents"), HasSubstr("max-unavailable: 2\n")));
  EXPECT_THAT(errors(), AllOf(HasSubstr("OPTION           RESULT      HAULOUT\n"),
                              HasSubstr("--concurrency=2  translated  max-unavailable; nodes"),
                              HasSubstr("--period=1h      not needed  the agent notices"),
                              HasSubstr("options of kured: 1 translated, 1 not needed\n")));
}

TEST_F(MigrateFileTest, SomethingHasNoneAndTheConfigurationIsPrintedAllTheSame) {
  EXPECT_EQ(migrated_file("configuration: {concurrency: 2, forceReboot: true}"), agent::exit_not_done);
  EXPECT_THAT(output(), HasSubstr("max-unavailable: 2\n"));
  EXPECT_THAT(errors(), HasSubstr("no counterpart"));
  EXPECT_EQ(migrated_file("configuration: {rebootDay: mon}"), agent::exit_not_done);
  EXPECT_THAT(errors(), HasSubstr("kured's chart has no such value"));
}

TEST_F(MigrateFileTest, NoOptionsAtAll) {
  EXPECT_EQ(migrated_file("configuration: {}"), agent::exit_done);
  EXPECT_THAT(errors(), HasSubstr("gives kured no options: the defaults of Haulout are enough"));
}

TEST_F(MigrateFileTest, OneDocumentAsJson) {
  EXPECT_EQ(migrated_file("configuration: {concurrency: 2, lockTtl: 5m}", {"-o", "json"}), agent::exit_not_done);
  EXPECT_THAT(errors(), IsEmpty());
  const Json json = Json::parse(output());
  EXPECT_EQ(json["kind"], "KuredMigration");
  EXPECT_EQ(json["complete"], false);
  EXPECT_EQ(json["heldBack"], false);
  EXPECT_THAT(json["config"].get<std::string>(), HasSubstr("max-unavailable: 2\n"));
  EXPECT_EQ(json["options"][0]["option"], "concurrency");
  EXPECT_EQ(json["options"][0]["given"], Json({"--concurrency=2"}));
  EXPECT_EQ(json["options"][0]["result"], "translated");
  EXPECT_EQ(json["options"][1]["result"], "noCounterpart");
}

TEST_F(MigrateFileTest, WhatCannotBeReadIsExitCode2) {
  EXPECT_EQ(migrated_file("kind: Pod"), agent::exit_usage);
  EXPECT_THAT(errors(), AllOf(StartsWith("error: " + path_ + ": "), HasSubstr("no DaemonSet")));
  EXPECT_THAT(output(), IsEmpty());
  EXPECT_EQ(command({"-f", directory_ / "none.yaml"}), agent::exit_usage);
  EXPECT_THAT(errors(), HasSubstr("cannot be read: No such file"));
}

class MigrateClusterTest : public CommandTest {
 protected:
  MigrateClusterTest() { add({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "kube-system"}}}}); }

  void add_kured(const std::vector<std::string>& args, const std::string& lock = "",
                 const std::string& name = "kured") {
    Json annotations = {{"team", "nodes"}};
    if (!lock.empty()) annotations["weave.works/kured-node-lock"] = lock;
    add({{"apiVersion", "apps/v1"},
         {"kind", "DaemonSet"},
         {"metadata", {{"name", name}, {"namespace", "kube-system"}, {"annotations", annotations}}},
         {"spec",
          {{"selector", {{"matchLabels", {{"name", name}}}}},
           {"template",
            {{"metadata", {{"labels", {{"name", name}}}}},
             {"spec", {{"containers", {{{"name", "kured"}, {"image", "kured:1.23.0"}, {"args", args}}}}}}}}}}});
  }
  int command(std::vector<std::string> args) {
    text.text.clear();
    errors.text.clear();
    out.text.clear();
    args.insert(args.begin(), {"migrate", "kured"});
    const auto job = make_migrate_job(tools(), settings_of(args));
    return run_job(*job, {});
  }
  Json annotations(const std::string& name = "kured") {
    return cluster.get("daemonsets", "kube-system", name)["metadata"]["annotations"];
  }
  Json lock() { return Json::parse(annotations().at("weave.works/kured-node-lock").get<std::string>()); }
};

TEST_F(MigrateClusterTest, ReadsTheDaemonSet) {
  add_kured({"--concurrency=2"});
  add_kured({"--concurrency=5"}, "", "reboots");
  EXPECT_EQ(command({}), agent::exit_done);
  EXPECT_THAT(out.text, HasSubstr("max-unavailable: 2\n"));
  EXPECT_THAT(errors.text, HasSubstr("--concurrency=2"));
  EXPECT_EQ(command({"--name", "reboots", "-o", "json"}), agent::exit_done);
  EXPECT_EQ(Json::parse(out.text)["source"], "DaemonSet kube-system/reboots");
}

TEST_F(MigrateClusterTest, ADaemonSetThatIsNotThere) {
  EXPECT_EQ(command({"-n", "ops"}), agent::exit_connection);
  EXPECT_THAT(errors.text,
              AllOf(HasSubstr("there is no DaemonSet ops/kured"), HasSubstr("with -n NAMESPACE and --name NAME")));
  EXPECT_EQ(command({"--hold-lock"}), agent::exit_connection);
}

TEST_F(MigrateClusterTest, TakesAFreeLockAndGivesItBack) {
  add_kured({"--concurrency=1"});
  EXPECT_EQ(command({"--hold-lock"}), agent::exit_done) << errors.text;
  EXPECT_EQ(lock()["nodeID"], std::string(lock_holder));
  EXPECT_EQ(lock()["TTL"], 0);
  EXPECT_EQ(lock()["metadata"], Json({{"unschedulable", false}}));
  EXPECT_THAT(text.text, HasSubstr("kured begins no further node"));
  EXPECT_THAT(out.text, IsEmpty());
  const Json held = lock();
  EXPECT_EQ(command({"--hold-lock"}), agent::exit_done);
  EXPECT_EQ(lock(), held);
  EXPECT_EQ(command({"--release-lock"}), agent::exit_done);
  EXPECT_EQ(annotations(), Json({{"team", "nodes"}}));
  EXPECT_EQ(command({"--release-lock"}), agent::exit_done);
  EXPECT_THAT(text.text, HasSubstr("nobody holds kured's lock"));
}

TEST_F(MigrateClusterTest, TakesAllPlacesOfALockForSeveral) {
  add_kured({"--concurrency=3", "--lock-annotation=weave.works/kured-node-lock"}, R"({"maxOwners":3,"locks":null})");
  EXPECT_EQ(command({"--hold-lock"}), agent::exit_done) << errors.text;
  EXPECT_EQ(lock()["maxOwners"], 3);
  ASSERT_EQ(lock()["locks"].size(), 3U);
  const Json held = lock();
  for (const Json& entry : held["locks"]) EXPECT_EQ(entry["nodeID"], std::string(lock_holder));
  EXPECT_EQ(command({"--release-lock"}), agent::exit_done);
  EXPECT_FALSE(annotations().contains("weave.works/kured-node-lock"));
}

// P5: a lock that a node holds is neither taken nor given back.
TEST_F(MigrateClusterTest, P5_ALockOfANodeStays) {
  const std::string held =
      R"({"nodeID":"n1","metadata":{"unschedulable":false},"created":"2026-11-28T12:00:00Z","TTL":0})";
  add_kured({}, held);
  EXPECT_EQ(command({"--hold-lock"}), agent::exit_not_done);
  EXPECT_THAT(errors.text, HasSubstr("held by n1: it drains, reboots"));
  EXPECT_EQ(command({"--release-lock"}), agent::exit_not_done);
  EXPECT_THAT(errors.text, HasSubstr("held by n1, not by haulout-change-over"));
  EXPECT_EQ(lock(), Json::parse(held));
}

TEST_F(MigrateClusterTest, P5_ALockThatANodeTakesMeanwhileStays) {
  add_kured({});
  const std::string taken =
      R"({"nodeID":"n2","metadata":{"unschedulable":false},"created":"2026-11-28T12:00:00Z","TTL":0})";
  int patches = 0;
  cluster.server().intercept([&](const sim::Call&, const sim::AuditEntry& entry) -> std::optional<http::Response> {
    if (entry.verb != "patch" || entry.resource != "daemonsets" || ++patches > 1) return std::nullopt;
    cluster.patch("daemonsets", "kube-system", "kured",
                  {{"metadata", {{"annotations", {{"weave.works/kured-node-lock", taken}}}}}});
    return std::nullopt;
  });
  EXPECT_EQ(command({"--hold-lock"}), agent::exit_not_done);
  EXPECT_EQ(patches, 1);
  EXPECT_THAT(errors.text, HasSubstr("held by n2"));
  EXPECT_EQ(lock(), Json::parse(taken));
}

TEST_F(MigrateClusterTest, AnotherChangeOfTheDaemonSetIsNoObstacle) {
  add_kured({});
  int patches = 0;
  cluster.server().intercept([&](const sim::Call&, const sim::AuditEntry& entry) -> std::optional<http::Response> {
    if (entry.verb == "patch" && entry.resource == "daemonsets" && ++patches == 1)
      cluster.patch("daemonsets", "kube-system", "kured", {{"metadata", {{"annotations", {{"team", "others"}}}}}});
    return std::nullopt;
  });
  EXPECT_EQ(command({"--hold-lock"}), agent::exit_done) << errors.text;
  EXPECT_EQ(patches, 2);
  EXPECT_EQ(lock()["nodeID"], std::string(lock_holder));
  EXPECT_EQ(annotations()["team"], "others");
}

Json daemon_set_with(const std::vector<std::string>& args, const Json& lock) {
  Json annotations = Json::object();
  if (!lock.is_null()) annotations["weave.works/kured-node-lock"] = lock.is_string() ? lock : Json(lock.dump());
  return {{"kind", "DaemonSet"},
          {"metadata", {{"name", "kured"}, {"resourceVersion", "7"}, {"annotations", annotations}}},
          {"spec", {{"template", {{"spec", {{"containers", {{{"name", "kured"}, {"args", args}}}}}}}}}}};
}

TEST(KuredLockTest, StepsToHold) {
  const Json ours = {{"nodeID", std::string(lock_holder)}, {"TTL", 0}};
  const Json theirs = {{"nodeID", "n1"}, {"created", "2020-01-01T00:00:00Z"}, {"TTL", 1}};
  using What = LockStep::What;
  const std::vector<std::string> one, two = {"--concurrency=2"};
  const struct {
    const char* name;
    std::vector<std::string> args;
    Json lock;
    What what;
  } rows[] = {
      {"free", one, nullptr, What::write},
      {"free for two", two, nullptr, What::write},
      {"ours", one, ours, What::done},
      {"ours twice", two, {{"maxOwners", 2}, {"locks", {ours, ours}}}, What::done},
      {"ours once of two", two, {{"maxOwners", 2}, {"locks", {ours}}}, What::write},
      {"ours, of a time with one place", two, ours, What::write},
      {"a node's", one, theirs, What::refused},
      {"a node's, one of two", two, {{"maxOwners", 2}, {"locks", {theirs}}}, What::refused},
      {"a node's beside ours", two, {{"maxOwners", 2}, {"locks", {ours, theirs}}}, What::refused},
      {"a node's of a time with one place", two, theirs, What::refused},
      {"nobody's", two, {{"maxOwners", 2}, {"locks", Json::array()}}, What::write},
  };
  for (const auto& row : rows) {
    const auto step = step_to_hold(daemon_set_with(row.args, row.lock).dump(), WallTime{});
    ASSERT_TRUE(step) << row.name << step.error().message();
    EXPECT_EQ(step->what, row.what) << row.name << ": " << step->message;
    EXPECT_EQ(step->patch.empty(), row.what != What::write) << row.name;
    if (row.what == What::write) EXPECT_EQ(Json::parse(step->patch)["metadata"]["resourceVersion"], "7") << row.name;
  }
}

TEST(KuredLockTest, ReleasesOnlyTheOwnEntries) {
  const Json ours = {{"nodeID", std::string(lock_holder)}}, theirs = {{"nodeID", "n1"}, {"TTL", 5}};
  const auto step =
      step_to_release(daemon_set_with({"--concurrency=2"}, {{"maxOwners", 2}, {"locks", {ours, theirs}}}).dump());
  ASSERT_TRUE(step);
  const Json left = Json::parse(
      Json::parse(step->patch)["metadata"]["annotations"]["weave.works/kured-node-lock"].get<std::string>());
  EXPECT_EQ(left, Json({{"maxOwners", 2}, {"locks", {theirs}}}));
}

TEST(KuredLockTest, WhatIsNoLockIsLeftAlone) {
  for (const Json& lock : {Json("change-over"), Json("{}"), Json(R"({"nodeID":""})"), Json(R"({"locks":3})"),
                           Json(R"({"locks":[{}]})"), Json("[]"), Json(7)}) {
    const std::string text = daemon_set_with({}, lock).dump();
    ASSERT_FALSE(step_to_hold(text, WallTime{})) << lock;
    ASSERT_FALSE(step_to_release(text)) << lock;
    EXPECT_THAT(step_to_hold(text, WallTime{}).error().message(), HasSubstr("not a lock of kured")) << lock;
  }
  EXPECT_FALSE(step_to_hold(daemon_set_with({"--concurrency=many"}, nullptr).dump(), WallTime{}));
  Json without = daemon_set_with({}, nullptr);
  without["metadata"].erase("resourceVersion");
  EXPECT_FALSE(step_to_hold(without.dump(), WallTime{}));
}

TEST(KuredLockTest, AnotherAnnotation) {
  Json daemon_set = daemon_set_with({"--lock-annotation=ops/lock"}, nullptr);
  const auto step = step_to_hold(daemon_set.dump(), WallTime{});
  ASSERT_TRUE(step);
  EXPECT_TRUE(Json::parse(step->patch)["metadata"]["annotations"].contains("ops/lock"));
}

}  // namespace
}  // namespace haulout::cli
