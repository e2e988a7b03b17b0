// Generates docs/configuration.md from the table of options. Pure.
#pragma once

#include <string>

namespace haulout::agent {

std::string configuration_page();

}  // namespace haulout::agent
