#include "cli/options/command_line.hpp"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "agent/process/process.hpp"
#include "cli/options/flags.hpp"
#include "cli/options/help.hpp"

namespace haulout::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Args = std::vector<std::string>;
using drain::DryRunMode;
using drain::Treatment;

Settings parsed(const Args& args) {
  auto result = parse_command_line("/usr/bin/haulout", args);
  if (const auto* immediate = std::get_if<Immediate>(&result)) {
    ADD_FAILURE() << immediate->err << immediate->out;
    return {};
  }
  return std::get<Settings>(result);
}

Settings drained_with(Args flags) {
  flags.insert(flags.begin(), {"drain", "n1"});
  return parsed(flags);
}

Immediate refused(const Args& args, std::string_view program = "haulout") {
  auto result = parse_command_line(program, args);
  if (const auto* immediate = std::get_if<Immediate>(&result)) return *immediate;
  ADD_FAILURE() << "was accepted";
  return {};
}

TEST(CommandLineTest, DefaultsAreThoseOfKubectl) {
  const Settings settings = parsed({"drain", "n1"});
  EXPECT_EQ(settings.command, Command::drain);
  EXPECT_THAT(settings.nodes, ElementsAre("n1"));
  const drain::Options& options = settings.drain;
  EXPECT_EQ(options.policy.daemon_set, Treatment::refuse);
  EXPECT_EQ(options.policy.orphaned_daemon_set, Treatment::refuse);
  EXPECT_EQ(options.policy.unmanaged, Treatment::refuse);
  EXPECT_EQ(options.policy.empty_dir, Treatment::refuse);
  EXPECT_EQ(options.policy.finished, Treatment::evict);
  EXPECT_EQ(options.policy.do_not_disrupt, Treatment::evict);
  EXPECT_EQ(options.policy.cluster_api_labels, drain::ClusterApiLabels::off) << "kubectl evicts these pods";
  EXPECT_FALSE(options.policy.skip_terminating_after);
  EXPECT_TRUE(options.policy.pod_selector.empty());
  EXPECT_EQ(options.dry_run, DryRunMode::none);
  EXPECT_FALSE(options.grace_seconds);
  EXPECT_FALSE(options.timeout);
  EXPECT_EQ(options.max_concurrent, 0u) << "unlimited";
  EXPECT_EQ(options.settle, Duration(5s));
  EXPECT_EQ(options.page_size, 500u);
  EXPECT_FALSE(options.delete_instead_of_evict);
  EXPECT_FALSE(options.restore_cordon_on_failure);
  EXPECT_TRUE(options.fail_fast);
  EXPECT_EQ(options.volumes, drain::VolumeWait::off) << "kubectl does not wait for them";
  EXPECT_EQ(settings.output, OutputFormat::text);
}

struct FlagRow {
  Args args;
  std::function<bool(const Settings&)> holds;
};

TEST(CommandLineTest, EveryFlag) {
  const auto untouched = [](const Settings& s) { return s.verbosity == 0 && !s.drain.timeout; };
  const std::vector<FlagRow> rows = {
      {{"--chunk-size=0"}, [](const Settings& s) { return s.drain.page_size == 0; }},
      {{"--chunk-size", "20"}, [](const Settings& s) { return s.drain.page_size == 20; }},
      {{"--delete-emptydir-data"}, [](const Settings& s) { return s.drain.policy.empty_dir == Treatment::evict; }},
      {{"--disable-eviction"}, [](const Settings& s) { return s.drain.delete_instead_of_evict; }},
      {{"--dry-run=client"}, [](const Settings& s) { return s.drain.dry_run == DryRunMode::client; }},
      {{"--dry-run=server"}, [](const Settings& s) { return s.drain.dry_run == DryRunMode::server; }},
      {{"--dry-run=none"}, [](const Settings& s) { return s.drain.dry_run == DryRunMode::none; }},
      {{"--force"},
       [](const Settings& s) {
         return s.drain.policy.unmanaged == Treatment::evict && s.drain.policy.orphaned_daemon_set == Treatment::evict;
       }},
      {{"--force=false"}, [](const Settings& s) { return s.drain.policy.unmanaged == Treatment::refuse; }},
      {{"--force", "--force=F"}, [](const Settings& s) { return s.drain.policy.unmanaged == Treatment::refuse; }},
      {{"--grace-period", "-1"}, [](const Settings& s) { return !s.drain.grace_seconds; }},
      {{"--grace-period=-900"}, [](const Settings& s) { return !s.drain.grace_seconds; }},
      {{"--grace-period=0"}, [](const Settings& s) { return s.drain.grace_seconds == 0; }},
      {{"--grace-period=900"}, [](const Settings& s) { return s.drain.grace_seconds == 900; }},
      {{"--ignore-daemonsets"}, [](const Settings& s) { return s.drain.policy.daemon_set == Treatment::skip; }},
      {{"--pod-selector=app=web,tier!=db"},
       [](const Settings& s) { return s.drain.policy.pod_selector.requirements().size() == 2; }},
      {{"--pod-selector="}, [](const Settings& s) { return s.drain.policy.pod_selector.empty(); }},
      {{"--skip-wait-for-delete-timeout=30"},
       [](const Settings& s) { return s.drain.policy.skip_terminating_after == Duration(30s); }},
      {{"--skip-wait-for-delete-timeout", "-1"},
       [](const Settings& s) { return !s.drain.policy.skip_terminating_after; }},
      {{"--timeout", "-1s"},
       [](const Settings& s) {
         return s.drain.timeout && *s.drain.timeout > Duration::zero() && *s.drain.timeout < 1ms;
       }},
      {{"--as-user-extra=a=b=c", "--as-user-extra", "a=d"},
       [](const Settings& s) {
         return s.connection.as_user_extra ==
                std::vector<std::pair<std::string, std::string>>{{"a", "b=c"}, {"a", "d"}};
       }},
      {{"--username=jane"}, [](const Settings& s) { return s.connection.username == "jane"; }},
      {{"--password", "secret"}, [](const Settings& s) { return s.connection.password == "secret"; }},
      {{"--warnings-as-errors"}, [](const Settings& s) { return s.warnings_as_errors; }},
      {{"--v=99"}, [](const Settings& s) { return s.verbosity == 99; }},
      {{"--cache-dir", "/x"}, untouched},
      {{"--disable-compression"}, untouched},
      {{"--kuberc", "off"}, untouched},
      {{"--log-flush-frequency=5s"}, untouched},
      {{"--match-server-version"}, untouched},
      {{"--profile=none"}, untouched},
      {{"--profile-output=profile.pprof"}, untouched},
      {{"--vmodule=a=1"}, untouched},
      {{"--skip-wait-for-delete-timeout=0"}, [](const Settings& s) { return !s.drain.policy.skip_terminating_after; }},
      {{"--timeout", "5m"}, [](const Settings& s) { return s.drain.timeout == Duration(5min); }},
      {{"--timeout=0"}, [](const Settings& s) { return !s.drain.timeout; }},
      {{"--drain-order", "app=db=10", "--drain-order=tier=-1"},
       [](const Settings& s) { return s.drain.order.size() == 2 && s.drain.order[1].order == -1; }},
      {{"--evict-daemonset-pods", "app=logs", "--evict-daemonset-pods=app=csi"},
       [](const Settings& s) { return s.drain.policy.evict_daemon_sets.size() == 2; }},
      {{"--pod-rule", "kind:Job=wait-completed=2h", "--pod-rule=namespace:batch,app in (a,b)=skip"},
       [](const Settings& s) {
         return s.drain.policy.rules.size() == 2 && s.drain.policy.rules[0].limit == Duration(2h) &&
                s.drain.policy.rules[1].ns == "batch" && s.drain.policy.rules[1].action == drain::PodAction::skip;
       }},
      {{"--cluster-api-labels=wait"},
       [](const Settings& s) { return s.drain.policy.cluster_api_labels == drain::ClusterApiLabels::wait; }},
      {{"--gangs=wait"}, [](const Settings& s) { return s.drain.policy.gangs == Treatment::park; }},
      {{"--gangs", "refuse"}, [](const Settings& s) { return s.drain.policy.gangs == Treatment::refuse; }},
      {{"--gangs=evict"}, [](const Settings& s) { return s.drain.policy.gangs == Treatment::evict; }},
      {{"--max-concurrent=7"}, [](const Settings& s) { return s.drain.max_concurrent == 7; }},
      {{"--max-concurrent=unlimited"}, [](const Settings& s) { return s.drain.max_concurrent == 0; }},
      {{"-o", "json"}, [](const Settings& s) { return s.output == OutputFormat::json; }},
      {{"-ojsonl"}, [](const Settings& s) { return s.output == OutputFormat::jsonl; }},
      {{"--output=text"}, [](const Settings& s) { return s.output == OutputFormat::text; }},
      {{"--respect-do-not-disrupt"},
       [](const Settings& s) { return s.drain.policy.do_not_disrupt == Treatment::park; }},
      {{"--settle=1.5s"}, [](const Settings& s) { return s.drain.settle == Duration(1500ms); }},
      {{"--settle=0"}, [](const Settings& s) { return s.drain.settle == Duration::zero(); }},
      {{"--timeout=3s"}, [](const Settings& s) { return s.drain.settle == Duration(1500ms); }},
      {{"--timeout=1m"}, [](const Settings& s) { return s.drain.settle == Duration(5s); }},
      {{"--timeout=6s", "--settle=5s"}, [](const Settings& s) { return s.drain.settle == Duration(5s); }},
      {{"--timeout=1s", "--settle=0"}, [](const Settings& s) { return s.drain.settle == Duration::zero(); }},
      {{"--pinned=leave"}, [](const Settings& s) { return s.drain.policy.pinned == drain::Treatment::skip; }},
      {{"--parallel=5"}, [](const Settings& s) { return s.parallel == 5; }},
      {{"--timeline", "t.svg"}, [](const Settings& s) { return s.timeline == "t.svg"; }},
      {{"--uncordon-on-failure"}, [](const Settings& s) { return s.drain.restore_cordon_on_failure; }},
      {{"--wait-volumes"}, [](const Settings& s) { return s.drain.volumes == drain::VolumeWait::required; }},
      {{"--wait-volumes=false"}, [](const Settings& s) { return s.drain.volumes == drain::VolumeWait::off; }},
      {{"--serialize-volumes"},
       [](const Settings& s) {
         return s.drain.volume_turns == drain::VolumeWait::required && s.drain.volumes == drain::VolumeWait::off;
       }},
      {{"--serialize-volumes=false"}, [](const Settings& s) { return s.drain.volume_turns == drain::VolumeWait::off; }},
      {{"--check-fit=block"}, [](const Settings& s) { return s.drain.fit == drain::FitPolicy::block; }},
      {{"--check-fit=off"}, [](const Settings& s) { return s.drain.fit == drain::FitPolicy::off; }},
      {{"--volume-limit=10m"}, [](const Settings& s) { return s.drain.volume_limit == Duration(10min); }},
      {{"--reattach-limit=90s", "--wait-volumes"},
       [](const Settings& s) { return s.drain.reattach_limit == Duration(90s); }},
      {{"--stuck-volume=fail"}, [](const Settings& s) { return s.drain.end_at_volume_limit; }},
      {{"--stuck-volume=wait"}, [](const Settings& s) { return !s.drain.end_at_volume_limit; }},
      {{"--canary=30s"}, [](const Settings& s) { return s.drain.guards.canary == Duration(30s); }},
      {{"--max-unavailable-per-controller=25%"},
       [](const Settings& s) { return s.drain.guards.max_unavailable == drain::Share{25, true}; }},
      {{"--max-unavailable-per-controller=2"},
       [](const Settings& s) { return s.drain.guards.max_unavailable == drain::Share{2, false}; }},
      {{"--surge=off"}, [](const Settings& s) { return s.drain.guards.surge == drain::Surge::off; }},
      {{"--surge=single-replica"},
       [](const Settings& s) { return s.drain.guards.surge == drain::Surge::single_replica; }},
      {{"--surge=closed-budget"},
       [](const Settings& s) { return s.drain.guards.surge == drain::Surge::closed_budget; }},
      {{"--surge=all"}, [](const Settings& s) { return s.drain.guards.surge == drain::Surge::all; }},
      {{"--surge-limit=90s"}, [](const Settings& s) { return s.drain.guards.surge_limit == Duration(90s); }},
      {{"--eviction-requests=off"},
       [](const Settings& s) { return s.drain.eviction_requests == drain::EvictionRequests::off; }},
      {{"--eviction-requests=responders"},
       [](const Settings& s) { return s.drain.eviction_requests == drain::EvictionRequests::responders; }},
      {{"--eviction-request-limit=90s"},
       [](const Settings& s) { return s.drain.eviction_request_limit == Duration(90s); }},
      {{"--single-replica=warn"},
       [](const Settings& s) { return s.drain.guards.single_replica == drain::SingleReplica::warn; }},
      {{"--single-replica=block"},
       [](const Settings& s) { return s.drain.guards.single_replica == drain::SingleReplica::block; }},
      {{"--as=jane"}, [](const Settings& s) { return s.connection.as == "jane"; }},
      {{"--as-group=a", "--as-group", "b"},
       [](const Settings& s) { return s.connection.as_groups == std::vector<std::string>{"a", "b"}; }},
      {{"--as-uid=u1"}, [](const Settings& s) { return s.connection.as_uid == "u1"; }},
      {{"--certificate-authority=ca"}, [](const Settings& s) { return s.connection.certificate_authority == "ca"; }},
      {{"--client-certificate=c"}, [](const Settings& s) { return s.connection.client_certificate == "c"; }},
      {{"--client-key=k"}, [](const Settings& s) { return s.connection.client_key == "k"; }},
      {{"--cluster=c"}, [](const Settings& s) { return s.connection.cluster == "c"; }},
      {{"--context=x", "--context=y"}, [](const Settings& s) { return s.connection.context == "y"; }},
      {{"--insecure-skip-tls-verify"}, [](const Settings& s) { return s.connection.insecure_skip_tls_verify; }},
      {{"--kubeconfig", "f"}, [](const Settings& s) { return s.connection.kubeconfig == "f"; }},
      {{"--log-format=json"}, [](const Settings& s) { return s.log_format == agent::LogFormat::json; }},
      {{"-n", "ops"}, [](const Settings& s) { return s.connection.ns == "ops"; }},
      {{"--request-timeout=10s"}, [](const Settings& s) { return s.request_timeout == Duration(10s); }},
      {{"--request-timeout=0"}, [](const Settings& s) { return !s.request_timeout; }},
      {{"--request-timeout=30"}, [](const Settings& s) { return s.request_timeout == Duration(30s); }},
      {{"-s", "https://h:1"}, [](const Settings& s) { return s.connection.server == "https://h:1"; }},
      {{"--tls-server-name=t"}, [](const Settings& s) { return s.connection.tls_server_name == "t"; }},
      {{"--token=secret"}, [](const Settings& s) { return s.connection.token == "secret"; }},
      {{"--user=u"}, [](const Settings& s) { return s.connection.user == "u"; }},
      {{"-v=2"}, [](const Settings& s) { return s.verbosity == 2; }},
      {{"--v=1"}, [](const Settings& s) { return s.verbosity == 1; }},
      {{"-v", "3"}, [](const Settings& s) { return s.verbosity == 3; }},
  };
  std::set<std::string> covered;
  for (const FlagRow& row : rows) {
    const Settings settings = drained_with(row.args);
    EXPECT_TRUE(row.holds(settings)) << ::testing::PrintToString(row.args);
    EXPECT_THAT(settings.nodes, ElementsAre("n1")) << "a flag swallowed the node: " << row.args[0];
    covered.insert(row.args[0].substr(0, row.args[0].find('=')));
  }
  std::vector<Flag> flags = command_flags(Command::drain);
  for (const Flag& flag : connection_flags()) flags.push_back(flag);
  for (const Flag& flag : flags) {
    const bool tested = covered.count("--" + flag.name) + covered.count(fmt::format("-{}", flag.letter)) != 0 ||
                        flag.name == "selector";
    EXPECT_TRUE(tested) << "--" << flag.name << " has no row here";
  }
}

TEST(CommandLineTest, RehearseTakesTheFlagsOfADrainAndItsOwn) {
  const auto settings =
      parsed({"rehearse", "n1", "-f", "a.json", "--snapshot=-", "--ready-after=5s", "--terminate-within", "2s",
              "--detach-within=40s", "--attach-within", "0s", "--ignore-daemonsets", "-o", "json"});
  EXPECT_EQ(settings.command, Command::rehearse);
  EXPECT_THAT(settings.rehearse.snapshots, ElementsAre("a.json", "-"));
  EXPECT_EQ(settings.rehearse.assumptions.ready_after, Duration(5s));
  EXPECT_EQ(settings.rehearse.assumptions.terminate_within, Duration(2s));
  EXPECT_EQ(settings.rehearse.assumptions.detach_within, Duration(40s));
  EXPECT_EQ(settings.rehearse.assumptions.attach_within, Duration(0s));
  EXPECT_EQ(settings.drain.policy.daemon_set, Treatment::skip);
  EXPECT_EQ(settings.output, OutputFormat::json);
}

TEST(CommandLineTest, FleetLockServeTakesPoolsAndAnAddress) {
  const auto settings = parsed(
      {"fleetlock-serve", "--listen=:80", "--pool", "web", "--pool=edge_1", "--max-unavailable", "3", "-n", "ops"});
  EXPECT_EQ(settings.command, Command::fleetlock_serve);
  EXPECT_EQ(settings.fleetlock.listen, ":80");
  EXPECT_THAT(settings.fleetlock.pools, ElementsAre("web", "edge_1"));
  EXPECT_EQ(settings.fleetlock.max_unavailable, 3);
  EXPECT_EQ(settings.haulout_namespace(), "ops");
}

TEST(CommandLineTest, AuditTakesNoNodes) {
  const auto settings = parsed({"audit", "-f", "a.json", "--config=haulout.yaml", "--team-label", "squad",
                                "--team-label=part-of", "--rehearse-at-most", "7", "--baseline=old.json", "--fail-on",
                                "risk", "--ready-after=5s", "-o", "sarif"});
  EXPECT_EQ(settings.command, Command::audit);
  EXPECT_THAT(settings.rehearse.snapshots, ElementsAre("a.json"));
  EXPECT_EQ(settings.rehearse.config_file, "haulout.yaml");
  EXPECT_EQ(settings.rehearse.assumptions.ready_after, Duration(5s));
  EXPECT_THAT(settings.audit.team_labels, ElementsAre("squad", "part-of"));
  EXPECT_EQ(settings.audit.rehearse_at_most, 7);
  EXPECT_EQ(settings.audit.baseline, "old.json");
  EXPECT_EQ(settings.audit.fail_on, audit::Severity::risk);
  EXPECT_FALSE(settings.audit.no_rehearse);
  EXPECT_EQ(settings.output, OutputFormat::sarif);
  EXPECT_TRUE(parsed({"audit", "--no-rehearse"}).audit.no_rehearse);
}

TEST(CommandLineTest, RehearseAllIsAboutAFleet) {
  const auto settings =
      parsed({"rehearse", "--all", "--config=haulout.yaml", "--max-unavailable", "10%", "--ramp=1,2", "--reboot-time",
              "5m", "--detach-within=40s", "--timeline", "fleet.svg", "-f", "a.json"});
  EXPECT_TRUE(settings.rehearse.all);
  EXPECT_EQ(settings.rehearse.config_file, "haulout.yaml");
  EXPECT_EQ(settings.rehearse.max_unavailable, "10%");
  EXPECT_EQ(settings.rehearse.ramp, "1,2");
  EXPECT_EQ(settings.rehearse.reboot_time, Duration(5min));
  EXPECT_EQ(settings.rehearse.assumptions.detach_within, Duration(40s));
  EXPECT_EQ(settings.timeline, "fleet.svg");
  EXPECT_TRUE(settings.nodes.empty());
}

TEST(CommandLineTest, RehearseAllComparesSettings) {
  const auto several = parsed({"rehearse", "--all", "--compare", "max-unavailable=1, 2,10%", "--ramp=1,2"});
  EXPECT_EQ(several.rehearse.compared_option, "max-unavailable");
  EXPECT_THAT(several.rehearse.compared_values, ElementsAre("1", "2", "10%"));
  EXPECT_FALSE(several.rehearse.plan);
  const auto planned = parsed({"rehearse", "--all", "--plan", "--compare=soak=0s,5m", "--max-unavailable=2"});
  EXPECT_TRUE(planned.rehearse.plan);
  EXPECT_EQ(planned.rehearse.compared_option, "soak");
  EXPECT_EQ(planned.rehearse.max_unavailable, "2");
  for (const char* values : {"max-concurrent=1,unlimited", "roll-out-order=any,label:rank", "surge=off,all"})
    EXPECT_THAT(parsed({"rehearse", "--all", "--compare", values}).rehearse.compared_values, SizeIs(2)) << values;
}

TEST(CommandLineTest, GrammarOfPflag) {
  EXPECT_THAT(parsed({"drain", "--force", "n1", "--timeout", "1s", "n2"}).nodes, ElementsAre("n1", "n2"));
  EXPECT_THAT(parsed({"drain", "node/n1", "nodes/n2", "n1"}).nodes, ElementsAre("n1", "n2"));
  EXPECT_THAT(parsed({"drain", "--pod-selector=", "n1"}).nodes, ElementsAre("n1"))
      << "an empty value does not take the next argument";
  EXPECT_THAT(parsed({"drain", "--", "--force"}).nodes, ElementsAre("--force"));
  EXPECT_THAT(parsed({"drain", "drain"}).nodes, ElementsAre("drain")) << "a node may be called like a command";
  EXPECT_THAT(parsed({"drain", "version"}).nodes, ElementsAre("version"));
  EXPECT_EQ(parsed({"drain", "-l", "pool=old"}).selector, "pool=old");
  EXPECT_EQ(parsed({"drain", "-lpool=old"}).selector, "pool=old");
  EXPECT_EQ(parsed({"drain", "-l=pool=old"}).selector, "pool=old");
  EXPECT_EQ(parsed({"drain", "--selector=pool in (a,b),!old"}).selector, "pool in (a,b),!old");
  EXPECT_EQ(parsed({"--context", "prod", "cordon", "n1"}).command, Command::cordon);
  EXPECT_EQ(parsed({"--context", "prod", "cordon", "n1"}).connection.context, "prod");
  EXPECT_EQ(parsed({"uncordon", "n1", "--dry-run=server"}).drain.dry_run, DryRunMode::server);
}

struct BadRow {
  Args args;
  std::string says;
};

TEST(CommandLineTest, BadInputIsExitCode2AndSaysWhatToDo) {
  const std::vector<BadRow> rows = {
      {{}, "no command is given"},
      {{"drain"}, "error: USAGE: drain NODE [flags]"},
      {{"cordon"}, "error: USAGE: cordon NODE [flags]"},
      {{"uncordon", "--"}, "error: USAGE: uncordon NODE [flags]"},
      {{"request-reboot"}, "error: no node is given"},
      {{"drain", "-l", ""}, "you must provide one or more resources"},
      {{"cordon", "--selector="}, "you must provide one or more resources"},
      {{"drain", "n1", "-l", "a=b"}, "cannot specify both a node name and a --selector option"},
      {{"drain", "n1", "--ignore-daemonset"}, "did you mean --ignore-daemonsets?"},
      {{"drain", "n1", "--timout=5s"}, "did you mean --timeout?"},
      {{"drain", "n1", "-x"}, "unknown flag -x"},
      {{"cordon", "n1", "--force"}, "unknown flag --force"},
      {{"drian", "n1"}, "did you mean drain?"},
      {{"apply", "n1"}, "unknown command \"apply\""},
      {{"get", "nodes"}, "unknown command \"get\"\n"},
      {{"drain", "n1", "--as-user-extra=scopes"}, "write KEY=VALUE"},
      {{"help", "cordn"}, "did you mean cordon?"},
      {{"audit", "n1"}, "audit looks at all nodes"},
      {{"migrate"}, "name of the program from which you change over: kured"},
      {{"migrate", "fluo"}, "name of the program from which you change over: kured"},
      {{"migrate", "kured", "kured"}, "name of the program from which you change over: kured"},
      {{"migrate", "kured", "-f", ""}, "--filename"},
      {{"migrate", "kured", "--name", "A/B"}, "it must be the name of a DaemonSet"},
      {{"migrate", "kured", "--hold-lock", "--release-lock"}, "exclude each other"},
      {{"migrate", "kured", "--hold-lock", "-f", "a.yaml"}, "not a file: remove --filename"},
      {{"migrate", "kured", "--release-lock", "-o", "json"}, "prints no document"},
      {{"fleetlock-serve", "n1"}, "fleetlock-serve takes no arguments"},
      {{"fleetlock-serve", "--listen", "localhost:80"}, "--listen"},
      {{"fleetlock-serve", "--pool", "a/b"}, "--pool"},
      {{"fleetlock-serve", "--max-unavailable", "10%"}, "--max-unavailable"},
      {{"fleetlock-serve", "--max-unavailable", "0"}, "--max-unavailable"},
      {{"audit", "--no-rehearse", "--rehearse-at-most", "7"}, "exclude each other"},
      {{"audit", "--fail-on", "everything"}, "--fail-on"},
      {{"rehearse"}, "the whole fleet with --all"},
      {{"rehearse", "--all", "n1"}, "remove --all"},
      {{"rehearse", "--all", "-l", "pool=old"}, "remove --all"},
      {{"rehearse", "--all", "--ignore-daemonsets"}, "--ignore-daemonsets applies to a single drain"},
      {{"rehearse", "--all", "--timeout", "5m"}, "name the file with --config"},
      {{"rehearse", "--all", "--max-unavailable", "many"}, "--max-unavailable"},
      {{"rehearse", "--all", "--ramp", "1,0"}, "--ramp"},
      {{"rehearse", "n1", "--compare=max-unavailable=1,2"}, "--compare applies only to the update of a whole fleet"},
      {{"rehearse", "n1", "--plan"}, "--plan applies only to the update of a whole fleet: add --all"},
      {{"rehearse", "--all", "--compare", "1,2"}, "name an option of the agents and its values, like max-unavailable="},
      {{"rehearse", "--all", "--compare="}, "name an option of the agents and its values, like max-unavailable="},
      {{"rehearse", "--all", "--compare=max-unavailible=1"}, "\"max-unavailible\": did you mean max-unavailable?"},
      {{"rehearse", "--all", "--compare=pool=a,b"}, "pool cannot be compared: rehearse once for each value"},
      {{"rehearse", "--all", "--compare=ramp=1,2"}, "the values of ramp have commas themselves"},
      {{"rehearse", "--all", "--compare=max-unavailable="}, "no value to compare: write them after the ="},
      {{"rehearse", "--all", "--compare=max-unavailable=1,,2"}, "one of the values is empty"},
      {{"rehearse", "--all", "--compare=max-unavailable=1,%"},
       "max-unavailable \"%\": the number is missing; write a number of nodes like 1, or a percentage of the pool"},
      {{"rehearse", "--all", "--compare=max-unavailable=1,200%"}, "\"200%\": a percentage is at most 100%"},
      {{"rehearse", "--all", "--compare=max-unavailable=2,1,2"}, "2 is there twice: remove one"},
      {{"rehearse", "--all", "--compare=soak=1m,60s"}, "1m and 60s are the same: remove one"},
      {{"rehearse", "--all", "--compare=soak=1m", "--compare=surge=all"}, "second comparison"},
      {{"rehearse", "--all", "--compare=max-unavailable=1", "--max-unavailable=2"},
       "--compare and --max-unavailable exclude each other"},
      {{"rehearse", "--all", "--plan", "--max-unavailable=2"}, "--plan and --max-unavailable exclude each other"},
      {{"rehearse", "--all", "--plan", "--timeline=a.svg"}, "--plan and --timeline exclude each other"},
      {{"rehearse", "n1", "--ramp=1,2"}, "--ramp applies only to the update of a whole fleet: add --all"},
      {{"rehearse", "n1", "--config", "haulout.yaml"},
       "--config applies only to the update of a whole fleet: add --all"},
      {{"rehearse", "n1", "--max-unavailable=2"},
       "--max-unavailable applies only to the update of a whole fleet: add --all"},
      {{"rehearse", "n1", "--reboot-time=2m"}, "--reboot-time applies only to the update of a whole fleet: add --all"},
      {{"drain", "n1", "--timeout=5s", "--settle=5s"}, "raise --timeout above --settle"},
      {{"drain", "n1", "--settle=1m", "--timeout=30s"}, "use --settle=0"},
      {{"drain", "n1", "--settle=5s", "--timeout=-1s"}, "with this --timeout each drain ends at once"},
      {{"drain", "n1", "--timeout=5x"}, "unknown unit \"x\""},
      {{"drain", "n1", "--timeout=5"}, "the unit is missing"},
      {{"drain", "n1", "--timeout=9999999999h"}, "longer than 292 years"},
      {{"drain", "n1", "--timeout"}, "--timeout needs a value"},
      {{"drain", "n1", "--timeout="}, "no duration is given"},
      {{"drain", "n1", "--reattach-limit=90s"}, "add --wait-volumes, --serialize-volumes, or both"},
      {{"drain", "n1", "--settle=-1s"}, "must not be negative"},
      {{"drain", "n1", "--max-concurrent=0"}, "from 1 to"},
      {{"drain", "n1", "--max-concurrent=-3"}, "or unlimited"},
      {{"drain", "n1", "--max-concurrent=many"}, "or unlimited"},
      {{"drain", "n1", "--max-concurrent=99999999999999999999"}, "from 1 to"},
      {{"drain", "n1", "--grace-period=99999999999999999999"}, "it must be from"},
      {{"drain", "n1", "--grace-period=1.5"}, "not a whole number"},
      {{"drain", "n1", "--skip-wait-for-delete-timeout=5s"}, "not a whole number"},
      {{"drain", "n1", "--chunk-size=-1"}, "from 0 to"},
      {{"drain", "n1", "--dry-run"}, "--dry-run=client"},
      {{"drain", "n1", "--dry-run", "client"}, "without a value"},
      {{"drain", "n1", "--dry-run=maybe"}, "none, client, server"},
      {{"drain", "n1", "-o", "yaml"}, "text, json, jsonl"},
      {{"drain", "n1", "--log-format=xml"}, "text, json"},
      {{"drain", "n1", "--force=maybe"}, "true or false"},
      {{"drain", "n1", "--force="}, "true or false"},
      {{"drain", "n1", "-v", "much"}, "not a whole number"},
      {{"drain", "n1", "--pod-selector=a in (b"}, "--pod-selector"},
      {{"drain", "-l", "a in (b"}, "-l"},
      {{"drain", ""}, "not a node name"},
      {{"drain", "pod/x"}, "write NAME or node/NAME"},
      {{"drain", "node/"}, "not a node name"},
      {{"version", "x"}, "takes no arguments"},
  };
  for (const BadRow& row : rows) {
    const Immediate immediate = refused(row.args);
    EXPECT_EQ(immediate.exit_code, 2) << ::testing::PrintToString(row.args);
    EXPECT_THAT(immediate.err, HasSubstr(row.says)) << ::testing::PrintToString(row.args);
    EXPECT_EQ(immediate.out, "") << "mistakes go to stderr";
  }
}

TEST(CommandLineTest, FlagsOfACommandStandBehindIt) {
  EXPECT_THAT(refused({"--force", "drain", "n1"}).err, HasSubstr("precede the command"));
  EXPECT_THAT(refused({"drain", "n1", "-1"}).err, HasSubstr("unknown flag -1"));
  EXPECT_THAT(refused({"drain", "n1", "---force"}).err, HasSubstr("unknown flag"));
  EXPECT_THAT(refused({"drain", "n1", "--version"}).err, HasSubstr("unknown flag --version"));
  EXPECT_EQ(refused({"drain", "-h", "--timeout"}).exit_code, 0) << "help comes first";
}

TEST(CommandLineTest, HelpAndVersionAreNoMistakes) {
  for (const Args& args : std::vector<Args>{{"--help"},
                                            {"-h"},
                                            {"help"},
                                            {"drain", "--help"},
                                            {"drain", "-h", "--nonsense"},
                                            {"help", "drain"},
                                            {"cordon", "-h"},
                                            {"version"},
                                            {"--version"}}) {
    const Immediate immediate = refused(args);
    EXPECT_EQ(immediate.exit_code, 0) << ::testing::PrintToString(args);
    EXPECT_NE(immediate.out, "") << ::testing::PrintToString(args);
    EXPECT_EQ(immediate.err, "") << ::testing::PrintToString(args);
  }
  EXPECT_THAT(refused({"drain", "n1", "--kubeconfig", "-h", "--nonsense"}).err, HasSubstr("--nonsense"))
      << "a value that looks like a flag is a value";
}

TEST(CommandLineTest, TheVersionForPrograms) {
  const auto json = nlohmann::json::parse(refused({"version", "-o", "json"}).out);
  EXPECT_EQ(json["version"], agent::version());
  EXPECT_THAT(json["platform"].get<std::string>(), ::testing::StartsWith("linux/"));
  if (json.contains("commit"))
    EXPECT_THAT(json["commit"].get<std::string>(), ::testing::MatchesRegex("[0-9a-f]{40}(-dirty)?"));
  if (json.contains("buildDate")) EXPECT_TRUE(k8s::parse_time(json["buildDate"].get<std::string>()));
  EXPECT_THAT(refused({"version", "-o", "yaml"}).err, HasSubstr("text, json"));
  EXPECT_THAT(refused({"version", "--help"}).out, HasSubstr("--output"));
}

TEST(CommandLineTest, ThereIsNoHelpForAnUnknownCommand) {
  for (const Args& args : std::vector<Args>{{"dran", "--help"}, {"--help", "dran"}, {"dran", "-h", "--force"}}) {
    const Immediate immediate = refused(args);
    EXPECT_EQ(immediate.exit_code, 2) << ::testing::PrintToString(args);
    EXPECT_EQ(immediate.out, "") << ::testing::PrintToString(args);
    EXPECT_THAT(immediate.err, HasSubstr("dran")) << ::testing::PrintToString(args);
  }
  EXPECT_EQ(refused({"--nonsense", "--help"}).exit_code, 0) << "help comes before a mistake in flags";
}

TEST(CommandLineTest, HelpNamesEveryFlag) {
  for (const Command command : {Command::drain, Command::cordon, Command::uncordon}) {
    const std::string help = help_text(command, "haulout");
    for (const Flag& flag : command_flags(command)) EXPECT_THAT(help, HasSubstr("--" + flag.name));
    for (const Flag& flag : connection_flags()) EXPECT_THAT(help, HasSubstr("--" + flag.name));
  }
}

TEST(CommandLineTest, APluginShowsItselfAsOne) {
  EXPECT_THAT(refused({"drain", "--help"}, "/opt/bin/kubectl-haulout").out, HasSubstr("kubectl haulout drain NODE"));
  EXPECT_THAT(refused({"drain"}, "/opt/bin/kubectl-haulout").err, HasSubstr("'kubectl haulout drain --help'"));
  EXPECT_THAT(refused({"drain"}, "/opt/bin/haulout").err, HasSubstr("'haulout drain --help'"));
  EXPECT_THAT(refused({"explain", "n1", "n2"}, "/opt/bin/kubectl-haulout").err, HasSubstr("`kubectl haulout status`"));
}

struct Row {
  Args given;
  Args args;
  Args words;
};

TEST(ArgumentsTest, PflagSpellingsBecomeThoseOfCli11) {
  const std::vector<Row> rows = {
      {{}, {}, {}},
      {{"drain", "n1"}, {"drain", "n1"}, {}},
      {{"-l=a=b"}, {"-l", "a=b"}, {}},
      {{"-l="}, {"-l", ""}, {}},
      {{"-la=b"}, {"-la=b"}, {}},
      {{"-l", "a=b"}, {"-l", "a=b"}, {}},
      {{"--selector=a=b"}, {"--selector", "a=b"}, {}},
      {{"--pod-selector=", "n1"}, {"--pod-selector", "", "n1"}, {}},
      {{"--force", "n1"}, {"--force", "true", "n1"}, {}},
      {{"--force=false"}, {"--force", "false"}, {}},
      {{"--force="}, {"--force", ""}, {}},
      {{"--dry-run", "client"}, {"--dry-run", "", "client"}, {}},
      {{"--dry-run=client"}, {"--dry-run", "client"}, {}},
      {{"a", "--", "-l=x", "--", "b"}, {"a"}, {"-l=x", "--", "b"}},
      {{"--timeout", "--", "n1"}, {"--timeout", "--", "n1"}, {}},
      {{"--token", "-l=x"}, {"--token", "-l=x"}, {}},
      {{"--timeout"}, {"--timeout"}, {}},
      {{"--nonsense=1", "-x=1", "-", ""}, {"--nonsense=1", "-x=1", "-", ""}, {}},
  };
  std::vector<Flag> flags = command_flags(Command::drain);
  for (Flag& flag : connection_flags()) flags.push_back(std::move(flag));
  for (const Row& row : rows) {
    const Arguments result = normalise_arguments(flags, row.given);
    EXPECT_EQ(result.args, row.args) << ::testing::PrintToString(row.given);
    EXPECT_EQ(result.words, row.words) << ::testing::PrintToString(row.given);
  }
}

}  // namespace
}  // namespace haulout::cli
