// Whole files, read and written. Blocks: for commands, and for agents before they serve.
#pragma once

#include <istream>
#include <string>

#include "base/result.hpp"

namespace haulout {

struct FileText {
  std::string text;
  int failure = 0;  // errno; EFBIG: more bytes than were asked for at most
};
FileText file_text(const std::string& path, std::size_t most = std::string::npos);
FileText text_of(std::istream& stream, std::size_t most = std::string::npos);
// The same. Errc::unavailable, naming file and cause.
Result<std::string> read_whole_file(const std::string& path);

// Under another name first, and renamed, so that nobody sees half of it. Links are followed; what is there and is no
// regular file (a pipe) is written to as it is, and so is what our own output goes to (/dev/stdout), which goes on
// behind it. Errc::unavailable, naming file and cause.
Result<> write_whole_file(const std::string& path, const std::string& text);
// The same error, while nothing has been done yet. Leaves nothing behind.
Result<> can_write_whole_file(const std::string& path);

}  // namespace haulout
