// Tests what combinations of options mean. Each row that is refused has a similar row that is accepted.
#include "tests/agent/config/support.hpp"

namespace haulout::agent {
namespace {

using ::testing::HasSubstr;

const std::string ok;

struct Row {
  FlagValues flags;
  std::string says;  // part of the error message; `ok` if there is none
};

void check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const std::string problems = problems_of(row.flags);
    if (row.says == ok)
      EXPECT_EQ(problems, "") << ::testing::PrintToString(row.flags);
    else
      EXPECT_THAT(problems, HasSubstr(row.says)) << ::testing::PrintToString(row.flags);
    EXPECT_EQ(problems.find('\n'), std::string::npos) << problems;
  }
}

TEST(ContradictionsTest, Turns) {
  check({
      {{{"slots", "fleetlock"}}, "set fleetlock-url"},
      {{{"slots", "fleetlock"}, {"fleetlock-url", "http://f"}}, ok},
      {{{"fleetlock-url", "http://f"}}, "set slots to fleetlock, or remove fleetlock-url"},
      {{{"slots", "none"}, {"fleetlock-url", "http://f"}}, "set slots to fleetlock, or remove fleetlock-url"},
      {{{"authority", "kubelet"}}, "the kubelet's credentials may not write Leases"},
      {{{"authority", "kubelet"}, {"slots", "none"}, {"surge", "all"}},
       "the kubelet's credentials may not change pods: remove surge"},
      {{{"authority", "kubelet"}, {"slots", "none"}}, ok},
      {{{"authority", "kubelet"}, {"slots", "fleetlock"}, {"fleetlock-url", "http://f"}}, ok},
      {{{"pool", "a"}, {"pool-label", "b"}}, "remove one of them"},
      {{{"pool-label", "b"}}, ok},
      {{{"slots", "none"}, {"max-unavailable", "2"}}, "only slots lease uses it"},
      {{{"slots", "none"}, {"zone-label", "z"}}, "only slots lease uses it"},
      {{{"max-unavailable", "2"}, {"zone-label", "z"}}, ok},
      {{{"slots", "none"}, {"ramp", "1,2"}}, "ramp is set, but only slots lease uses it"},
      {{{"slots", "fleetlock"}, {"fleetlock-url", "http://f"}, {"ramp", "1,2"}}, "only slots lease uses it"},
      {{{"ramp", "1,2,5%"}}, ok},
      {{{"slots", "none"}, {"halt-after", "2"}}, "halt-after is set, but only slots lease uses it"},
      {{{"halt-after", "2"}}, ok},
      {{{"ramp", "1,2"}, {"halt-after", "2"}}, ok},
      {{{"slots", "none"}, {"roll-out-order", "zone"}}, "roll-out-order is set, but only slots lease uses it"},
      {{{"slots", "none"}, {"roll-out-order", "any"}}, ok},
      {{{"roll-out-order", "label:example.com/rank"}}, ok},
  });
}

TEST(ContradictionsTest, PackageUpdates) {
  check({
      {{{"update", "after-drain"}}, ok},
      {{{"update", "after-drain"}, {"backend", "debian"}}, ok},
      {{{"update", "after-drain"}, {"backend", "flatcar"}}, ok},
      {{{"update", "before-drain"}, {"backend", "bootc"}}, ok},
      {{{"update", "before-drain"}, {"backend", "ostree"}, {"pin", "2026.2 (53cd57046a39)"}}, ok},
      {{{"update", "before-drain"}}, ok},
      {{{"update", "before-drain"}, {"backend", "debian"}}, "set update to after-drain"},
      {{{"update", "before-drain"}, {"backend", "bottlerocket"}}, "set update to off"},
      {{{"update", "after-drain"}, {"sentinel", "/s"}}, "cannot install updates"},
      {{{"update", "after-drain"}, {"sentinel-command", "/s"}}, "cannot install updates"},
      {{{"update", "after-drain"}, {"backend", "rauc"}}, "set update-bundle"},
      {{{"update", "after-drain"}, {"backend", "rauc"}, {"update-bundle", "/a.raucb"}}, ok},
      {{{"update", "after-drain"}, {"update-bundle", "/a.raucb"}}, ok},
      {{{"update", "after-drain"}, {"backend", "bootc"}, {"update-bundle", "/a"}}, "remove update-bundle"},
      {{{"backend", "rauc"}, {"update-bundle", "/a.raucb"}}, "remove update-bundle"},
      {{{"update", "after-drain"}, {"backend", "bootc"}, {"update-packages", "security"}}, "remove update-packages"},
      {{{"update", "off"}, {"backend", "flatcar"}}, ok},
      {{{"pin", "2"}}, "remove pin, or set update"},
      {{{"update", "before-drain"}, {"pin", "2"}}, ok},
      {{{"update", "after-drain"}, {"backend", "sysupdate"}, {"pin", "2"}}, ok},
      {{{"update", "after-drain"}, {"backend", "debian"}, {"pin", "2"}}, "remove pin"},
      {{{"update", "before-drain"}, {"backend", "transactional-update"}, {"pin", "2"}}, "remove pin"},
      {{{"update-packages", "security"}}, "remove update-packages, or set update"},
      {{{"update", "after-drain"}, {"update-packages", "security"}}, ok},
      {{{"update", "after-drain"}, {"backend", "bootc"}, {"update-services", "reboot"}}, "remove update-services"},
      {{{"update-services", "reboot"}}, "remove update-services, or set update"},
      {{{"update", "after-drain"}, {"update-services", "reboot"}}, ok},
      {{{"update-limit", "2h"}}, "remove update-limit, or set update"},
      {{{"update", "after-drain"}, {"update-limit", "2h"}}, ok},
      {{{"backend", "debian"}, {"update-attempts", "5"}}, "remove update-attempts, or set update"},
      {{{"update-attempts", "5"}}, ok},
      {{{"update", "after-drain"}, {"update-attempts", "5"}}, ok},
      {{{"backend", "bottlerocket"}, {"update-attempts", "5"}}, ok},
  });
}

TEST(ContradictionsTest, OperatingSystem) {
  check({
      {{{"backend", "file"}}, "set sentinel"},
      {{{"backend", "file"}, {"sentinel", "/s"}}, ok},
      {{{"backend", "command"}}, "set sentinel-command"},
      {{{"backend", "command"}, {"sentinel-command", "/s"}}, ok},
      {{{"backend", "debian"}, {"sentinel", "/s"}}, "set backend to file, or remove sentinel"},
      {{{"backend", "debian"}, {"sentinel-command", "/s"}}, "set backend to command, or remove sentinel-command"},
      {{{"sentinel", "/s"}, {"sentinel-command", "/s"}}, "remove one of them"},
      {{{"sentinel-exit-codes", "1=yes"}}, "set sentinel-command, or remove sentinel-exit-codes"},
      {{{"sentinel-exit-codes", "1=yes"}, {"sentinel-command", "/s"}}, ok},
      {{{"sentinel-interval", "1h"}}, "set sentinel-command, or remove sentinel-interval"},
      {{{"sentinel-interval", "1h"}, {"sentinel-command", "/s"}}, ok},
      {{{"reboot-method", "logind,command"}}, "set reboot-command"},
      {{{"reboot-method", "logind,command"}, {"reboot-command", "/r"}}, ok},
      {{{"reboot-command", "/r"}}, "add command to reboot-method, or remove reboot-command"},
      {{{"reboot-method", "logind,none"}}, "keep only \"none\""},
      {{{"reboot-method", "kexec,none"}}, "keep only \"none\""},
      {{{"reboot-method", "kexec,systemd"}}, ok},
      {{{"reboot-method", "kexec,command"}, {"reboot-command", "/r"}}, ok},
      {{{"reboot-method", "none"}}, ok},
  });
}

TEST(ContradictionsTest, Prometheus) {
  const std::pair<std::string, std::string> url = {"prometheus-url", "http://p"};
  const std::pair<std::string, std::string> tls = {"prometheus-url", "https://p"};
  check({
      {{{"prometheus-token-file", "/t"}}, "set prometheus-url"},
      {{{"prometheus-fail-mode", "open"}}, "set prometheus-url"},
      {{{"prometheus-max-age", "1h"}}, "set prometheus-url"},
      {{{"prometheus-query", "up"}}, "set prometheus-url"},
      {{url, {"prometheus-token-file", "/t"}, {"prometheus-fail-mode", "open"}, {"prometheus-max-age", "1h"}}, ok},
      {{url, {"prometheus-username", "u"}}, "prometheus-username and prometheus-password-file need each other"},
      {{url, {"prometheus-password-file", "/p"}}, "prometheus-username and prometheus-password-file need each other"},
      {{url, {"prometheus-username", "u"}, {"prometheus-password-file", "/p"}}, ok},
      {{url, {"prometheus-username", "u"}, {"prometheus-password-file", "/p"}, {"prometheus-token-file", "/t"}},
       "two ways to log in"},
      {{tls, {"prometheus-cert-file", "/c"}}, "prometheus-cert-file and prometheus-key-file need each other"},
      {{tls, {"prometheus-key-file", "/k"}}, "prometheus-cert-file and prometheus-key-file need each other"},
      {{tls, {"prometheus-cert-file", "/c"}, {"prometheus-key-file", "/k"}, {"prometheus-ca-file", "/ca"}}, ok},
      {{url, {"prometheus-ca-file", "/ca"}}, "prometheus-url is not https"},
  });
}

TEST(ContradictionsTest, TheRest) {
  check({
      {{{"drain-deadline", "5s"}}, "make drain-deadline longer, or settle shorter"},
      {{{"drain-deadline", "6s"}}, ok},
      {{{"drain-deadline", "1s"}, {"settle", "0"}}, ok},
      {{{"drain-deadline", "2m"}, {"lb-drain-wait", "2m"}}, "lb-drain-wait shorter"},
      {{{"drain-deadline", "2m"}, {"lb-drain-wait", "1m"}}, ok},
      {{{"lb-drain-wait", "2m"}}, ok},
      {{{"drain-deadline", "1h"}, {"pod-rule", "kind:Job=wait-completed=1h"}}, "set a longer drain-deadline"},
      {{{"drain-deadline", "1h"}, {"pod-rule", "kind:Job=wait-completed=59m"}}, ok},
      {{{"drain-deadline", "1h"}, {"pod-rule", "kind:Job=wait-completed"}}, ok},
      {{{"settle", "1h"}}, ok},
      {{{"backoff", "1h"}}, ok},
      {{{"backoff", "61m"}}, "shorten it"},
      {{{"check", "true"}, {"release", "true"}}, "give only one of them"},
      {{{"check", "true"}, {"release", "false"}}, ok},
      {{{"release", "true"}}, ok},
      {{{"verify-condition", "NetworkReady"}, {"verify-condition", "NetworkReady=False"}},
       "verify-condition names one condition with two statuses, so no node could be verified: remove one of them"},
      {{{"verify-condition", "NetworkReady"}, {"verify-condition", "NetworkReady=True"}}, ok},
      {{{"verify-condition", "NetworkReady"}, {"verify-condition", "KernelDeadlock=False"}}, ok},
  });
}

TEST(ContradictionsTest, ComeFromDifferentSourcesToo) {
  EXPECT_THAT(problems_of({{"slots", "fleetlock"}}, {}, a_file("pool: a\n")), HasSubstr("set fleetlock-url"));
  EXPECT_EQ(problems_of({{"slots", "fleetlock"}}, {{"HAULOUT_FLEETLOCK_URL", "http://f"}}), "");
  EXPECT_EQ(problems_of({{"pool-label", ""}}, {}, a_file("pool: a\npool-label: b\n")), "") << "taken back by the flag";
}

TEST(ContradictionsTest, ASentinelSaysWhichBackEndReadsIt) {
  EXPECT_EQ(config_of({{"sentinel", "/s"}}).backend, BackendChoice::file);
  EXPECT_EQ(config_of({{"sentinel-command", "/s"}}).backend, BackendChoice::command);
  EXPECT_EQ(config_of({}).backend, BackendChoice::automatic);
}

}  // namespace
}  // namespace haulout::agent
