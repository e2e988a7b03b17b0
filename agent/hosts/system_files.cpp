#include "agent/hosts/system_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

#include "agent/hosts/host_command.hpp"
#include "base/ascii.hpp"
#include "base/descriptor.hpp"
#include "base/plain_text.hpp"

namespace haulout::agent {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::vector<std::string> words_of(std::string_view text) {
  auto words = shell_words(text);
  return words ? *std::move(words) : std::vector<std::string>();
}

void assign(OsRelease& release, std::string_view name, const std::string& value) {
  if (name == "ID") release.id = value;
  if (name == "ID_LIKE") release.id_like = words_of(value);
  if (name == "VERSION") release.version = value;
  if (name == "VERSION_ID") release.version_id = value;
  if (name == "PRETTY_NAME") release.pretty_name = value;
  if (name == "IMAGE_VERSION") release.image_version = value;
}

}  // namespace

bool OsRelease::is_like(std::string_view name) const {
  return id == name || std::find(id_like.begin(), id_like.end(), name) != id_like.end();
}

OsRelease parse_os_release(std::string_view text) {
  OsRelease release;
  while (!text.empty()) {
    const std::string_view line = trimmed(take_line(text));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || line.starts_with('#')) continue;
    const auto value = shell_words(line.substr(equals + 1));
    if (!value || value->size() > 1) continue;
    assign(release, line.substr(0, equals), value->empty() ? "" : one_line(value->front()));
  }
  if (release.id.empty()) release.id = "linux";
  return release;
}

Result<std::optional<OsRelease>> read_os_release(const HostRoot& root) {
  constexpr std::size_t limit = std::size_t{64} * 1024;
  for (const char* path : {"/etc/os-release", "/usr/lib/os-release"}) {
    auto content = root.read(path, limit);
    if (!content) return std::move(content).error();
    if (*content) return std::optional<OsRelease>(parse_os_release(**content));
  }
  return std::optional<OsRelease>();
}

namespace {

constexpr std::size_t file_limit = std::size_t{256} * 1024;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// A word, a quoted value, or one of the signs { } ; as a token of one character.
struct Token {
  std::string text;
  bool quoted = false;
  bool is(std::string_view sign) const { return !quoted && text == sign; }
};

class Tokens {
 public:
  explicit Tokens(std::string_view text) : rest_(text) {}

  std::optional<Token> next() {
    skip();
    if (rest_.empty()) return std::nullopt;
    const char c = rest_.front();
    if (c == '{' || c == '}' || c == ';') return Token{take(1)};
    if (c == '"') return quoted();
    std::size_t end = 0;
    while (end < rest_.size() && !is_blank(rest_[end]) &&
           std::string_view("{};\"").find(rest_[end]) == std::string::npos)
      ++end;
    return Token{take(end)};
  }

 private:
  std::string take(std::size_t count) {
    std::string out(rest_.substr(0, count));
    rest_.remove_prefix(std::min(count, rest_.size()));
    return out;
  }
  Token quoted() {
    rest_.remove_prefix(1);
    Token token{take(std::min(rest_.find('"'), rest_.size())), true};
    if (!rest_.empty()) rest_.remove_prefix(1);
    return token;
  }
  void skip_past(std::string_view end) {
    const std::size_t found = rest_.find(end);
    rest_.remove_prefix(found == std::string_view::npos ? rest_.size() : found + end.size());
  }
  void skip() {
    for (;;) {
      while (!rest_.empty() && is_blank(rest_.front())) rest_.remove_prefix(1);
      if (rest_.starts_with("//") || rest_.starts_with('#'))
        skip_past("\n");
      else if (rest_.starts_with("/*"))
        skip_past("*/");
      else
        return;
    }
  }

  std::string_view rest_;
};

// Returns true for the names that apt reads in a directory: those without a dot, and *.conf.
bool is_part(std::string_view name) {
  return !name.starts_with('.') && (name.find('.') == std::string_view::npos || name.ends_with(".conf"));
}

}  // namespace

std::optional<std::string> apt_option(std::string_view text, std::string_view name) {
  const std::string wanted = lower_case(name);
  std::optional<std::string> found;
  std::vector<std::string> scopes;
  std::string prefix, word;
  Tokens tokens(text);
  while (const auto token = tokens.next()) {
    if (token->is("{")) {
      scopes.push_back(prefix);
      prefix += lower_case(word) + "::";
      word.clear();
    } else if (token->is("}")) {
      prefix = scopes.empty() ? std::string() : scopes.back();
      if (!scopes.empty()) scopes.pop_back();
      word.clear();
    } else if (token->is(";")) {
      word.clear();
    } else if (word.empty()) {
      word = token->text;
    } else if (prefix + lower_case(word) == wanted) {
      found = token->text;
    }
  }
  return found;
}

Result<std::optional<std::string>> read_apt_option(const HostRoot& root, std::string_view name) {
  auto parts = root.list("/etc/apt/apt.conf.d");
  if (!parts) return std::move(parts).error();
  std::vector<std::string> files;
  for (const std::string& part : parts->value_or(std::vector<std::string>()))
    if (is_part(part)) files.push_back("/etc/apt/apt.conf.d/" + part);
  files.emplace_back("/etc/apt/apt.conf");
  std::optional<std::string> found;
  for (const std::string& file : files) {
    auto text = root.read(file, file_limit);
    if (!text) return std::move(text).error();
    if (auto value = apt_option(text->value_or(""), name)) found = std::move(value);
  }
  return found;
}

bool apt_true(std::string_view value) {
  const std::string word = lower_case(value);
  for (const std::string_view yes : {"true", "yes", "on", "with", "enable"})
    if (word == yes) return true;
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
         word.find_first_not_of('0') != std::string::npos;
}

namespace {

// apt and its front ends hold lock-frontend for a whole run; dpkg holds the other lock while it works.
constexpr const char* locks[] = {"/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock"};

std::string holder(const HostRoot& root, pid_t pid) {
  // The holder of the lock is not visible here, for example because it runs in another container.
  if (pid <= 0) return "another program";
  const auto name = root.read(fmt::format("/proc/{}/comm", pid), line_limit);
  const std::string word = name && *name ? first_line(**name) : std::string();
  return word.empty() ? fmt::format("process {}", pid) : fmt::format("{} (process {})", word, pid);
}

Error unread(const HostRoot& root, const char* lock) {
  return Error(Errc::unavailable, fmt::format("{}: {}", root.display(lock), std::generic_category().message(errno)));
}

}  // namespace

Result<std::string> dpkg_locked_by(const HostRoot& root) {
  for (const char* lock : locks) {
    auto path = root.locate(lock);
    if (!path) return std::move(path).error();
    const Descriptor file(::open(path->c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open() && (errno == ENOENT || errno == ENOTDIR)) continue;
    if (!file.is_open()) return unread(root, lock);
    struct flock asked{};
    asked.l_type = F_WRLCK;
    asked.l_whence = SEEK_SET;
    if (::fcntl(file.get(), F_GETLK, &asked) != 0) return unread(root, lock);
    if (asked.l_type != F_UNLCK) return fmt::format("{} holds {}", holder(root, asked.l_pid), root.display(lock));
  }
  return std::string();
}

}  // namespace haulout::agent
