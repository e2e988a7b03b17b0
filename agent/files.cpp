#include "agent/files.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace haulout::agent {
namespace {

std::string part_of(const std::string& path) {
  return path + ".part";
}

Error cannot_write(const std::string& path, const std::string& why) {
  return Error(Errc::unavailable, fmt::format("{} cannot be written: {}", path, why));
}

}  // namespace

Result<std::string> read_whole_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error(Errc::unavailable, fmt::format("{} cannot be read", path));
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

Result<> write_whole_file(const std::string& path, const std::string& text) {
  std::ofstream file(part_of(path), std::ios::binary);
  file << text;
  file.close();
  std::error_code failure;
  if (file) std::filesystem::rename(part_of(path), path, failure);
  if (!file || failure) return cannot_write(path, failure ? failure.message() : std::strerror(errno));
  return {};
}

Result<> can_write_whole_file(const std::string& path) {
  errno = 0;
  const bool opened = std::ofstream(part_of(path), std::ios::binary).is_open();
  const int cause = errno;
  if (!opened) return cannot_write(path, std::strerror(cause));
  std::error_code ignored;
  std::filesystem::remove(part_of(path), ignored);
  if (std::filesystem::is_directory(path, ignored)) return cannot_write(path, "it is a directory");
  return {};
}

}  // namespace haulout::agent
