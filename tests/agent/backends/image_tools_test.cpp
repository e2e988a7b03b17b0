#include "agent/backends/image_tools.hpp"

#include <fmt/ranges.h>
#include <gmock/gmock.h>

namespace haulout::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ProgramEnd printed(std::string output, int status = 0) {
  return {.success = status == 0, .status = status, .output = std::move(output)};
}

// Output of rpm-ostree about an available update, as rpm-ostree(1) describes it and as users of Silverblue and CoreOS
// have published it. It was not recorded from a run of rpm-ostree.
const std::string rpm_ostree_offer =
    "2 metadata, 0 content objects fetched; 788 B transferred in 2 seconds; 0 bytes content written\n"
    "AvailableUpdate:\n"
    "        Version: 41.20250302.3.0 (2025-03-10T19:31:04Z)\n"
    "         Commit: d8bab818f5abcfb58d2c038614965bf26426d55667e52018fcd295b9bfbc88b4\n"
    "   GPGSignature: Valid signature by 8C5BA6990BDB26E19F2A1A801161AE6945719A39\n"
    "  SecAdvisories: 1 moderate\n"
    "           Diff: 4 upgraded, 1 added\n";

TEST(RpmOstreeCheck, Rows) {
  EXPECT_EQ(*read_rpm_ostree_check({printed(rpm_ostree_offer)}),
            (Updates{.need = Need::yes, .count = 1, .first = {"4 upgraded, 1 added"}, .target = "41.20250302.3.0"}));
  EXPECT_EQ(read_rpm_ostree_check({printed("AvailableUpdate:\n  Commit: d8bab\n")})->target, "d8bab");
  EXPECT_EQ(read_rpm_ostree_check({printed("No updates available.\n", 77)})->need, Need::no);
  EXPECT_EQ(read_rpm_ostree_check({printed("No updates available.\n")})->need, Need::no);
  // P4: output that cannot be read does not count as "no update".
  for (const char* const text : {"", "AvailableUpdate:\n", "error: no\n", "Version:\n"})
    EXPECT_FALSE(read_rpm_ostree_check({printed(text)})) << text;
}

std::string bootc_image(const std::string& digest, const std::string& version) {
  return R"({"image":{"image":"quay.io/example/os:42","transport":"registry"},"version":)" +
         (version.empty() ? "null" : '"' + version + '"') +
         R"(,"timestamp":"2026-03-01T00:00:00Z","imageDigest":"sha256:)" + digest + R"(","architecture":"amd64"})";
}

// An entry of `status`, which bootc calls booted, staged or rollback.
std::string bootc_entry(const std::string& image, const std::string& cached = "null", bool download_only = false) {
  return R"({"image":)" + image + R"(,"cachedUpdate":)" + cached +
         R"(,"incompatible":false,"pinned":false,"softRebootCapable":false,"downloadOnly":)" +
         (download_only ? "true" : "false") +
         R"(,"store":"ostreeContainer","ostree":{"checksum":"aa","deploySerial":0}})";
}

ProgramEnd bootc_status(const std::string& booted, const std::string& staged = "null",
                        const std::string& rollback = "null", bool queued = false) {
  return printed(R"({"apiVersion":"org.containers.bootc/v1","kind":"BootcHost","metadata":{"name":"host"},)"
                 R"("spec":{"image":{"image":"quay.io/example/os:42","transport":"registry"},"bootOrder":"default"},)"
                 R"("status":{"staged":)" +
                 staged + R"(,"booted":)" + booted + R"(,"rollback":)" + rollback + R"(,"rollbackQueued":)" +
                 (queued ? "true" : "false") + R"(,"type":"bootcHost"}})");
}

const std::string one = bootc_image("1111111111111111", "42.1"), two = bootc_image("2222222222222222", "42.2");

TEST(BootcStatus, Images) {
  const OsRelease any;
  const std::string first = "42.1 (sha256:111111111111)", second = "42.2 (sha256:222222222222)";
  const std::pair<ProgramEnd, Images> rows[] = {
      {bootc_status(bootc_entry(one)), {first, ""}},
      {bootc_status(bootc_entry(one), bootc_entry(two)), {first, second}},
      // Only downloaded: a reboot discards it.
      {bootc_status(bootc_entry(one), bootc_entry(two, "null", true)), {first, ""}},
      {bootc_status(bootc_entry(two), "null", bootc_entry(one)), {second, ""}},
      {bootc_status(bootc_entry(two), "null", bootc_entry(one), true), {second, first}},
      {bootc_status(bootc_entry(bootc_image("3333", ""))), {"sha256:3333", ""}},
      // Two builds with the same label are two versions.
      {bootc_status(bootc_entry(one), bootc_entry(bootc_image("2222222222222222", "42.1"))),
       {first, "42.1 (sha256:222222222222)"}},
      {bootc_status(bootc_entry(one), bootc_entry("null")), {first, "an image without a digest", false}},
  };
  for (const auto& [answer, images] : rows) {
    const auto read = read_bootc_images({answer}, any);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(*read, images) << answer.output;
  }
  for (const char* const text : {"", "[]", "{}", "null", R"({"status":{"booted":null}})", R"({"status":[]})"})
    EXPECT_FALSE(read_bootc_images({printed(text)}, any)) << text;
}

TEST(BootcStatus, Offers) {
  const ProgramEnd check = printed("");
  const auto offer = [&](const ProgramEnd& status) { return *read_bootc_offer({check, status}); };
  EXPECT_EQ(offer(bootc_status(bootc_entry(one))).need, Need::no);
  EXPECT_EQ(offer(bootc_status(bootc_entry(one, one))).need, Need::no);
  EXPECT_EQ(offer(bootc_status(bootc_entry(one, two))),
            (Updates{.need = Need::yes, .count = 1, .target = "42.2 (sha256:222222222222)"}));
  // The offered image is no update if it is staged already. It is one if it is only downloaded, or newer than the
  // staged image.
  EXPECT_EQ(offer(bootc_status(bootc_entry(one, two), bootc_entry(two))).need, Need::no);
  EXPECT_EQ(offer(bootc_status(bootc_entry(one, two), bootc_entry(two, two, true))).need, Need::yes);
  EXPECT_EQ(offer(bootc_status(bootc_entry(one, two), bootc_entry(two, bootc_image("4444", "42.4")))).target,
            "42.4 (sha256:4444)");
  EXPECT_FALSE(read_bootc_offer({check, printed("{}")}));
}

TEST(Snapshots, Rows) {
  const OsRelease any;
  const auto read = [&](const char* text) { return read_snapshots({printed(text)}, any); };
  // The form is that of snapper 0.10.6 of Debian 13.
  EXPECT_EQ(
      *read(R"({"root":[{"number":0,"default":false,"active":false},{"number":7,"default":true,"active":true}]})"),
      (Images{"snapshot 7", ""}));
  EXPECT_EQ(
      *read(R"({"root":[{"number":7,"default":false,"active":true},{"number":8,"default":true,"active":false}]})"),
      (Images{"snapshot 7", "snapshot 8"}));
  for (const char* const text :
       {"", "{}", R"({"root":[]})", R"({"root":{}})", R"({"root":[{"number":-1}]})", R"({"root":[{"default":true}]})",
        R"({"root":[{"number":7,"default":true,"active":false}]})"})
    EXPECT_FALSE(read(text)) << text;
}

TEST(ZypperPlan, Rows) {
  const auto read = [](const std::string& text) { return read_zypper_plan({printed(text)}); };
  const std::string head = "<?xml version='1.0'?>\n<stream>\n<message type=\"info\">Computing ...</message>\n";
  // Printed by zypper 1.14.89 of Debian 13 with a repository of one package.
  const auto none = read(head +
                         "<install-summary download-size=\"0\" packages-to-change=\"0\" need-restart=\"0\" "
                         "need-reboot=\"0\">\n</install-summary>\n<message type=\"info\">Nothing to do.</message>\n"
                         "</stream>\n");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->need, Need::no);
  const auto some = read(head +
                         "<install-summary download-size=\"1\" packages-to-change=\"2\" need-reboot=\"true\">\n"
                         "<to-upgrade>\n<solvable status=\"other-version\" type=\"package\" name=\"bash\" "
                         "edition=\"5.2.37-1.1\" arch=\"x86_64\" repository=\"r1\" edition-old=\"5.2.32-1.1\" "
                         "arch-old=\"noarch\" summary=\"A "
                         "name=&quot;x\">\n<description>x</description></solvable>\n"
                         "</to-upgrade>\n<to-install>\n<solvable type=\"package\" name=\"libnew1\" edition=\"1-1\"/>\n"
                         "</to-install>\n</install-summary>\n</stream>\n");
  ASSERT_TRUE(some);
  EXPECT_EQ(*some, (Updates{.need = Need::yes, .count = 2, .first = {"bash 5.2.32-1.1 to 5.2.37-1.1", "libnew1 1-1"}}));
  EXPECT_EQ(some->target, "") << "packages have no version of the whole system";
  // P4: output that was cut off is not "no update".
  for (const std::string& text : {std::string(), head, std::string("</stream>")}) EXPECT_FALSE(read(text)) << text;
}

// Printed by rauc 1.13 of Debian 13, before and after `rauc install` of a bundle.
const std::string rauc_before =
    R"({"compatible":"thing","variant":"","booted":"A","boot_primary":"rootfs.0","slots":[)"
    R"({"rootfs.1":{"class":"rootfs","device":"/dev/vda3","type":"raw","bootname":"B","state":"inactive","parent":null,)"
    R"("mountpoint":null,"boot_status":"good","slot_status":{"bundle":{"compatible":null}}}},)"
    R"({"rootfs.0":{"class":"rootfs","device":"/dev/vda2","type":"raw","bootname":"A","state":"booted","parent":null,)"
    R"("mountpoint":null,"boot_status":"good","slot_status":{"bundle":{"compatible":null}}}}],)"
    R"("artifact-repositories":[]})";
const std::string rauc_after =
    R"({"compatible":"thing","variant":"","booted":"A","boot_primary":"rootfs.1","slots":[)"
    R"({"rootfs.1":{"class":"rootfs","device":"/dev/vda3","type":"raw","bootname":"B","state":"inactive","parent":null,)"
    R"("mountpoint":null,"boot_status":"bad","slot_status":{"bundle":{"compatible":"thing","version":"2026.2",)"
    R"("description":"a test","build":"20260302","hash":"26c1"},"checksum":{"sha256":"ad7f","size":4096},)"
    R"("installed":{"timestamp":"2026-11-26T11:56:31Z","count":1},"activated":{"timestamp":"2026-11-26T11:56:31Z",)"
    R"("count":1},"status":"ok"}}},)"
    R"({"rootfs.0":{"class":"rootfs","device":"/dev/vda2","type":"raw","bootname":"A","state":"booted","parent":null,)"
    R"("mountpoint":null,"boot_status":"good","slot_status":{"bundle":{"compatible":null}}}}],)"
    R"("artifact-repositories":[]})";

std::string rauc_slot(const std::string& name, const std::string& version, const std::string& state) {
  return "{\"" + name + R"(":{"state":")" + state + R"(","slot_status":{"bundle":{"version":")" + version + "\"}}}}";
}

TEST(Rauc, Images) {
  const OsRelease any;
  const auto read = [&](const std::string& text) { return read_rauc_images({printed(text)}, any); };
  EXPECT_EQ(*read(rauc_before), (Images{"rootfs.0", ""})) << "the image of the factory has no bundle";
  EXPECT_EQ(*read(rauc_after), (Images{"rootfs.0", "2026.2"}));
  const std::string a = rauc_slot("rootfs.0", "1", "booted"), b = rauc_slot("rootfs.1", "1", "inactive");
  EXPECT_TRUE(read(rauc_after)->next_is_shared);
  const std::string nameless = rauc_slot("rootfs.1", "", "inactive");
  const std::string running = rauc_slot("rootfs.0", "1", "booted");
  EXPECT_EQ(*read(R"({"boot_primary":"rootfs.1","slots":[)" + running + "," + nameless + "]}"),
            (Images{"1", "rootfs.1", false}))
      << "the name of a slot means nothing on another machine";
  // The same bundle in both slots, but the other slot boots next.
  EXPECT_EQ(*read(R"({"boot_primary":"rootfs.1","slots":[)" + a + "," + b + "]}"), (Images{"1", "1"}));
  for (const std::string& text :
       {std::string(), std::string("{}"), R"({"boot_primary":null,"slots":[)" + a + "]}",
        R"({"boot_primary":"rootfs.9","slots":[)" + a + "]}", R"({"boot_primary":"rootfs.1","slots":[)" + b + "]}",
        std::string(R"({"boot_primary":"x","slots":[{}]})"), std::string(R"({"boot_primary":"x","slots":{"a":1}})"),
        std::string(R"({"boot_primary":"x","slots":[{"x":null}]})")})
    EXPECT_FALSE(read(text)) << text;
}

TEST(Rauc, Bundle) {
  // Printed by rauc 1.13 of Debian 13.
  const auto read = [](const std::string& text) { return read_rauc_bundle({printed(text)}); };
  EXPECT_EQ(*read(R"({"compatible":"thing","version":"2026.2","description":"a test","build":"20260302",)"
                  R"("format":"plain","hooks":[],"hash":"26c1","images":[{"rootfs":{"artifact":null,"variant":null,)"
                  R"("filename":"root.img","checksum":"ad7f","size":4096,"hooks":[],"adaptive":[]}}]})"),
            (Updates{.need = Need::yes, .count = 1, .first = {"a test"}, .target = "2026.2"}));
  for (const char* const text : {"", "[]", "{}", R"({"version":null})", R"({"version":7})", R"({"version":""})"})
    EXPECT_FALSE(read(text)) << text;
}

// The answers are those of systemd 257 of Debian 13.
TEST(Sysupdate, Images) {
  const auto read = [](int pending, const std::string& list, const std::string& booted) {
    return read_sysupdate_images({printed("", pending), printed(list)}, parse_os_release("IMAGE_VERSION=" + booted));
  };
  EXPECT_EQ(*read(1, R"({"current":"1","all":["1"],"appstreamUrls":[]})", "1"), (Images{"1", ""}));
  EXPECT_EQ(*read(0, R"({"current":"3","all":["3","1"],"appstreamUrls":[]})", "1"), (Images{"1", "3"}));
  // `pending` exits with 1 if no newer version is installed, and also if it fails. If its exit status and the list of
  // versions contradict each other, the result is an error.
  EXPECT_FALSE(read(1, R"({"current":"3","all":["3","1"]})", "1"));
  EXPECT_FALSE(read(0, R"({"current":"1","all":["1"]})", "1"));
  EXPECT_FALSE(read(1, R"({"current":"1","all":["1"]})", "")) << "os-release has no IMAGE_VERSION";
  for (const char* const text : {"", "{}", "[]", R"({"current":null,"all":[]})"})
    EXPECT_FALSE(read(1, text, "1")) << text;
}

TEST(Sysupdate, Offers) {
  const auto read = [](const char* text) { return read_sysupdate_offer({printed(text)}); };
  EXPECT_EQ(*read(R"({"available":"3"})"), (Updates{.need = Need::yes, .count = 1, .target = "3"}));
  EXPECT_EQ(read(R"({"available":null})")->need, Need::no);
  for (const char* const text : {"", "3", "{}", "null"}) EXPECT_FALSE(read(text)) << text;
}

// The answers of ostree are those of ostree 2022.7 of Debian 12, with two commits in a repository, and a sysroot whose
// booted deployment was the root directory.
const std::string first_sum = "d2b9c7293afafdbb8a8e3ebe3697a2c43c274c6b208422454c2ffb3b23fca233";
const std::string second_sum = "53cd57046a39386de1c91da85e7dd9928f384117a366584d1c402a5a748c7c9c";
const std::string first_commit = "2026.1 (d2b9c7293afa)", second_commit = "2026.2 (53cd57046a39)";

// An entry of `ostree admin status`. `end` is what follows the name of the deployment, such as " (staged)".
std::string deployment(char mark, const std::string& checksum, const std::string& version,
                       const std::string& end = "") {
  return std::string(1, mark) + " machine " + checksum + ".0" + end + "\n    Version: " + version +
         "\n    origin refspec: stable:machine/stable\n";
}

const std::string first_runs = deployment('*', first_sum, "2026.1");

TEST(Ostree, Images) {
  const OsRelease any;
  const auto read = [&](const std::string& text) { return read_ostree_images({printed(text)}, any); };
  const std::pair<std::string, Images> rows[] = {
      {first_runs, {first_commit, ""}},
      {deployment(' ', second_sum, "2026.2", " (staged)") + first_runs, {first_commit, second_commit}},
      {deployment(' ', second_sum, "2026.2", " (pending)") + first_runs, {first_commit, second_commit}},
      // Not marked: there is a newer pending one, or it is of another operating system.
      {deployment(' ', second_sum, "2026.2") + first_runs, {first_commit, second_commit}},
      {deployment('*', second_sum, "2026.2") + deployment(' ', first_sum, "2026.1", " (rollback)"),
       {second_commit, ""}},
      {first_runs + deployment(' ', second_sum, "2026.2"), {first_commit, ""}},
      {first_runs + deployment(' ', second_sum, "2026.2", " (staged)"), {first_commit, second_commit}},
      // The same commit again, with other arguments of the kernel.
      {deployment(' ', first_sum, "2026.1", " (pending)") + first_runs, {first_commit, first_commit}},
      {"* machine " + first_sum + ".0\n    origin refspec: machine/stable\n", {"d2b9c7293afa", ""}},
      {"* machine " + first_sum + ".12 (something new) (soft-reboot)\n    Version: 7\n", {"7 (d2b9c7293afa)", ""}},
      // Further lines about a deployment. The first version counts.
      {"* machine " + first_sum +
           ".0\n    Version: 2026.1\n    Unlocked: development\n    Pinned: yes\n    origin: <unknown origin type>\n"
           "    `- a title: of the source\n    GPG: Signature made Thu Nov 26 22:52:53 2026\n    Version: 9\n\n",
       {first_commit, ""}},
  };
  for (const auto& [text, images] : rows) {
    const auto found = read(text);
    ASSERT_TRUE(found) << text << found.error().message();
    EXPECT_EQ(*found, images) << text;
  }
}

// P4: what cannot be read is unknown, and does not count as "no reboot is needed".
TEST(Ostree, WhatCannotBeReadIsUnknown) {
  const OsRelease any;
  const std::string sum = first_sum;
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("No deployments.\n"), deployment(' ', sum, "1"),
        first_runs + first_runs, "    Version: 1\n" + first_runs, first_runs + "error: something\n",
        "+ machine " + sum + ".0\n" + first_runs, " machine " + sum + ".0\n", "*  " + sum + ".0\n", "* " + sum + ".0\n",
        "* machine " + sum + "\n", "* machine " + sum + ".\n", "* machine " + sum + ".0x\n",
        "* machine " + sum.substr(1) + ".0\n", "* machine " + sum + "0.0\n", std::string("* machine\n"),
        std::string("*\n"), std::string("* ")}) {
    const auto found = read_ostree_images({printed(text)}, any);
    ASSERT_FALSE(found) << text;
    EXPECT_EQ(found.error().code(), Errc::decode);
    EXPECT_FALSE(look_at_ostree_branch({printed(text)})) << text;
    EXPECT_FALSE(read_ostree_offer({printed(text), printed("commit " + second_sum + "\n")})) << text;
  }
  // Newer versions of ostree show that a staged deployment is locked: a reboot would boot the old one again.
  const auto locked =
      read_ostree_images({printed(deployment(' ', second_sum, "2026.2", " (finalization locked)") + first_runs)}, any);
  ASSERT_FALSE(locked);
  EXPECT_THAT(locked.error().message(), HasSubstr(second_commit));
  EXPECT_THAT(locked.error().message(), HasSubstr("ostree admin lock-finalization --unlock"));
}

// Without --stage, what changes in /etc between the upgrade and the reboot would be lost.
TEST(Ostree, TheUpgradeIsStaged) {
  EXPECT_THAT(image_tool("ostree", {}, "")->stage.argv, ElementsAre("/usr/bin/ostree", "admin", "upgrade", "--stage"));
}

std::vector<std::string> lines_of(const Result<std::vector<ToolCommand>>& commands) {
  std::vector<std::string> lines;
  for (const ToolCommand& command : commands.value()) lines.push_back(fmt::format("{}", fmt::join(command.argv, " ")));
  return lines;
}

TEST(Ostree, LooksAtTheBranchOfTheBootedDeployment) {
  EXPECT_THAT(lines_of(look_at_ostree_branch({printed(
                  "  machine " + second_sum + ".0 (staged)\n    origin refspec: other:branch\n" + first_runs)})),
              ElementsAre("/usr/bin/ostree pull --commit-metadata-only --timestamp-check-from-rev=" + first_sum +
                              " stable machine/stable",
                          "/usr/bin/ostree show stable:machine/stable"));
  const std::string booted = "* machine " + first_sum + ".0\n";
  EXPECT_THAT(lines_of(look_at_ostree_branch({printed(booted + "    origin refspec: machine/stable\n")})),
              ElementsAre("/usr/bin/ostree show machine/stable"))
      << "a local branch cannot be fetched";
  for (const std::string& origin :
       {std::string(), std::string("    origin: none\n"), std::string("    origin: <unknown origin type>\n"),
        std::string("    origin refspec: --help\n"), std::string("    origin refspec: a b\n")}) {
    const auto found = look_at_ostree_branch({printed(booted + origin)});
    ASSERT_FALSE(found) << origin;
    EXPECT_THAT(found.error().message(), HasSubstr("ostree admin switch"));
  }
}

TEST(Ostree, Offers) {
  const auto read = [](const std::string& shown) { return read_ostree_offer({printed(first_runs), printed(shown)}); };
  const std::string head = "commit " + second_sum + "\nParent:  " + first_sum +
                           "\nContentChecksum:  474392643e527a60b9d50a1a7bce9b4673cef67e287c654bd154467f5be429aa\n"
                           "Date:  2026-11-26 22:53:19 +0000\n";
  EXPECT_EQ(*read(head + "Version: 2026.2\n\n    a story\n\n"),
            (Updates{.need = Need::yes, .count = 1, .first = {"a story"}, .target = second_commit}));
  EXPECT_EQ(*read(head + "Version: 2026.2\n(no subject)\n\n"),
            (Updates{.need = Need::yes, .count = 1, .target = second_commit}));
  // The commit's text is no part of the head.
  EXPECT_EQ(read(head + "(no subject)\n\n    Version: 2099\n\n")->target, "53cd57046a39");
  EXPECT_EQ(read(head + "\n    Version: 2099\n\n")->target, "53cd57046a39");
  EXPECT_EQ(read("commit " + first_sum + "\nDate:  2026-11-26 22:52:53 +0000\n")->need, Need::no) << "it runs";
  // The answers of status, pull and show.
  const auto pulled = read_ostree_offer({printed(first_runs),
                                         printed("1 metadata, 0 content objects imported; 0 bytes "
                                                 "content written\n"),
                                         printed(head)});
  EXPECT_EQ(pulled->target, "53cd57046a39");
  for (const std::string& text : {std::string(), std::string("commit\n"), "commit " + second_sum.substr(1) + "\n",
                                  "tree " + second_sum + "\n", "\ncommit " + second_sum + "\n"})
    EXPECT_FALSE(read(text)) << text;
}

TEST(Suse, RollingSystemsChangeTheDistribution) {
  EXPECT_EQ(suse_verb(parse_os_release("ID=\"opensuse-microos\"\nID_LIKE=\"suse opensuse opensuse-tumbleweed\"")),
            "dup");
  EXPECT_EQ(suse_verb(parse_os_release("ID=\"opensuse-leap-micro\"\nID_LIKE=\"suse opensuse\"")), "up");
  EXPECT_EQ(suse_verb(parse_os_release("ID=\"sl-micro\"\nID_LIKE=\"suse\"")), "up");
}

TEST(ImageTools, NoProgramRebootsOrForces) {
  for (const char* const name : {"rpm-ostree", "bootc", "ostree", "transactional-update", "rauc", "sysupdate"}) {
    const auto tool = image_tool(name, {}, "https://example.org/bundle.raucb");
    ASSERT_TRUE(tool) << name;
    EXPECT_EQ(tool->name, name);
    ASSERT_NE(tool->read_offer, nullptr) << name;
    EXPECT_EQ(tool->status.empty(), tool->read_images == nullptr) << name;
    std::vector<ToolCommand> all = tool->status;
    all.insert(all.end(), tool->look.begin(), tool->look.end());
    all.push_back(tool->stage);
    for (const ToolCommand& command : all) {
      EXPECT_EQ(command.argv.front().front(), '/') << name;
      for (const std::string& word : command.argv) {
        EXPECT_THAT(word, ::testing::Not(HasSubstr("reboot"))) << name;
        EXPECT_THAT(word, ::testing::Not(HasSubstr("force"))) << name;
        EXPECT_NE(word, "--apply") << name;
      }
    }
  }
  for (const char* const name : {"debian", "flatcar", "bottlerocket", "file", "command", ""})
    EXPECT_FALSE(image_tool(name, {}, "")) << name;
}

}  // namespace
}  // namespace haulout::agent
