#include "agent/dbus/host_files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

namespace haulout::agent {
namespace fs = std::filesystem;
namespace {

Error file_error(std::string_view verb, const fs::path& path, const std::string& cause, std::string_view way_out) {
  return Error(Errc::unavailable, fmt::format("cannot {} {}: {}; {}", verb, path.string(), cause, way_out));
}

Result<std::string> read_text(const fs::path& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.is_open() && !in.bad()) return text;
  return file_error("read", path, std::generic_category().message(errno),
                    "is the host's file system mounted where --host-root says?");
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace

Result<std::string> HostFiles::boot_id() const {
  const fs::path path = at("proc/sys/kernel/random/boot_id");
  auto text = read_text(path);
  if (!text) return text;
  const std::string_view id = trimmed(*text);
  if (id.empty()) return file_error("read", path, "it is empty", "the kernel always has a boot id: is this its proc?");
  return std::string(id);
}

Result<> HostFiles::show_ready(bool ready) const {
  const fs::path path = at("run/haulout/ready");
  std::error_code failure;
  if (!ready) {
    fs::remove(path, failure);
    if (failure && failure != std::errc::not_a_directory)
      return file_error("remove", path, failure.message(), "the agent needs to write there");
    return {};
  }
  fs::create_directories(path.parent_path(), failure);
  errno = 0;
  if (!std::ofstream(path, std::ios::app).is_open())
    return file_error("create", path, std::generic_category().message(errno), "the agent needs to write there");
  return {};
}

bool HostFiles::systemd_booted() const {
  std::error_code ignored;
  return fs::is_directory(at("run/systemd/system"), ignored);
}

Result<std::string> HostFiles::os_version() const {
  const fs::path path = at("etc/os-release");
  auto text = read_text(path);
  if (!text) return text;
  std::string version = os_release_value(*text, "VERSION");
  if (version.empty()) return file_error("read the version from", path, "it has no VERSION", "see os-release(5)");
  return version;
}

std::string os_release_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(key) || line.substr(key.size(), 1) != "=") continue;
    std::string_view value = line.substr(key.size() + 1);
    const bool quoted = value.size() >= 2 && (value.front() == '"' || value.front() == '\'');
    if (quoted && value.back() == value.front()) value = value.substr(1, value.size() - 2);
    return std::string(value);
  }
  return {};
}

}  // namespace haulout::agent
