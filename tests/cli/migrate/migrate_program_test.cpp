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
             {"spec",
              {{"containers", {{{"name", "kured"}, {"image", "kured:1.23.0"}, {"args", args}}}},
               {"tolerations", {{{"key", "node-role.kubernetes.io/control-plane"}, {"effect", "NoSchedule"}}}}}}}}}}});
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

// With a place of its own left, a node goes on. The other places are taken, so that it is the last one.
TEST_F(MigrateClusterTest, P5_ALockForSeveralIsTakenBesideANode) {
  const Json theirs = {{"nodeID", "n1"}, {"created", "2026-11-28T12:00:00Z"}, {"TTL", 0}};
  add_kured({"--concurrency=2"}, Json({{"maxOwners", 2}, {"locks", {theirs}}}).dump());
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_EQ(command({"--hold-lock"}), agent::exit_not_done);
    EXPECT_THAT(errors.text, HasSubstr("error: kured begins no further node, but n1 still has its place"));
    ASSERT_EQ(lock()["locks"].size(), 3U);
    EXPECT_EQ(lock()["locks"][0], theirs);
  }
  EXPECT_EQ(command({"--release-lock"}), agent::exit_done);
  EXPECT_EQ(lock(), Json({{"maxOwners", 2}, {"locks", {theirs}}}));
}

TEST_F(MigrateClusterTest, ALockOnAnotherDaemonSet) {
  add_kured({"--ds-name=locks"});
  EXPECT_EQ(command({"--hold-lock"}), agent::exit_connection);
  EXPECT_THAT(errors.text, HasSubstr("has its lock on the DaemonSet kube-system/locks"));
  add_kured({}, "", "locks");
  EXPECT_EQ(command({"--hold-lock"}), agent::exit_done) << errors.text;
  EXPECT_EQ(annotations(), Json({{"team", "nodes"}}));
  EXPECT_TRUE(annotations("locks").contains("weave.works/kured-node-lock"));
  EXPECT_EQ(command({"--release-lock"}), agent::exit_done);
  EXPECT_EQ(annotations("locks"), Json({{"team", "nodes"}}));
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

constexpr WallTime when_taken = std::chrono::sys_days(std::chrono::year(2026) / 6 / 30);

// The entry of a node that has taken the lock at that time. kured writes the limit in nanoseconds.
Json entry_of_node(std::int64_t seconds, const std::string& node = "n1") {
  return {{"nodeID", node},
          {"metadata", {{"unschedulable", false}}},
          {"created", "2026-06-30T00:00:00.5Z"},
          {"TTL", seconds * 1'000'000'000}};
}

Result<LockStep> hold(const Json& daemon_set, WallTime now) {
  return step_to_hold(daemon_set.dump(), daemon_set.dump(), now);
}

Json lock_in(const LockStep& step) {
  return Json::parse(
      Json::parse(step.patch)["metadata"]["annotations"]["weave.works/kured-node-lock"].get<std::string>());
}

std::vector<std::string> holders_in(const Json& lock) {
  std::vector<std::string> names;
  for (const Json& entry : lock["locks"]) names.push_back(entry["nodeID"]);
  return names;
}

TEST(KuredLockTest, StepsToHold) {
  const Json ours = {{"nodeID", std::string(lock_holder)}, {"TTL", 0}};
  const Json theirs = entry_of_node(60);
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
      {"a node's, one of two", two, {{"maxOwners", 2}, {"locks", {theirs}}}, What::write},
      {"a node's beside one of ours", two, {{"maxOwners", 2}, {"locks", {ours, theirs}}}, What::write},
      {"a node's beside ours", two, {{"maxOwners", 2}, {"locks", {theirs, ours, ours}}}, What::refused},
      {"a node's of a time with two places", one, {{"maxOwners", 2}, {"locks", {theirs}}}, What::refused},
      {"a node's of a time with one place", two, theirs, What::refused},
      {"nobody's", two, {{"maxOwners", 2}, {"locks", Json::array()}}, What::write},
  };
  for (const auto& row : rows) {
    const auto step = hold(daemon_set_with(row.args, row.lock), when_taken);
    ASSERT_TRUE(step) << row.name << step.error().message();
    EXPECT_EQ(step->what, row.what) << row.name << ": " << step->message;
    EXPECT_EQ(step->patch.empty(), row.what != What::write) << row.name;
    if (row.what == What::write) EXPECT_EQ(Json::parse(step->patch)["metadata"]["resourceVersion"], "7") << row.name;
  }
}

// kured gives no place away if there are as many entries as places, also if one more place than that is held.
TEST(KuredLockTest, TakesAllPlacesBesideThoseOfNodes) {
  const std::string ours(lock_holder);
  const Json theirs = entry_of_node(0);
  const auto step = hold(daemon_set_with({"--concurrency=2"}, {{"maxOwners", 2}, {"locks", {theirs}}}), when_taken);
  ASSERT_TRUE(step);
  EXPECT_FALSE(step->complete);
  EXPECT_THAT(step->message, HasSubstr("kured begins no further node, but n1 still has its place"));
  const Json lock = lock_in(*step);
  EXPECT_EQ(lock["maxOwners"], 2);
  EXPECT_EQ(holders_in(lock), (std::vector<std::string>{"n1", ours, ours}));
  EXPECT_EQ(lock["locks"][0], theirs);

  const auto again = hold(daemon_set_with({"--concurrency=2"}, lock), when_taken);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->what, LockStep::What::refused);
  EXPECT_EQ(again->message, step->message);

  // The place of a node with a limit is free for another node when its time is over.
  const auto limited =
      hold(daemon_set_with({"--concurrency=2"}, {{"maxOwners", 2}, {"locks", {entry_of_node(60)}}}), when_taken);
  ASSERT_TRUE(limited);
  EXPECT_THAT(limited->message, HasSubstr("kured begins no further node until its --lock-ttl is over, but n1"));
}

// By kured's own rule. So kured would begin the next node.
TEST(KuredLockTest, AnEntryWhoseTimeIsOverIsFree) {
  using namespace std::chrono_literals;
  const std::string ours(lock_holder);
  const Json theirs = entry_of_node(60);
  for (const WallTime before : {when_taken - 1h, when_taken + 60s})
    EXPECT_EQ(hold(daemon_set_with({}, theirs), before)->what, LockStep::What::refused);
  const auto one = hold(daemon_set_with({}, theirs), when_taken + 61s);
  ASSERT_TRUE(one);
  EXPECT_TRUE(one->complete);
  EXPECT_EQ(lock_in(*one)["nodeID"], ours);
  EXPECT_THAT(one->message, HasSubstr("The time of n1 was over (--lock-ttl)"));

  const Json locks = {entry_of_node(60), entry_of_node(3600, "n2")};
  const Json two = daemon_set_with({"--concurrency=2"}, {{"maxOwners", 2}, {"locks", locks}});
  const auto beside = hold(two, when_taken + 61s);
  ASSERT_TRUE(beside);
  EXPECT_EQ(holders_in(lock_in(*beside)), (std::vector<std::string>{"n2", ours, ours}));
  const auto all = hold(two, when_taken + 2h);
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->complete);
  EXPECT_EQ(holders_in(lock_in(*all)), (std::vector<std::string>{ours, ours}));

  // What does not say when its time is over has no limit.
  for (const char* field : {"created", "TTL"}) {
    Json without = theirs;
    without[field] = nullptr;
    EXPECT_EQ(hold(daemon_set_with({}, without), when_taken + 2h)->what, LockStep::What::refused) << field;
  }
}

TEST(KuredLockTest, TheDaemonSetWithTheLock) {
  const struct {
    std::vector<std::string> args;
    LockPlace place;
  } rows[] = {
      {{}, {"kube-system", "kured"}},
      {{"--ds-name=locks"}, {"kube-system", "locks"}},
      {{"--ds-namespace=ops", "--ds-name", "reboots"}, {"ops", "reboots"}},
      {{"--ds-namespace=$(NAMESPACE)"}, {"own", "kured"}},
  };
  for (const auto& row : rows) {
    Json daemon_set = daemon_set_with(row.args, nullptr);
    daemon_set["metadata"]["namespace"] = "own";
    Json& container = daemon_set["spec"]["template"]["spec"]["containers"][0];
    const Json from_pod = {{"fieldRef", {{"fieldPath", "metadata.namespace"}}}};
    container["env"] = {{{"name", "NAMESPACE"}, {"valueFrom", from_pod}}};
    const auto place = place_of_lock(daemon_set.dump());
    ASSERT_TRUE(place) << place.error().message();
    EXPECT_EQ(*place, row.place) << place->ns << "/" << place->name;

    const Json from_map = {{"configMapKeyRef", {{"name", "m"}, {"key", "k"}}}};
    for (const char* variable : {"KURED_DS_NAME", "KURED_DS_NAMESPACE"}) {
      container["env"] = {{{"name", variable}, {"valueFrom", from_map}}};
      const auto unread = place_of_lock(daemon_set.dump());
      ASSERT_FALSE(unread);
      EXPECT_THAT(unread.error().message(), HasSubstr("was not read (it is in ConfigMap m, key k)"));
    }
  }
}

TEST(KuredLockTest, WithoutANameThereIsNoLock) {
  for (const char* arg : {"--ds-name=", "--ds-namespace="}) {
    const auto place = place_of_lock(daemon_set_with({arg}, nullptr).dump());
    ASSERT_FALSE(place) << arg;
    EXPECT_THAT(place.error().message(), HasSubstr("kured has no lock"));
  }
}

TEST(KuredLockTest, ReleasesOnlyTheOwnEntries) {
  const Json ours = {{"nodeID", std::string(lock_holder)}}, theirs = {{"nodeID", "n1"}, {"TTL", 5}};
  const std::string daemon_set =
      daemon_set_with({"--concurrency=2"}, {{"maxOwners", 2}, {"locks", {ours, theirs}}}).dump();
  const auto step = step_to_release(daemon_set, daemon_set);
  ASSERT_TRUE(step);
  EXPECT_EQ(lock_in(*step), Json({{"maxOwners", 2}, {"locks", {theirs}}}));
}

TEST(KuredLockTest, WhatIsNoLockIsLeftAlone) {
  for (const Json& lock : {Json("change-over"), Json("{}"), Json(R"({"nodeID":""})"), Json(R"({"locks":3})"),
                           Json(R"({"locks":[{}]})"), Json("[]"), Json(7)}) {
    const std::string text = daemon_set_with({}, lock).dump();
    ASSERT_FALSE(step_to_hold(text, text, WallTime{})) << lock;
    ASSERT_FALSE(step_to_release(text, text)) << lock;
    EXPECT_THAT(step_to_hold(text, text, WallTime{}).error().message(), HasSubstr("not a lock of kured")) << lock;
  }
  EXPECT_FALSE(hold(daemon_set_with({"--concurrency=many"}, nullptr), WallTime{}));
  EXPECT_TRUE(hold(daemon_set_with({"--concurrency=1000"}, nullptr), WallTime{}));
  EXPECT_FALSE(hold(daemon_set_with({"--concurrency=1001"}, nullptr), WallTime{}));
  Json without = daemon_set_with({}, nullptr);
  without["metadata"].erase("resourceVersion");
  EXPECT_FALSE(hold(without, WallTime{}));
}

TEST(KuredLockTest, AnotherAnnotation) {
  Json daemon_set = daemon_set_with({"--lock-annotation=ops/lock"}, nullptr);
  const auto step = hold(daemon_set, WallTime{});
  ASSERT_TRUE(step);
  EXPECT_TRUE(Json::parse(step->patch)["metadata"]["annotations"].contains("ops/lock"));
}

}  // namespace
}  // namespace haulout::cli
