#include "agent/hooks/program_files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/ascii.hpp"
#include "base/plain_text.hpp"

namespace haulout::agent {

bool is_leftover_file(std::string_view name) {
  for (const std::string_view end : {"~", ".bak", ".swp", ".orig", ".dpkg-old", ".dpkg-new", ".dpkg-dist", ".dpkg-tmp",
                                     ".rpmsave", ".rpmnew", ".rpmorig"})
    if (name.ends_with(end)) return true;
  return name.starts_with('.');
}

namespace {

// Longest name of a program. The name of a hook becomes part of a unit name, which has at most 255 characters.
constexpr std::size_t longest_name = 100;

bool is_plain(char c) {
  return is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
}

bool is_name(std::string_view name) {
  return name.size() <= longest_name && std::all_of(name.begin(), name.end(), is_plain);
}

struct Looked {
  struct stat info{};
  std::string problem{};
};

// Fails with Errc::invalid if users other than root and this process's own user may change the file of `info`. `name`
// is its name for messages, and `path` the one for commands. `on_the_way`: it is a directory or a link on the way to a
// program.
Result<> check_owner(const struct stat& info, bool on_the_way, const std::string& name, const std::string& path,
                     std::string_view refusal) {
  if (info.st_uid != 0 && info.st_uid != ::geteuid())
    return Error(Errc::invalid,
                 fmt::format("{} belongs to uid {}, so {}: chown root {}", name, info.st_uid, refusal, path));
  // A link has no permissions. In a sticky directory, others may add entries, but not replace this one.
  const bool sticky = on_the_way && S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0;
  if (!S_ISLNK(info.st_mode) && !sticky && (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return Error(Errc::invalid,
                 fmt::format("{} is writable by its group or by others, so {}: chmod go-w {}", name, refusal, path));
  return {};
}

// Checks every link and directory that decides which file `path` is. One that cannot be read decides nothing: the look
// at the file itself says what is wrong.
Result<> check_route(const HostRoot& root, const std::string& path, std::string_view refusal) {
  auto route = root.route(path);
  if (!route) return std::move(route).error();
  for (const std::string& passed : *route) {
    struct stat info{};
    if (::lstat(passed.c_str(), &info) != 0) continue;
    if (auto own = check_owner(info, true, one_line(passed), one_line(passed), refusal); !own) return own;
  }
  return {};
}

// Reads the owner and the permissions of a file or directory. If that is impossible, `problem` in the result says why.
// Fails with Errc::invalid if users other than root and this process's own user may change the file.
Result<Looked> look_at(const HostRoot& root, const std::string& path, std::string_view refusal) {
  auto where = root.locate(path);
  if (!where) return std::move(where).error();
  Looked looked;
  if (::stat(where->c_str(), &looked.info) != 0) {
    looked.problem = std::generic_category().message(errno);
    return looked;
  }
  if (auto own = check_owner(looked.info, false, root.display(path), path, refusal); !own)
    return std::move(own).error();
  if (auto own = check_route(root, path, refusal); !own) return std::move(own).error();
  return looked;
}

}  // namespace

Result<ProgramFiles> program_files(const HostRoot& root, const std::string& directory, const ProgramWords& words) {
  auto names = root.list(directory);
  if (!names) return std::move(names).error();
  ProgramFiles files;
  if (!*names || (*names)->empty()) return files;
  auto looked = look_at(root, directory, words.refusal);
  if (!looked) return std::move(looked).error();
  for (const std::string& name : **names) {
    const std::string path = fmt::format("{}/{}", directory, name);
    if (is_leftover_file(name)) continue;
    if (!is_name(name)) {
      files.skipped.push_back(
          fmt::format("{} is not run: the name of {} consists of at most {} letters, digits, '-', '_' and '.'",
                      one_line(root.display(path)), words.one, longest_name));
      continue;
    }
    looked = look_at(root, path, words.refusal);
    if (!looked) return std::move(looked).error();
    std::string problem = std::move(looked->problem);
    if (problem.empty() && !S_ISREG(looked->info.st_mode)) problem = "it is not a file";
    if (problem.empty() && (looked->info.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0)
      problem = "it is not executable (chmod +x)";
    if (problem.empty())
      files.names.push_back(name);
    else
      files.skipped.push_back(fmt::format("{} is not run: {}", root.display(path), problem));
  }
  return files;
}

}  // namespace haulout::agent
