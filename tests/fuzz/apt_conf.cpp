#include "agent/hosts/system_files.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  const auto value = agent::apt_option(input, "Unattended-Upgrade::Automatic-Reboot");
  if (value) std::ignore = agent::apt_true(*value);
  const std::string behind = std::string(input) + "\nunattended-upgrade::automatic-reboot \"true\";\n";
  std::ignore = agent::apt_option(behind, "Unattended-Upgrade::Automatic-Reboot");
}

static const Target target("apt_conf", one);

}  // namespace haulout::fuzz
