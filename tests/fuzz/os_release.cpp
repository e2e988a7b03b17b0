#include "agent/hosts/system_files.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  const agent::OsRelease release = agent::parse_os_release(input);
  must(!release.id.empty(), "every system is called something");
  must(release.is_like(release.id), "it is like itself");
}

static const Target target("os_release", one);

}  // namespace haulout::fuzz
