#include "agent/config/read_config.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  const auto config = agent::read_config({}, {}, agent::ConfigFile{"/etc/haulout/config.yaml", std::string(input)});
  if (const auto* problems = std::get_if<std::string>(&config)) must(!problems->empty(), "a refusal says why");
}

static const Target target("agent_config", one);

}  // namespace haulout::fuzz
