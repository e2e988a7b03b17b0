#include "k8s/credential_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/descriptor.hpp"

namespace haulout::k8s {
namespace {

constexpr std::size_t size_limit = std::size_t{16} << 20;

Error file_error(const std::string& what, const std::string& path, int cause) {
  const char* way_out = "";
  if (cause == ENOENT) way_out = "; check the path";
  if (cause == EACCES || cause == EPERM) way_out = "; make it readable for this user, or run as a user who may read it";
  if (cause == EISDIR) way_out = "; name the file itself";
  return Error(Errc::unavailable,
               fmt::format("cannot read {} {}: {}{}", what, path, std::generic_category().message(cause), way_out));
}

}  // namespace

Result<std::string> read_credential_file(const std::string& what, const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return file_error(what, path, errno);
  std::string content;
  char chunk[16 * 1024];
  for (;;) {
    const ssize_t count = ::read(file.get(), chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error(what, path, errno);
    if (count == 0) return content;
    content.append(chunk, static_cast<std::size_t>(count));
    if (content.size() > size_limit)
      return Error(Errc::unavailable, fmt::format("{} {} is larger than 16 MiB; is it the right file?", what, path));
  }
}

bool is_missing(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

}  // namespace haulout::k8s
