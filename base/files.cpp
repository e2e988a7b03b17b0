#include "base/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace haulout {
namespace {

namespace fs = std::filesystem;

Error cannot_write(const std::string& path, int cause) {
  return Error(Errc::unavailable, fmt::format("{} cannot be written: {}", path, std::strerror(cause)));
}

bool may_write(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

// What exists at a path. A device or a pipe is written in place and not replaced by a new file. The same applies to the
// stdout or stderr of this process, even if it is a regular file.
struct Present {
  bool may_be_replaced = true;
  int output = -1;  // descriptor of this process's stdout or stderr, if the path is that file; else -1
};

Present present_at(const std::string& path) {
  struct stat present{}, ours{};
  if (::stat(path.c_str(), &present) != 0) return {};
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
    if (may_write(fd) && ::fstat(fd, &ours) == 0 && ours.st_dev == present.st_dev && ours.st_ino == present.st_ino)
      return {false, fd};
  return {S_ISREG(present.st_mode), -1};
}

// Opens an existing file to write it in place. If it is the stdout or stderr of this process, `output` is that
// descriptor, otherwise -1. The descriptor is duplicated, so that later output follows the written text.
std::FILE* open_as_it_is(const std::string& path, int output) {
  if (output < 0) return std::fopen(path.c_str(), "wbe");
  const int fd = ::fcntl(output, F_DUPFD_CLOEXEC, 0);
  return fd < 0 ? nullptr : ::fdopen(fd, "wb");
}

// Resolves symbolic links. The last target need not exist.
std::string behind_links(const std::string& path) {
  constexpr int most = 40;  // the kernel's limit (MAXSYMLINKS)
  fs::path target = path;
  std::error_code failure;
  for (int i = 0; i < most && fs::is_symlink(target, failure); ++i) {
    const fs::path next = fs::read_symlink(target, failure);
    if (failure) break;
    target = target.parent_path() / next;  // the result is `next` if that is absolute
  }
  return target;
}

// A new temporary file in the same directory as the file to write.
struct Part {
  std::string name;
  std::FILE* file = nullptr;  // nullptr: errno has the cause
};

Part open_part(const std::string& path) {
  constexpr int most = 100;  // names to try; programs that were killed may have left files with the first ones behind
  Part part;
  for (int i = 0; i < most && part.file == nullptr; ++i) {
    part.name = fmt::format("{}.{}.part", path, i);
    part.file = std::fopen(part.name.c_str(), "wbxe");
    if (part.file == nullptr && errno != EEXIST) break;
  }
  return part;
}

// Writes the text and closes the file. Returns 0, or errno.
int write_all(std::FILE* file, const std::string& text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int cause = errno;
  if (std::fclose(file) != 0) return errno;
  return written ? 0 : cause;
}

Error cannot_read(const std::string& path, int cause) {
  return Error(Errc::unavailable, fmt::format("{} cannot be read: {}", path, std::strerror(cause)));
}

}  // namespace

FileText text_of(std::istream& stream, std::size_t most) {
  std::string text;
  // read() is used because istreambuf_iterator throws if the path is a directory.
  for (std::array<char, 16384> chunk{}; stream && text.size() <= most;) {
    stream.read(chunk.data(), chunk.size());
    text.append(chunk.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (text.size() > most) return {"", EFBIG};
  if (!stream.eof()) return {"", errno != 0 ? errno : EIO};
  return {std::move(text), 0};
}

FileText file_text(const std::string& path, std::size_t most) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  return text_of(file, most);
}

Result<std::string> read_whole_file(const std::string& path) {
  FileText file = file_text(path);
  if (file.failure == 0) return std::move(file.text);
  return cannot_read(path, file.failure);
}

Result<FilePieces> FilePieces::open(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return cannot_read(path, errno);
  return FilePieces(std::move(file));
}

FilePieces::int_type FilePieces::underflow() {
  constexpr std::size_t size = 1 << 18;
  piece_.resize(size);
  ssize_t length = 0;
  do length = ::read(file_.get(), piece_.data(), piece_.size());
  while (length < 0 && errno == EINTR);
  if (length < 0) failure_ = errno;
  if (length <= 0) return traits_type::eof();
  setg(piece_.data(), piece_.data(), piece_.data() + length);
  return traits_type::to_int_type(*gptr());
}

Result<> write_whole_file(const std::string& path, const std::string& text) {
  if (const Present present = present_at(path); !present.may_be_replaced) {
    std::FILE* file = open_as_it_is(path, present.output);
    const int cause = file == nullptr ? errno : write_all(file, text);
    return cause == 0 ? Result<>() : cannot_write(path, cause);
  }
  const std::string target = behind_links(path);
  const Part part = open_part(target);
  if (part.file == nullptr) return cannot_write(path, errno);
  int cause = write_all(part.file, text);
  if (cause == 0 && std::rename(part.name.c_str(), target.c_str()) != 0) cause = errno;
  if (cause == 0) return {};
  std::remove(part.name.c_str());
  return cannot_write(path, cause);
}

Result<> can_write_whole_file(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return cannot_write(path, EISDIR);
  if (const Present present = present_at(path); !present.may_be_replaced)
    return present.output >= 0 || ::access(path.c_str(), W_OK) == 0 ? Result<>() : cannot_write(path, errno);
  const Part part = open_part(behind_links(path));
  if (part.file == nullptr) return cannot_write(path, errno);
  std::fclose(part.file);
  std::remove(part.name.c_str());
  return {};
}

}  // namespace haulout
