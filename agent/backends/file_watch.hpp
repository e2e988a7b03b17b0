// Detects when files of the host appear, change or disappear, by inotify on their directories. If a directory does not
// exist, its nearest existing ancestor is watched. If the last component of a path is a symbolic link, the directories
// of the link and of its target are both watched.
//
// Does not detect that an ancestor of a watched directory is renamed, or that a file system is mounted over it.
// Therefore changed() also returns at regular intervals. Destroy it before the io_context of the executor. One waiter
// at a time; one thread.
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
#include "retry/clock.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

class FileWatch {
 public:
  // Paths on the host. A path with a final slash stands for every entry of that directory. `open` returns a new inotify
  // descriptor, which the watch then owns, or a negative number; tests replace it.
  FileWatch(HostRoot root, std::vector<std::string> paths, std::function<int()> open = open_inotify);

  // Looks up the directories again and discards all events so far. Call it before reading the files, so that no later
  // change is missed. If the kernel provides no inotify watch, changed() only waits for the clock.
  void arm(const boost::asio::any_io_executor& executor);

  // Returns when a file may have changed since arm(), or at the latest after next_recheck(). If the
  // kernel gives no inotify instance, returns after about 30 s, and the next call tries again. Cancellable.
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

}  // namespace haulout::agent
