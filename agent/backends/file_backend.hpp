// Sentinel files, whose presence means that a reboot is needed: a watch that detects changes of files, functions that
// read the files, both also for other back ends, and the back end of --sentinel.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/hosts/host_root.hpp"
#include "agent/ports/backend.hpp"
#include "retry/clock.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// Detects when files of the host appear, change or disappear, by inotify on their directories. If a directory does not
// exist, its nearest existing ancestor is watched. If the last component of a path is a symbolic link, the directories
// of the link and of its target are both watched.
//
// Does not detect that an ancestor of a watched directory is renamed, or that a file system is mounted over it.
// Therefore changed() also returns at regular intervals. Destroy it before the io_context of the executor. One waiter
// at a time; one thread.
class FileWatch {
 public:
  // Paths on the host. A path with a final slash stands for every entry of that directory. `open` returns a new inotify
  // descriptor, which the watch then owns, or a negative number; tests replace it.
  FileWatch(HostRoot root, std::vector<std::string> paths, std::function<int()> open = open_inotify);

  // Looks up the directories again and discards all events so far. Call it before reading the files, so that no later
  // change is missed. If the kernel provides no inotify watch, changed() only waits for the clock.
  void arm(const boost::asio::any_io_executor& executor);

  // Returns when a file may have changed since arm(), or at the latest after next_recheck(). If the kernel gives no
  // inotify instance, returns after about 30 s, and the next call tries again. Cancellable.
  boost::asio::awaitable<void> changed(Clock& clock, Rng& rng);

 private:
  using Names = std::set<std::string>;  // "" stands for every name

  static int open_inotify();
  Task<> event();
  // Reads all events that are available. Returns true if one of them concerns a watched file.
  bool take_events();
  void watch(const std::string& path, std::map<int, Names>& found);
  void watch_nearest(const std::string& full_path, std::map<int, Names>& found);
  int add(const std::string& directory);

  HostRoot root_;
  std::vector<std::string> paths_;
  std::function<int()> open_;
  std::optional<boost::asio::posix::stream_descriptor> inotify_;
  std::map<int, Names> watches_;
};

// sentinel_answer() and read_sentinel() turn the content of a sentinel file into an answer, and either() combines two
// answers. Pure, except read_sentinel(), which blocks while it reads the file.

// The sentinel of transactional-update for a new snapshot (MicroOS, Leap Micro).
inline constexpr std::string_view suse_sentinel = "/run/reboot-needed";

// Returns `yes` if the file exists; the reason is its first line that is not blank, or its name if all are blank.
// Returns `no` if the file or a directory of its path does not exist, and `unknown` if the file cannot be read.
Pending sentinel_answer(const Result<std::optional<std::string>>& content, const std::string& name);
Pending read_sentinel(const HostRoot& root, const std::string& path);

// Returns `yes` if one of the two answers is yes, otherwise `unknown` if one is unknown, otherwise `no`. If both are
// yes, the reasons of `first` come first.
Pending either(Pending first, Pending second);

// The back end for a sentinel file (--sentinel FILE): another program updates the system, and creates that file when a
// reboot is needed. There are no versions, and apply() does nothing. transactional-update removes and creates its
// sentinel in each of its runs; therefore, if this object has seen that sentinel and it disappears, the answer is
// `unknown` for 15 minutes, and then `no`.
//
// Reads the file beneath the host's root in each pending(). No coroutine fails: an error is in the answer. Cancellable.
// Clock and Rng must outlive the back end. Destroy it before the io_context on which it runs.
class FileBackend final : public Backend {
 public:
  FileBackend(HostRoot root, Clock& clock, Rng& rng, std::string sentinel);

  std::string name() const override { return "file"; }
  boost::asio::awaitable<Pending> pending(TimePoint deadline) override;
  Task<std::string> booted(TimePoint deadline) override;
  Task<> apply(std::string target, TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;

 private:
  Pending steadied(Pending answer);

  HostRoot root_;
  Clock& clock_;
  Rng& rng_;
  std::string sentinel_;
  FileWatch watch_;
  bool was_there_ = false;
  std::optional<TimePoint> missing_since_;
};

}  // namespace haulout::agent
