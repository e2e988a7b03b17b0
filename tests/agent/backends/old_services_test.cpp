#include "agent/backends/old_services.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Lines of needrestart 3.6 on Debian 12.
TEST(OldServices, AreThoseOfNeedrestart) {
  const auto services = parse_needrestart(
      "NEEDRESTART-VER: 3.6\n"
      "NEEDRESTART-KCUR: 6.1.0-28-amd64\n"
      "NEEDRESTART-KEXP: 6.1.0-30-amd64\n"
      "NEEDRESTART-KSTA: 3\n"
      "NEEDRESTART-SVC: dbus.service\n"
      "NEEDRESTART-SVC: getty@tty1.service\n"
      "NEEDRESTART-SVC: systemd-manager\n"
      "NEEDRESTART-SVC: dev-disk\\x2dby.service\n"
      "NEEDRESTART-SVC: dbus.service\n"
      "NEEDRESTART-CONT: LXC web1\n"
      "NEEDRESTART-SESS: root @ session #28017\n");
  ASSERT_TRUE(services) << services.error().message();
  EXPECT_THAT(*services,
              ElementsAre("dbus.service", "getty@tty1.service", "systemd-manager", "dev-disk\\x2dby.service"));
}

TEST(OldServices, ThatHaveFailedAreFound) {
  const std::vector<std::string> two{"a.service", "b.service"};
  struct Row {
    const char* output;
    std::vector<std::string> failed;
  };
  for (const Row& row : std::vector<Row>{{"running\n\nrunning\n", {}},
                                         {"failed\n\nrunning\n", {"a.service"}},
                                         {"running\n\nauto-restart\n", {"b.service"}},
                                         {"auto-restart-queued\n\nfailed", two},
                                         {"exited\ndead\n", {}},
                                         {"start-pre\n\nunfailed\n", {}}}) {
    const auto failed = parse_states(two, row.output);
    ASSERT_TRUE(failed) << row.output << failed.error().message();
    EXPECT_EQ(*failed, row.failed) << row.output;
  }
  for (const char* output : {"", "\n", "failed\n", "failed\n\nfailed\n\nfailed\n"}) {
    const auto failed = parse_states(two, output);
    ASSERT_FALSE(failed) << output;
    EXPECT_EQ(failed.error().code(), Errc::decode);
  }
}

TEST(OldServices, NoneIsSaidByNeedrestartItself) {
  EXPECT_THAT(parse_needrestart("NEEDRESTART-VER: 3.6\n").value(), IsEmpty());
  for (const char* text :
       {"", "\n", "NEEDRESTART-SVC: dbus.service\n", "UNKN - This plugin needs to be run as root!\n"})
    EXPECT_FALSE(parse_needrestart(text)) << text;
}

TEST(OldServices, ALineThatCannotBeReadIsAnError) {
  for (const char* name : {"", "-r", "a b.service", "a;b", "$(a)", "a\tb", "\xff"}) {
    const auto services = parse_needrestart("NEEDRESTART-VER: 3.6\nNEEDRESTART-SVC: " + std::string(name) + "\n");
    ASSERT_FALSE(services) << name;
    EXPECT_EQ(services.error().code(), Errc::decode);
    EXPECT_THAT(services.error().message(), HasSubstr("NEEDRESTART-SVC:"));
  }
}

}  // namespace
}  // namespace haulout::agent
