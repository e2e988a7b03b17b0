// Whole files, read and written. Blocks: for commands, and for agents before they serve.
#pragma once

#include <string>

#include "retry/result.hpp"

namespace haulout::agent {

// Errc::unavailable, naming the file.
Result<std::string> read_whole_file(const std::string& path);

// Under another name first, and renamed, so that nobody sees half of it. Links are followed; what is there and is no
// regular file (a pipe) is written to as it is, and so is what our own output goes to (/dev/stdout), which goes on
// behind it. Errc::unavailable, naming file and cause.
Result<> write_whole_file(const std::string& path, const std::string& text);
// The same error, while nothing has been done yet. Leaves nothing behind.
Result<> can_write_whole_file(const std::string& path);

}  // namespace haulout::agent
