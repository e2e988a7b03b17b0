// Builds calls of kured for tests, and reads the configurations that are made from them as the agent does.
#pragma once

#include <gmock/gmock.h>

#include "agent/config/read_config.hpp"
#include "cli/migrate/kured_manifest.hpp"
#include "cli/migrate/kured_migration.hpp"

namespace haulout::cli {

// Returns the migration of a call with these arguments, in a container with the mount of kured's own manifest.
inline Migration migrated(std::vector<std::string> words, std::vector<KuredVariable> variables = {},
                          std::vector<KuredMount> mounts = {{"/sentinel", "/var/run"}}) {
  auto migration = migrate_kured(
      {.from = "a test", .words = std::move(words), .variables = std::move(variables), .mounts = std::move(mounts)});
  EXPECT_TRUE(migration) << migration.error().message();
  return migration ? *std::move(migration) : Migration{};
}

// Returns the configuration as the agent reads it.
inline agent::AgentConfig config_of(const Migration& migration) {
  const auto read = agent::read_config({}, {}, agent::ConfigFile{"config.yaml", migration.config});
  if (const auto* config = std::get_if<agent::AgentConfig>(&read)) return *config;
  ADD_FAILURE() << std::get<std::string>(read) << "\n" << migration.config;
  return {};
}

// Returns the row of an option; for something that is no option of kured, that of its spelling.
inline MigratedOption row_of(const Migration& migration, std::string_view name) {
  for (const MigratedOption& option : migration.options)
    if (option.name == name || (option.name.empty() && option.spelled.front() == name)) return option;
  ADD_FAILURE() << "no row for " << name;
  return {};
}

// Returns the lines of the configuration that are no comments.
inline std::string settings_in(const Migration& migration) {
  std::string lines;
  std::string_view rest = migration.config;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1);
    if (!rest.starts_with('#') && rest.front() != '\n') lines.append(rest.substr(0, end + 1));
    rest.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace haulout::cli
