// Installs updates of two small packages with the real apt-get and dpkg, from repositories in the test's directory,
// into a directory of its own. The packages of this machine are not touched.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "agent/backends/apt_updater.hpp"
#include "tests/k8s/temp_dir.hpp"
#include "tests/support/lock_holder.hpp"
#include "tests/support/real_time.hpp"

namespace haulout::agent {
namespace {
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

bool have_apt() {
  for (const char* program : {"/usr/bin/apt-get", "/usr/bin/dpkg", "/usr/bin/dpkg-deb"})
    if (!fs::exists(program)) return false;
  return true;
}

class RealAptTest : public haulout::testing::RealTimeTest {
 protected:
  void SetUp() override {
    if (!have_apt() && std::getenv("CI") != nullptr) FAIL() << "apt-get, dpkg and dpkg-deb are missing";
    if (!have_apt()) GTEST_SKIP() << "NOT TESTED: apt-get, dpkg or dpkg-deb is missing on this machine";
    for (const char* directory :
         {"root/etc/apt/apt.conf.d", "root/etc/apt/preferences.d", "root/etc/apt/trusted.gpg.d",
          "root/var/lib/apt/lists/partial", "root/var/cache/apt/archives/partial", "root/var/log/apt",
          "root/var/lib/dpkg/updates", "root/var/lib/dpkg/info", "root/tmp", "repo"})
      fs::create_directories(dir / directory);
    dir.write("root/var/lib/dpkg/status", "");
    dir.write("root/var/lib/dpkg/available", "");
    dir.write("root/etc/apt/sources.list", "deb [trusted=yes] file:" + dir / "repo" + " ./\n");
    const std::string root = dir / "root";
    config = dir.write("apt.conf", "Dir \"" + root + "\";\nDir::State::status \"" + root + "/var/lib/dpkg/status\";\n" +
                                       "APT::Architecture \"amd64\";\nAPT::Sandbox::User \"root\";\n" +
                                       "Dpkg::Options { \"--root=" + root +
                                       "\"; \"--force-not-root\"; \"--force-bad-path\"; };\n");
  }

  // Runs a shell command. Fails the test if it fails.
  void sh(const std::string& command) {
    const int status = std::system(("( " + command + " ) >" + dir / "log" + " 2>&1").c_str());
    if (status != 0) static_cast<void>(std::system(("cat " + dir / "log").c_str()));
    ASSERT_EQ(status, 0) << command;
  }
  // Adds a package to a repository; `file` is what it installs.
  void publish(const std::string& name, const std::string& version, const std::string& file,
               const std::string& repository = "repo") {
    const std::string tree = "tree-" + name + version;
    dir.write(tree + "/DEBIAN/control", "Package: " + name + "\nVersion: " + version +
                                            "\nArchitecture: all\nMaintainer: A Test <a@example.org>\n"
                                            "Description: a test\n");
    dir.write(tree + file, version + "\n");
    const std::string deb = dir / (repository + "/" + name + "_" + version + "_all.deb");
    sh("dpkg-deb --root-owner-group -b " + dir / tree + " " + deb);
    // Appends one stanza to the index: the package's control file, then the place, size and checksum of the .deb.
    sh("cd " + dir / repository + " && { dpkg-deb -f " + deb + "; echo Filename: ./$(basename " + deb +
       "); echo Size: $(stat -c %s " + deb + "); echo SHA256: $(sha256sum " + deb +
       " | cut -d' ' -f1); echo; } >>Packages");
  }
  void apt(const std::string& args) { sh("APT_CONFIG=" + config + " apt-get -q -y " + args); }
  std::string status_of(const std::string& name) {
    sh("dpkg-query --admindir=" + dir / "root/var/lib/dpkg" + " -W -f='${Version} ${db:Status-Status}' " + name +
       " && cp " + dir / "log" + " " + dir / "answer");
    const auto text = HostRoot(dir.path()).read("answer", 1000);
    return text && *text ? **text : "?";
  }

  AptUpdater updater(AptUpdater::Options options = {}) {
    options.env = {{"APT_CONFIG", config}};
    options.dpkg_options = {"--root=" + dir / "root", "--force-not-root", "--force-bad-path"};
    return AptUpdater(HostRoot(dir / "root"), programs, clock, rng, std::move(options));
  }
  // A machine with two installed packages, for both of which a newer version is in the repository.
  void two_updates() {
    publish("one", "1.0", "/usr/share/one");
    publish("two", "1.0", "/usr/share/two");
    apt("update");
    apt("install one two");
    publish("one", "1.1", "/usr/share/one");
    publish("two", "1.1", "/usr/share/two");
  }

  haulout::testing::TempDir dir;
  std::string config;
  SeededRng rng{1};
  ChildPrograms programs{clock, "/"};
};

TEST_F(RealAptTest, FetchesLooksDownloadsAndInstalls) {
  ASSERT_NO_FATAL_FAILURE(two_updates());
  AptUpdater it = updater();
  run(it.changed());
  const Updates updates = run(it.look(soon()));
  EXPECT_EQ(updates.need, Need::yes) << updates.problem;
  EXPECT_THAT(updates.first, ElementsAre("one 1.0 to 1.1", "two 1.0 to 1.1"));
  const auto downloaded = run(it.download(soon()));
  EXPECT_TRUE(downloaded) << downloaded.error().message();
  EXPECT_EQ(status_of("one"), "1.0 installed");
  const auto done = run(it.install(soon()));
  EXPECT_TRUE(done) << done.error().message();
  EXPECT_EQ(status_of("one"), "1.1 installed");
  EXPECT_EQ(status_of("two"), "1.1 installed");
  EXPECT_EQ(run(it.look(soon())).need, Need::no);
  EXPECT_TRUE(run(it.install(soon())));
}

TEST_F(RealAptTest, KeepsWhatIsOnHold) {
  ASSERT_NO_FATAL_FAILURE(two_updates());
  apt("update");
  sh("echo 'two hold' | dpkg --force-not-root --root=" + dir / "root" + " --set-selections");
  AptUpdater it = updater();
  EXPECT_THAT(run(it.look(soon())).first, ElementsAre("one 1.0 to 1.1"));
  const auto done = run(it.install(soon()));
  EXPECT_TRUE(done) << done.error().message();
  EXPECT_EQ(status_of("two"), "1.0 installed");
}

// Only the update of `one` comes from a security archive, so `two` is not updated. `one` stays marked as installed
// automatically.
TEST_F(RealAptTest, InstallsSecurityUpdatesAlone) {
  ASSERT_NO_FATAL_FAILURE(two_updates());
  apt("update");
  sh("APT_CONFIG=" + config + " apt-mark auto one");
  fs::create_directories(dir / "security");
  publish("one", "1.2", "/usr/share/one", "security");
  sh("cd " + dir / "security" +
     " && { echo Label: Debian-Security; echo Suite: stable-security; echo Date: $(date -Ru);" +
     " echo SHA256:; echo \" $(sha256sum Packages | cut -d' ' -f1) $(stat -c %s Packages) Packages\"; } >Release");
  dir.write("root/etc/apt/sources.list",
            "deb [trusted=yes] file:" + dir / "repo" + " ./\ndeb [trusted=yes] file:" + dir / "security" + " ./\n");
  apt("update");
  AptUpdater it = updater({.security_only = true});
  const Updates updates = run(it.look(soon()));
  EXPECT_THAT(updates.first, ElementsAre("one 1.0 to 1.2")) << updates.problem;
  const auto done = run(it.install(soon()));
  EXPECT_TRUE(done) << done.error().message();
  EXPECT_EQ(status_of("one"), "1.2 installed");
  EXPECT_EQ(status_of("two"), "1.0 installed");
  sh("APT_CONFIG=" + config + " apt-mark showauto one | grep -x one");
}

TEST_F(RealAptTest, NeverDowngrades) {
  ASSERT_NO_FATAL_FAILURE(two_updates());
  apt("update");
  apt("upgrade");
  dir.write("root/etc/apt/preferences.d/old", "Package: one\nPin: version 1.0\nPin-Priority: 1001\n");
  AptUpdater it = updater();
  static_cast<void>(run(it.install(soon())));
  EXPECT_EQ(status_of("one"), "1.1 installed");
}

// Two packages contain the same file, so dpkg refuses the second one. The installation fails.
TEST_F(RealAptTest, AFailureIsToldAndNothingCountsAsInstalled) {
  ASSERT_NO_FATAL_FAILURE(two_updates());
  publish("two", "1.2", "/usr/share/one");
  apt("update");
  AptUpdater it = updater();
  const auto done = run(it.install(soon()));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("exit status 100"));
  EXPECT_EQ(status_of("two"), "1.0 installed");
  EXPECT_EQ(run(it.look(soon())).need, Need::yes);
}

// P7: dpkg was killed after it had unpacked a package. The next installation configures that package, too.
TEST_F(RealAptTest, FinishesWhatWasInterrupted) {
  ASSERT_NO_FATAL_FAILURE(two_updates());
  apt("update");
  sh("dpkg --force-not-root --force-bad-path --root=" + dir / "root" + " --unpack " + dir / "repo/one_1.1_all.deb");
  EXPECT_EQ(status_of("one"), "1.1 unpacked");
  AptUpdater it = updater();
  EXPECT_THAT(run(it.look(soon())).first, ElementsAre("one (not configured)", "two 1.0 to 1.1"));
  const auto done = run(it.install(soon()));
  EXPECT_TRUE(done) << done.error().message();
  EXPECT_EQ(status_of("one"), "1.1 installed");
  EXPECT_EQ(status_of("two"), "1.1 installed");
}

// Another process holds dpkg's lock, as apt and unattended-upgrades do. The updater names the lock and the process.
TEST_F(RealAptTest, SeesWhoHoldsTheLock) {
  const std::string lock = dir.write("root/var/lib/dpkg/lock-frontend", "");
  std::optional<haulout::testing::LockHolder> other(lock);
  AptUpdater it = updater();
  const auto blocked = run(it.blocked_by(soon()));
  ASSERT_TRUE(blocked) << blocked.error().message();
  EXPECT_THAT(*blocked, HasSubstr("lock-frontend"));
  EXPECT_THAT(*blocked, HasSubstr(std::to_string(other->pid())));
  other.reset();
  EXPECT_EQ(*run(it.blocked_by(soon())), "");
}

}  // namespace
}  // namespace haulout::agent
