#include "agent/timeline_file.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace haulout::agent {
namespace {

std::string part_of(const std::string& path) {
  return path + ".part";
}

Error cannot_write(const std::string& path, const std::string& why) {
  return Error(Errc::invalid, fmt::format("--timeline {} cannot be written: {}", path, why));
}

}  // namespace

Result<> can_write_timeline(const std::string& path) {
  errno = 0;
  const bool opened = std::ofstream(part_of(path), std::ios::binary).is_open();
  const int cause = errno;
  if (!opened) return cannot_write(path, std::strerror(cause));
  std::error_code ignored;
  std::filesystem::remove(part_of(path), ignored);
  if (std::filesystem::is_directory(path, ignored)) return cannot_write(path, "it is a directory");
  return {};
}

Result<> write_timeline(const std::string& path, const std::string& svg) {
  std::ofstream file(part_of(path), std::ios::binary);
  file << svg;
  file.close();
  std::error_code failure;
  if (file) std::filesystem::rename(part_of(path), path, failure);
  if (!file || failure) return cannot_write(path, failure ? failure.message() : std::strerror(errno));
  return {};
}

}  // namespace haulout::agent
