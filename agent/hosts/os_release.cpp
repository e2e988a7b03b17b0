#include "agent/hosts/os_release.hpp"

#include <algorithm>

#include "agent/hosts/host_command.hpp"
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
}

}  // namespace

bool OsRelease::is_like(std::string_view name) const {
  return id == name || std::find(id_like.begin(), id_like.end(), name) != id_like.end();
}

OsRelease parse_os_release(std::string_view text) {
  OsRelease release;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
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

}  // namespace haulout::agent
