#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "agent/process/process.hpp"
#include "build_commit.hpp"
#include "cli/options/build_info.hpp"

namespace haulout::cli {
namespace {

#if defined(__x86_64__)
constexpr const char* platform = "linux/amd64";
#elif defined(__aarch64__)
constexpr const char* platform = "linux/arm64";
#else
constexpr const char* platform = "linux";
#endif

}  // namespace

std::string version_text() {
  return fmt::format("haulout {}\n", agent::version());
}

std::string version_json() {
  nlohmann::ordered_json json = {{"version", agent::version()}};
  const std::string commit = HAULOUT_COMMIT, date = HAULOUT_BUILD_DATE;
  if (!commit.empty()) json["commit"] = commit;
  if (!date.empty()) json["buildDate"] = date;
  json["platform"] = platform;
  return json.dump(2) + '\n';
}

}  // namespace haulout::cli
