// Whole files, read and written. Blocks: for commands, and for agents before they serve.
#pragma once

#include <string>

#include "retry/result.hpp"

namespace haulout::agent {

// Errc::unavailable, naming the file.
Result<std::string> read_whole_file(const std::string& path);

// Under another name first, and renamed, so that nobody sees half of it. Links are followed; what is there and is no
// regular file (/dev/stdout, a pipe) is written to as it is. Errc::unavailable, naming file and cause.
Result<> write_whole_file(const std::string& path, const std::string& text);
// The same error, while nothing has been done yet. Leaves nothing behind.
Result<> can_write_whole_file(const std::string& path);

}  // namespace haulout::agent
