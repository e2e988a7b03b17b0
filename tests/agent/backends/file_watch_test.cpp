// Tests the watch with the real clock. Within the time of a test, only inotify can wake it.
#include "agent/backends/file_backend.hpp"

#include <gmock/gmock.h>

#include "retry/deadline.hpp"
#include "tests/k8s/temp_dir.hpp"
#include "tests/support/real_time.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::agent {
namespace {
namespace asio = boost::asio;
namespace fs = std::filesystem;

class FileWatchTest : public haulout::testing::RealTimeTest {
 protected:
  haulout::testing::TempDir dir;
  SeededRng rng{1};

  // Repeats the wait until the need is `yes`, because a watch may wake without a cause.
  Task<> until_yes(Backend& backend) {
    for (;;) {
      const Pending answer = co_await backend.pending(soon());
      if (answer.need == Need::yes) co_return Result<>();
      co_await backend.changed();
    }
  }
};

TEST_F(FileWatchTest, EventsReachIt) {
  FileBackend backend(HostRoot(dir.path()), clock, rng, "/run/a/sentinel");
  asio::post(context, [&] {
    fs::create_directories(dir / "run");
    asio::post(context, [&] {
      fs::create_directories(dir / "run/a");
      asio::post(context, [&] { dir.write("run/a/sentinel", ""); });
    });
  });
  const auto seen = run(with_deadline(clock, soon(), until_yes(backend)));
  EXPECT_TRUE(seen) << "never woken";
}

using FileWatchWithoutInotify = haulout::testing::VirtualTimeTest;

TEST_F(FileWatchWithoutInotify, TheFilesAreReadAgainAfterHalfAMinute) {
  haulout::testing::TempDir dir;
  SeededRng rng{1};
  FileWatch watch(HostRoot(dir.path()), {"/run/sentinel"}, [] { return -1; });
  run(watch.changed(clock, rng));
  EXPECT_LE(elapsed(), std::chrono::seconds(40));
}

}  // namespace
}  // namespace haulout::agent
