#include "agent/hosts/host_root.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <deque>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "base/ascii.hpp"
#include "base/descriptor.hpp"
#include "base/text.hpp"

namespace haulout::agent {
namespace {

// Limit of links in one path, as in Linux (path_resolution(7)).
constexpr int link_limit = 40;
// list() fails for a larger directory, so that its memory is bounded.
constexpr std::size_t entry_limit = 10'000;

bool is_missing(int cause) {
  return cause == ENOENT || cause == ENOTDIR;
}

std::string_view way_out(int cause) {
  if (cause == EACCES || cause == EPERM) return "; permit it to this user, or run as a user who may do it";
  if (cause == EISDIR) return "; a file is expected";
  if (cause == EROFS) return "; mount it writable";
  return "";
}

std::vector<std::string> components_of(std::string_view path) {
  std::vector<std::string> out;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, end);
    if (!name.empty() && name != ".") out.emplace_back(name);
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return out;
}

// Returns nothing if `path` is not a link or cannot be read. In the second case, opening the file reports the cause.
std::optional<std::string> link_target(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t length = ::readlink(path.c_str(), target, sizeof target);
  if (length < 0) return std::nullopt;
  return std::string(target, static_cast<std::size_t>(length));
}

std::string joined(const std::string& directory, const std::vector<std::string>& names) {
  std::string out = directory == "/" ? "" : directory;
  for (const std::string& name : names) out.append("/").append(name);
  return out.empty() ? "/" : out;
}

int write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

// Returns 0 or the errno of the failed call. After a failure, removes the scratch file.
int replace_file(const std::string& target, const std::string& scratch, std::string_view content) {
  const Descriptor file(::open(scratch.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file.is_open()) return errno;
  int failure = write_all(file.get(), content);
  if (failure == 0 && ::rename(scratch.c_str(), target.c_str()) != 0) failure = errno;
  if (failure != 0) ::unlink(scratch.c_str());
  return failure;
}

}  // namespace

HostRoot::HostRoot(std::string directory) : directory_(std::move(directory)) {
  while (directory_.size() > 1 && directory_.back() == '/') directory_.pop_back();
  if (directory_.empty()) directory_ = "/";
}

std::string HostRoot::display(std::string_view path) const {
  const std::string name = joined("/", components_of(path));
  return directory_ == "/" ? name : fmt::format("{} (beneath {})", name, directory_);
}

Error HostRoot::problem(std::string_view verb, std::string_view path, int cause) const {
  return Error(Errc::unavailable, fmt::format("cannot {} {}: {}{}", verb, display(path),
                                              std::generic_category().message(cause), way_out(cause)));
}

Result<> HostRoot::check_directory() const {
  struct stat info{};
  const int cause = ::stat(directory_.c_str(), &info) != 0 ? errno : S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
  if (cause == 0) return {};
  return Error(Errc::unavailable,
               fmt::format("the host's files are not at {}: {}; mount them there, or correct --host-root", directory_,
                           std::generic_category().message(cause)));
}

Result<std::string> HostRoot::locate(std::string_view path) const {
  return resolve(path, [](const std::string&) {});
}

Result<std::vector<std::string>> HostRoot::route(std::string_view path) const {
  std::vector<std::string> all{directory_};
  auto end = resolve(path, [&all](const std::string& passed) { all.push_back(passed); });
  if (!end) return std::move(end).error();
  return all;
}

Result<std::string> HostRoot::resolve(std::string_view path,
                                      const std::function<void(const std::string&)>& passed) const {
  if (path.find('\0') != std::string_view::npos)
    return Error(Errc::unavailable, "the path of a file contains a NUL character");
  const std::vector<std::string> asked = components_of(path);
  std::deque<std::string> ahead(asked.begin(), asked.end());
  std::vector<std::string> behind;
  for (int links = 0; !ahead.empty();) {
    std::string name = std::move(ahead.front());
    ahead.pop_front();
    if (name == "..") {
      if (!behind.empty()) behind.pop_back();
      continue;
    }
    behind.push_back(std::move(name));
    const std::string reached = joined(directory_, behind);
    passed(reached);
    const auto target = link_target(reached);
    if (!target) continue;
    if (++links > link_limit) return problem("find", path, ELOOP);
    behind.pop_back();
    if (target->starts_with('/')) behind.clear();
    const std::vector<std::string> detour = components_of(*target);
    ahead.insert(ahead.begin(), detour.begin(), detour.end());
  }
  return joined(directory_, behind);
}

Result<bool> HostRoot::exists(std::string_view path) const {
  auto where = locate(path);
  if (!where) return std::move(where).error();
  struct stat info{};
  if (::lstat(where->c_str(), &info) == 0) return true;
  const int cause = errno;
  if (!is_missing(cause)) return problem("find", path, cause);
  if (auto there = check_directory(); !there) return std::move(there).error();
  return false;
}

Result<std::optional<std::string>> HostRoot::read(std::string_view path, std::size_t limit) const {
  auto where = locate(path);
  if (!where) return std::move(where).error();
  // O_NONBLOCK: if a named pipe has this path, open() must not block.
  const Descriptor file(::open(where->c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) {
    const int cause = errno;
    if (!is_missing(cause)) return problem("read", path, cause);
    if (auto there = check_directory(); !there) return std::move(there).error();
    return std::optional<std::string>();
  }
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return problem("read", path, errno);
  if (S_ISDIR(info.st_mode)) return problem("read", path, EISDIR);
  if (!S_ISREG(info.st_mode))
    return Error(Errc::unavailable, fmt::format("cannot read {}: it is not a regular file", display(path)));
  std::string content(limit, '\0');
  std::size_t size = 0;
  while (size < limit) {
    const ssize_t count = ::read(file.get(), content.data() + size, limit - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return problem("read", path, errno);
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  content.resize(size);
  return std::optional<std::string>(std::move(content));
}

Result<std::optional<std::vector<std::string>>> HostRoot::list(std::string_view path) const {
  auto where = locate(path);
  if (!where) return std::move(where).error();
  std::error_code failure;
  std::filesystem::directory_iterator entry(*where, failure);
  if (failure && is_missing(failure.value())) {
    if (auto there = check_directory(); !there) return std::move(there).error();
    return std::optional<std::vector<std::string>>();
  }
  std::vector<std::string> names;
  for (; !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
    if (names.size() == entry_limit)
      return Error(Errc::unavailable, fmt::format("{} has more than {} entries", display(path), entry_limit));
    names.push_back(entry->path().filename().string());
  }
  if (failure) return problem("read", path, failure.value());
  std::sort(names.begin(), names.end());
  return std::optional<std::vector<std::string>>(std::move(names));
}

Result<HostRoot::Place> HostRoot::place_of(std::string_view path) const {
  const std::vector<std::string> names = components_of(path);
  if (names.empty() || names.back() == "..") return problem("change", path, EISDIR);
  auto parent = locate(joined("/", {names.begin(), names.end() - 1}));
  if (!parent) return std::move(parent).error();
  if (auto there = check_directory(); !there) return std::move(there).error();
  return Place{*parent == "/" ? "" : *std::move(parent), names.back()};
}

Result<> HostRoot::write(std::string_view path, std::string_view content) const {
  auto place = place_of(path);
  if (!place) return std::move(place).error();
  std::error_code failure;
  if (!place->parent.empty()) std::filesystem::create_directories(place->parent, failure);
  if (failure) return problem("create the directory of", path, failure.value());
  const std::string target = fmt::format("{}/{}", place->parent, place->name);
  const int cause = replace_file(target, fmt::format("{}/.{}.new", place->parent, place->name), content);
  if (cause != 0) return problem("write", path, cause);
  return {};
}

Result<> HostRoot::remove(std::string_view path) const {
  auto place = place_of(path);
  if (!place) return std::move(place).error();
  if (::unlink(fmt::format("{}/{}", place->parent, place->name).c_str()) == 0 || is_missing(errno)) return {};
  return problem("remove", path, errno);
}

Result<std::string> read_boot_id(const HostRoot& root) {
  constexpr std::string_view path = "/proc/sys/kernel/random/boot_id";
  constexpr std::size_t longest = 128;
  auto content = root.read(path, longest);
  if (!content) return std::move(content).error();
  if (!*content)
    return Error(Errc::unavailable, fmt::format("{} does not exist; mount the host's /proc", root.display(path)));
  std::string id = **std::move(content);
  while (!id.empty() && id.back() == '\n') id.pop_back();
  const bool plain = std::all_of(id.begin(), id.end(), [](char c) { return is_alphanumeric(c) || c == '-'; });
  if (id.empty() || id.size() >= longest - 1 || !plain)
    return Error(Errc::unavailable, fmt::format("{} contains no boot id", root.display(path)));
  return id;
}

Result<std::uint64_t> read_first_process(const HostRoot& root) {
  constexpr std::string_view path = "/proc/1/stat";
  // In /proc/PID/stat, field 2 is the name and field 22 the start time: the 20th field after the name (proc(5)).
  constexpr int fields_after_name = 20;
  auto content = root.read(path, 4096);
  if (!content) return std::move(content).error();
  Error unreadable(
      Errc::unavailable,
      fmt::format("{} does not contain the start time of process 1; mount the host's /proc", root.display(path)));
  if (!*content) return unreadable;
  // The name of the program is in parentheses and can contain any character, so it ends at the last parenthesis.
  const std::size_t name_ends = (*content)->rfind(')');
  if (name_ends == std::string::npos) return unreadable;
  std::istringstream fields((*content)->substr(name_ends + 1));
  std::string field;
  for (int i = 0; i < fields_after_name; ++i) fields >> field;
  const auto ticks = parse_number<std::uint64_t>(field);
  if (!fields || !ticks) return unreadable;
  return *ticks;
}

Result<bool> systemd_booted(const HostRoot& root) {
  return root.exists("/run/systemd/system");
}

Result<> show_ready(const HostRoot& root, bool ready) {
  constexpr std::string_view path = "/run/haulout/ready";
  if (!ready) return root.remove(path);
  return root.write(path, "This node is drained and may be rebooted.\n");
}

}  // namespace haulout::agent
