#include "agent/backends/file_backend.hpp"

#include <fmt/format.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>

#include "agent/ports/backend.hpp"
#include "base/plain_text.hpp"
#include "retry/deadline.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

using Stream = asio::posix::stream_descriptor;

constexpr std::uint32_t events = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ATTRIB |
                                 IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
// Events of the directory itself: it was deleted or moved, or its file system was unmounted.
constexpr std::uint32_t about_directory = IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED;

// Interval at which the files are read if the kernel has no inotify instance left: fs.inotify.max_user_instances is 128
// by default, and all containers of root share it.
constexpr Duration without_events = std::chrono::seconds(30);

struct Split {
  std::string directory;
  std::string name;
};

Split split(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

bool is_directory(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

FileWatch::FileWatch(HostRoot root, std::vector<std::string> paths, std::function<int()> open)
    : root_(std::move(root)), paths_(std::move(paths)), open_(std::move(open)) {}

int FileWatch::open_inotify() {
  return ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

void FileWatch::arm(const asio::any_io_executor& executor) {
  if (!inotify_) {
    const int fd = open_();
    if (fd < 0) return;
    inotify_.emplace(executor, fd);
  }
  take_events();
  std::map<int, Names> found;
  for (const std::string& path : paths_) watch(path, found);
  for (const auto& [descriptor, names] : watches_) {
    if (!found.contains(descriptor)) ::inotify_rm_watch(inotify_->native_handle(), descriptor);
  }
  watches_ = std::move(found);
}

int FileWatch::add(const std::string& directory) {
  return ::inotify_add_watch(inotify_->native_handle(), directory.c_str(), events);
}

void FileWatch::watch(const std::string& path, std::map<int, Names>& found) {
  const auto target = root_.locate(path);
  if (path.ends_with('/')) {
    const int descriptor = target ? add(*target) : -1;
    if (descriptor >= 0) {
      found[descriptor].insert("");
      return;
    }
  }
  if (target) watch_nearest(*target, found);
  const Split entry = split(path.starts_with('/') ? path : "/" + path);
  const auto directory = root_.locate(entry.directory);
  if (directory && !entry.name.empty()) watch_nearest(*directory + "/" + entry.name, found);
}

void FileWatch::watch_nearest(const std::string& full_path, std::map<int, Names>& found) {
  // Repeat if another process creates a missing directory in the meantime; give up after 16 attempts.
  for (int attempt = 0; attempt < 16; ++attempt) {
    Split entry = split(full_path);
    const std::string wanted = entry.directory;
    int descriptor = add(entry.directory);
    while (descriptor < 0 && (errno == ENOENT || errno == ENOTDIR) && entry.directory != root_.directory() &&
           entry.directory != "/") {
      entry = split(entry.directory);
      descriptor = add(entry.directory);
    }
    if (descriptor < 0) return;
    found[descriptor].insert(entry.name);
    if (entry.directory == wanted || !is_directory(entry.directory + "/" + entry.name)) return;
  }
}

bool FileWatch::take_events() {
  bool ours = false;
  alignas(inotify_event) char buffer[4096];
  for (;;) {
    const ssize_t size = ::read(inotify_->native_handle(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return ours;
    for (std::size_t at = 0; at + sizeof(inotify_event) <= static_cast<std::size_t>(size);) {
      inotify_event event;
      std::memcpy(&event, buffer + at, sizeof event);
      const std::string name = event.len == 0 ? "" : std::string(buffer + at + sizeof event);
      at += sizeof event + event.len;
      const auto watch = watches_.find(event.wd);
      const bool lost = (event.mask & IN_Q_OVERFLOW) != 0;
      const bool known = watch != watches_.end();
      ours = ours || lost ||
             (known &&
              ((event.mask & about_directory) != 0 || watch->second.contains(name) || watch->second.contains("")));
    }
  }
}

Task<> FileWatch::event() {
  while (!take_events()) co_await inotify_->async_wait(Stream::wait_read, asio::use_awaitable);
  co_return Result<>();
}

asio::awaitable<void> FileWatch::changed(Clock& clock, Rng& rng) {
  if (!inotify_) arm(co_await asio::this_coro::executor);
  if (!inotify_) {
    co_await clock.sleep_until(next_recheck(clock, rng, without_events));
    co_return;
  }
  const TimePoint recheck = next_recheck(clock, rng);
  const auto either = co_await with_deadline(clock, recheck, event());
  static_cast<void>(either);  // in both cases the caller reads the files again
}

namespace {
// Bytes of a sentinel file that are read: only its first line is shown, as the reason.
constexpr std::size_t beginning = std::size_t{4} * 1024;
}  // namespace

Pending sentinel_answer(const Result<std::optional<std::string>>& content, const std::string& name) {
  if (!content) return {.need = Need::unknown, .problem = content.error().message()};
  if (!*content) return {.need = Need::no};
  std::string reason = first_line(**content);
  if (reason.empty()) reason = fmt::format("{} exists", name);
  return {.need = Need::yes, .reasons = {std::move(reason)}};
}

Pending read_sentinel(const HostRoot& root, const std::string& path) {
  return sentinel_answer(root.read(path, beginning), root.display(path));
}

Pending either(Pending first, Pending second) {
  if (first.need != Need::yes && second.need == Need::yes) return second;
  if (first.need == Need::yes && second.need == Need::yes)
    first.reasons.insert(first.reasons.end(), second.reasons.begin(), second.reasons.end());
  if (first.need == Need::no && second.need == Need::unknown) return second;
  return first;
}

namespace {

// After the sentinel has disappeared, the need for a reboot is unknown for this long. transactional-update of openSUSE
// removes the file when it starts, and creates it again if it fails. In between it installs packages into a snapshot,
// which takes minutes.
constexpr Duration comes_back_within = std::chrono::minutes(15);

}  // namespace

FileBackend::FileBackend(HostRoot root, Clock& clock, Rng& rng, std::string sentinel)
    : root_(std::move(root)), clock_(clock), rng_(rng), sentinel_(std::move(sentinel)), watch_(root_, {sentinel_}) {}

asio::awaitable<Pending> FileBackend::pending(TimePoint) {
  watch_.arm(co_await asio::this_coro::executor);
  Pending answer = read_sentinel(root_, sentinel_);
  co_return sentinel_ == suse_sentinel ? steadied(std::move(answer)) : std::move(answer);
}

Pending FileBackend::steadied(Pending answer) {
  if (answer.need == Need::yes) {
    was_there_ = true;
    missing_since_.reset();
  }
  if (answer.need != Need::no || !was_there_) return answer;
  if (!missing_since_) missing_since_ = clock_.now();
  was_there_ = clock_.now() < *missing_since_ + comes_back_within;
  if (!was_there_) return answer;
  return {.need = Need::unknown,
          .problem = fmt::format("{} was removed. A running transactional-update removes that file, too, so the agent "
                                 "waits {} minutes before it concludes that no reboot is needed",
                                 root_.display(sentinel_),
                                 std::chrono::duration_cast<std::chrono::minutes>(comes_back_within).count())};
}

Task<std::string> FileBackend::booted(TimePoint) {
  co_return std::string();
}

Task<> FileBackend::apply(std::string, TimePoint) {
  co_return Result<>();
}

asio::awaitable<void> FileBackend::changed() {
  return watch_.changed(clock_, rng_);
}

}  // namespace haulout::agent
