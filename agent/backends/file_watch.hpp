// Tells when files of the host appear, change or go, by inotify on their directories: on the nearest one that exists,
// where theirs does not. Where a path has a link as its last component, the link's place is watched too.
//
// Not seen: an ancestor of a watched directory being renamed, or something mounted over it; who waits looks again by
// the clock too. Must be destroyed before the io_context of the executor. One waiter at a time; one thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
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
  // Paths of the host; one with a final slash stands for every entry of that directory.
  FileWatch(HostRoot root, std::vector<std::string> paths);

  // Finds the directories again and forgets what has happened so far. Call it before the files are read: then nothing
  // that happens afterwards is lost. Where the kernel gives no watch, changed() knows only the clock.
  void arm(const boost::asio::any_io_executor& executor);

  // Returns when something may have changed since arm(), at the latest when next_recheck is due. Cancellable.
  boost::asio::awaitable<void> changed(Clock& clock, Rng& rng);

 private:
  using Names = std::set<std::string>;  // "" stands for every name

  Task<> event();
  // Reads what is there; true when it is about one of the files.
  bool take_events();
  void watch(const std::string& path, std::map<int, Names>& found);
  void watch_nearest(const std::string& full_path, std::map<int, Names>& found);
  int add(const std::string& directory);

  HostRoot root_;
  std::vector<std::string> paths_;
  std::optional<boost::asio::posix::stream_descriptor> inotify_;
  std::map<int, Names> watches_;
};

}  // namespace haulout::agent
