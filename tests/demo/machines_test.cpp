// Tests follow_machines(). The test plays the script that simulates a machine by changing files.
#include "demo/machines.hpp"

#include <filesystem>
#include <fstream>

#include "retry/task_group.hpp"
#include "tests/support/real_time.hpp"

namespace haulout::demo {
namespace {

using sim::Json;
namespace fs = std::filesystem;

class DemoMachinesTest : public testing::RealTimeTest {
 protected:
  SeededRng rng{1};
  sim::Cluster cluster{context.get_executor(), clock, rng};
  DemoJudge judge{clock.now()};
  fs::path directory;
  fs::path root() const { return directory / "n1"; }

  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "haulout-machines-XXXXXX").string();
    directory = ::mkdtemp(name.data());
    fs::create_directories(root() / "proc/sys/kernel/random");
    boot("first");
    cluster.on_change([this](const sim::Change& change) { judge.see(change); });
    cluster.create("nodes", {{"metadata", {{"name", "n1"}}}});
  }
  void TearDown() override { fs::remove_all(directory); }

  void boot(const char* id) const { std::ofstream(root() / "proc/sys/kernel/random/boot_id") << id << '\n'; }
  void switch_off() const { std::ofstream(root() / "off") << ""; }
  void switch_on() const { fs::remove(root() / "off"); }
  std::string ready() const { return sim::text(sim::condition(cluster.get("nodes", "", "n1"), "Ready"), "/status"); }
  std::string boot_id() const { return sim::text(cluster.get("nodes", "", "n1"), "/status/nodeInfo/bootID"); }
  boost::asio::awaitable<void> until(std::string ready_is, std::string boot_id_is) {
    const TimePoint limit = soon();
    while ((ready() != ready_is || boot_id() != boot_id_is) && clock.now() < limit)
      co_await clock.sleep_until(clock.now() + std::chrono::milliseconds(1));
    EXPECT_EQ(ready(), ready_is);
    EXPECT_EQ(boot_id(), boot_id_is);
  }
};

TEST_F(DemoMachinesTest, GoDownAndComeUpInAnotherBoot) {
  run(with_task_group([this](TaskGroup& group) -> boost::asio::awaitable<void> {
    group.spawn(follow_machines(clock, cluster, judge, directory.string()));
    co_await until("True", "first");
    for (const auto& [before, after] : {std::pair("first", "second"), std::pair("second", "third")}) {
      switch_off();
      co_await until("Unknown", before);
      boot(after);
      switch_on();
      co_await until("True", after);
    }
    group.cancel();
  }));
  EXPECT_THAT(judge.verdict().back().broken,
              ::testing::ElementsAre("n1 has rebooted 2 times (no agent has reported on it)"));
}

}  // namespace
}  // namespace haulout::demo
