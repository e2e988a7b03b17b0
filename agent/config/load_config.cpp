#include <fmt/format.h>
#include <cerrno>
#include <system_error>

#include "agent/config/read_config.hpp"
#include "base/files.hpp"

namespace haulout::agent {
namespace {

// Returns the file that --config or HAULOUT_CONFIG names. Empty if neither does or the name is empty:
// then the default file is used.
std::string named_file(const FlagValues& flags, const Variables& environment) {
  std::optional<std::string> name;
  for (const auto& [flag, value] : flags)
    if (flag == "config") name = value;
  if (name) return *name;
  const auto variable = environment.find("HAULOUT_CONFIG");
  return variable == environment.end() ? "" : variable->second;
}

constexpr std::size_t largest_file = std::size_t{1} << 20;  // bytes; the limit of a ConfigMap

}  // namespace

std::variant<AgentConfig, std::string> load_config(const FlagValues& flags, const Variables& environment,
                                                   std::string_view default_file) {
  const std::string named = named_file(flags, environment);
  const std::string path = named.empty() ? std::string(default_file) : named;
  FileText file = file_text(path, largest_file);
  if (file.failure == 0) return read_config(flags, environment, ConfigFile{path, std::move(file.text)});
  if (named.empty() && file.failure == ENOENT) return read_config(flags, environment, std::nullopt);
  return fmt::format("the configuration file {} cannot be read: {}: {}", path,
                     std::generic_category().message(file.failure),
                     named.empty() ? "make it readable, or delete it"
                                   : "correct its path (--config, HAULOUT_CONFIG), or make it readable");
}

}  // namespace haulout::agent
