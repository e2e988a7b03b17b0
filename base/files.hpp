// Reads and writes whole files, and reads large ones in pieces. The functions block, so an agent may call them only
// before it starts its event loop.
#pragma once

#include <istream>
#include <streambuf>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace haulout {

struct FileText {
  std::string text;
  int failure = 0;  // errno, or 0 on success; EFBIG if there are more than `most` bytes
};
// Read a file, or a stream to its end, but at most `most` bytes.
FileText file_text(const std::string& path, std::size_t most = std::string::npos);
FileText text_of(std::istream& stream, std::size_t most = std::string::npos);
// Reads a whole file. Fails with Errc::unavailable; the message names the file and the cause.
Result<std::string> read_whole_file(const std::string& path);

// The text of a file that is too large to be kept in memory, for a std::istream. The stream ends at the end of the
// file, or where the file cannot be read; failure() then has errno, and otherwise 0.
class FilePieces final : public std::streambuf {
 public:
  // Fails with Errc::unavailable, as read_whole_file() does, if the file cannot be opened.
  static Result<FilePieces> open(const std::string& path);
  int failure() const { return failure_; }

 private:
  explicit FilePieces(Descriptor file) : file_(std::move(file)) {}
  int_type underflow() override;

  Descriptor file_;
  std::vector<char> piece_;
  int failure_ = 0;
};

// Writes to a temporary file and renames it, so that no reader sees a partial file. Follows symbolic links. An existing
// file that is not regular (a pipe), or that is the stdout or stderr of this process (/dev/stdout), is written in
// place; later output follows the text. Fails with Errc::unavailable; the message names the file and the cause.
Result<> write_whole_file(const std::string& path, const std::string& text);
// Checks in advance whether write_whole_file() can write this path, and fails with the same error if not. Writes
// nothing; removes the temporary file that it creates for the check.
Result<> can_write_whole_file(const std::string& path);

}  // namespace haulout
