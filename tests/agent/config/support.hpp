// Helpers of the configuration tests: they read a configuration and return its values or its problems. No I/O.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/config/read_config.hpp"

namespace haulout::agent {

inline const std::string a_path = "/etc/haulout/config.yaml";

inline std::optional<ConfigFile> a_file(std::string text) {
  return ConfigFile{a_path, std::move(text)};
}

// Returns the error message, or an empty string if the configuration is valid.
inline std::string problems_of(const FlagValues& flags, const Variables& environment = {},
                               const std::optional<ConfigFile>& file = {}) {
  auto result = read_config(flags, environment, file);
  if (auto* problems = std::get_if<std::string>(&result)) return *problems;
  return {};
}

inline std::string problems_of_file(std::string text) {
  return problems_of({}, {}, a_file(std::move(text)));
}

inline AgentConfig config_of(const FlagValues& flags, const Variables& environment = {},
                             const std::optional<ConfigFile>& file = {}) {
  auto result = read_config(flags, environment, file);
  if (auto* problems = std::get_if<std::string>(&result)) {
    ADD_FAILURE() << "refused: " << *problems;
    return {};
  }
  return std::get<AgentConfig>(std::move(result));
}

inline AgentConfig config_of_file(std::string text) {
  return config_of({}, {}, a_file(std::move(text)));
}

}  // namespace haulout::agent
