// What `haulout version` prints. Pure.
#pragma once

#include <string>

namespace haulout::cli {

// Returns "haulout 1.2.3" and a line break.
std::string version_text();
// Returns a JSON object with `version`, `commit` ("…-dirty" if files were changed), `buildDate` (RFC 3339, the time of
// the commit) and `platform` (as Go writes it, "linux/amd64"). A build without git has no `commit`.
std::string version_json();

}  // namespace haulout::cli
